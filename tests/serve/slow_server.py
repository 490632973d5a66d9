"""A service that takes half a second for each request with new nodes, as a process that signals can be sent to."""

from fastglt import set_threads
from fastglt.serve import Limits, make_app, run
from tests.serve.servers import slow_predictor

if __name__ == "__main__":
    set_threads(1)
    run(make_app(slow_predictor(0.5), limits=Limits(timeout=30)), port=0)

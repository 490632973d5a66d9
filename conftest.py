"""Which modules have examples to run: all, but for one that cannot be imported without its extra."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("flwr") else ["src/fastglt/federated/flower.py"]

"""Where the command begins, also as `python -m fastglt`: Ctrl-C ends it even while its modules are imported.

Python puts the current folder first on the path of `python -m`, where a file could pass for any module: that goes
before anything else is imported.
"""

import os
import sys

if not sys.flags.safe_path and sys.path[:1] in ([""], [os.getcwd()]):
    del sys.path[0]

import signal
from types import FrameType


def main() -> None:
    """Run the command line."""
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored, or the caller's
    if handled:
        signal.signal(signal.SIGINT, _end)
    from fastglt.cli import main as run

    if handled:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"error: interrupted\n")
    os._exit(130)  # nothing has begun yet


if __name__ == "__main__":
    main()

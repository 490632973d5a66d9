"""A process that has imported everything and computed nothing; copies of it become what tests ask for.

A new Python process spends seconds on importing PyTorch, PyG and numba, a copy a few thousandths; what it does
then is the same. Tests of what is imported, and from where, start new ones.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import struct
import sys
import threading
import types
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

PREPARED = (
    *("fastglt.kernels._ahead", "fastglt.runs.worker", "fastglt.bench", "fastglt.deploy.exports"),
    *("fastglt.serve.app", "scipy.stats", "sklearn.datasets", "sklearn.neighbors", "typer.rich_utils"),
)
LOOK_EVERY = 0.5  # seconds
LENGTH, STATUS = struct.Struct("!I"), struct.Struct("!i")
OUTCOMES = 3  # descriptors: standard input, output and error


def import_everything() -> None:
    """What commands and scripts import, first or last."""
    from fastglt import cli
    from fastglt.system.quiet import quiet_import

    with quiet_import():
        importlib.import_module("torch_geometric.nn")
    for name in PREPARED:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(cli.__path__, "fastglt.cli."):
        importlib.import_module(module.name)


def serve(place: Path, owner: int) -> Sequence[str]:
    """Make copies as long as the tests run; returns in a copy, with the words it was started with."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for keepers
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{place}.new")
        listening.listen(16)
        os.rename(f"{place}.new", place)  # who finds it can connect
        listening.settimeout(LOOK_EVERY)
        while _is_alive(owner):
            with contextlib.suppress(TimeoutError):
                asking, _ = listening.accept()
                with asking:
                    if os.fork() == 0:
                        listening.close()
                        return _keep(asking)
    sys.exit(0)


def _keep(asking: socket.socket) -> Sequence[str]:
    """Start the copy, tell its number, and later how it has ended; returns in the copy."""
    asking.settimeout(None)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which tests that run under nohup ignore
    head, files, _, _ = socket.recv_fds(asking, LENGTH.size, OUTCOMES)
    with asking.makefile("rb") as request:
        job = json.loads(request.read(*LENGTH.unpack(head)))
    number = os.fork()
    if number == 0:
        asking.close()
        return _prepare(job["words"], Path(job["folder"]), job["variables"], files)
    for file in files:
        os.close(file)
    asking.sendall(STATUS.pack(number))
    _, status = os.waitpid(number, 0)
    with contextlib.suppress(OSError):  # nobody may want to know
        asking.sendall(STATUS.pack(status))
    os._exit(0)


def _prepare(words: Sequence[str], folder: Path, variables: dict[str, str], files: Sequence[int]) -> Sequence[str]:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it starts aside ignore it
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    return words


def live(words: Sequence[str]) -> NoReturn:
    """Become what is asked for, and end as a new process would, without taking down thousands of modules."""
    code: object = 1
    try:
        become(words)
        code = 0
    except SystemExit as stopped:
        code = stopped.code or 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def become(words: Sequence[str]) -> None:
    """`python …`, with `-m module`, `-c code` or a script, and what follows."""
    kind, *rest = words
    if kind == "-m":
        sys.argv = rest
        sys.path.insert(0, os.getcwd())
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = [*words]
        sys.path.insert(0, str(Path(kind).parent.absolute()))
        runpy.run_path(kind, run_name="__main__")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    import_everything()
    gc.freeze()  # what is never written to is never copied
    live(serve(Path(sys.argv[1]), int(sys.argv[2])))

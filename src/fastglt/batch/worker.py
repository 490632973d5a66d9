"""One run of a batch, in a process of its own: ``python -m fastglt.batch.worker '{"experiment": …}'``.

It stops after the epoch that is running, with a checkpoint, once its standard input ends: that is how the process
that started it says so, and what happens when that process dies.
"""

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastglt.batch.plan import STOPPED, settings_of
from fastglt.entries import entry_of
from fastglt.errors import FastGLTError
from fastglt.experiment import Experiment, Prepared
from fastglt.methods import FixedMasks, Method
from fastglt.process import is_out_of_memory
from fastglt.run_folder import RunFolder
from fastglt.seeds import own_random_state
from fastglt.store import Store
from fastglt.training import Training

_NO_MEMORY = "not enough memory; try fewer --jobs, a smaller --hidden or a smaller graph"
Job = Mapping[str, Any]


def work(job: Job) -> None:
    """Find a ticket, or train a dense twin, unless that has been done already; it is in the store then."""
    store = Store(Path(job["store"]))
    experiment = Experiment.from_json(job["experiment"])
    experiment.use_machine()
    prepared = experiment.prepare()
    settings = settings_of(prepared, dense=job["dense"])
    folder = RunFolder(Path(job["folder"]), settings, checkpoint_every=job["checkpoint_every"])
    threading.Thread(target=_stop_when_told, args=(folder,), daemon=True).start()
    with folder.open() as finished:
        metrics = _run(prepared, folder, dense=job["dense"]) if finished is None else finished
        keep = store.record if finished is None else store.ensure
        keep(entry_of(settings, metrics, command=job["command"], folder=folder.path))


def _run(prepared: Prepared, folder: RunFolder, *, dense: bool) -> dict[str, Any]:
    _warm_up(prepared, FixedMasks(budget=prepared.method.budget) if dense else prepared.method)
    return prepared.run_dense(folder) if dense else prepared.run(folder, dense=False)


def _warm_up(prepared: Prepared, method: Method) -> None:
    """Load the compiled kernels before anything is timed, with an epoch that is thrown away."""
    with own_random_state(prepared.task.y.device):
        training = Training(prepared.network, prepared.task, method.recipe, seed=0)
        method.begin(training)
        training.run_epoch(method)


def _stop_when_told(folder: RunFolder) -> None:
    # Not through Python's buffer, whose lock would outlive the main thread.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    folder.stop = True


def main() -> None:
    """Do the work; what goes wrong becomes the last line of the log, and an exit code."""
    try:
        work(json.loads(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except FastGLTError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        sys.exit(error.exit_code)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        print(_NO_MEMORY, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()

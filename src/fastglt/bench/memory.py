"""Peak memory, each side in a fresh process of its own: ``python -m fastglt.bench.memory '{"side": …}'``.

The side of stock PyG imports what a PyG script would, and our data loader; none of our kernels.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastglt.bench import Note, silent
from fastglt.errors import MachineError

if TYPE_CHECKING:
    from fastglt.runs.experiment import Prepared

_STAGE = 2  # epochs: the second one has the optimiser's state beside it
Job = Mapping[str, Any]


def peaks(prepared: "Prepared", note: Note = silent) -> dict[str, float]:
    """The most memory, in MB, of a search of ours and of stock PyG's dense training with either form of the graph.

    On a GPU its memory, else the process's. To be asked before anything is timed: what stock PyG has taken in this
    process would not be free for the others.
    """
    from fastglt.bench.stock import FORMS

    found = {}
    for name, side, form in (("ours", "ours", ""), *((f"pyg_{form}", "pyg", form) for form in FORMS)):
        note(f"memory of {name}")
        job = prepared.experiment.to_json() if side == "ours" else pyg_job(prepared, form)
        found[f"peak_mb_{name}"] = in_own_process({"side": side, **job}) / 2**20
    return found


def in_own_process(job: Job) -> int:
    """SteppedSearch one side in a process of its own; returns the most memory it had, in bytes."""
    command = [sys.executable, "-P", "-m", "fastglt.bench.memory", json.dumps(job)]  # nothing of the current folder
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGKILL:
        raise MachineError(f"not enough memory for the side of {job['side']}; try a smaller --hidden")
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        raise MachineError(f"the memory of the side of {job['side']} could not be measured ({reason})")
    return int(done.stdout)


def pyg_job(prepared: "Prepared", form: str) -> Job:
    """What a process of stock PyG's side is told."""
    from fastglt.runs.experiment import thread_count

    experiment, root, recipe = prepared.experiment, prepared.experiment.data_root, prepared.method.budget.recipe
    return {
        "name": experiment.dataset,
        "source": {
            "root": None if root is None else str(root),
            "split_seed": experiment.split_seed,
            "directed": experiment.directed,
        },
        "twin": prepared.network.twin,
        "spec": prepared.network.spec,
        "form": form,
        "recipe": {name: getattr(recipe, name) for name in ("lr", "weight_decay")},
        "threads": thread_count(experiment.threads),
        "device": experiment.device,
    }


def run_ours(job: Job) -> None:
    """A search in short, as `fastglt find` runs it: soft epochs, the cut, hard ones, swaps, a last look."""
    _leave_out("coverage")
    from fastglt.runs.experiment import Experiment
    from fastglt.training.loop import Training, train

    short = {"oneshot_epochs": _STAGE, "denoise_epochs": 2 * _STAGE, "interval": _STAGE}
    experiment = Experiment.from_json({**job, "budget": {**job["budget"], **short}})
    experiment.use_machine()
    prepared = experiment.prepare()
    train(Training(prepared.network, prepared.task, prepared.method.recipe, seed=experiment.seed), prepared.method)


def run_pyg(job: Job) -> None:
    """Some epochs of stock PyG's dense training."""
    _leave_out("numba")
    import torch

    from fastglt.bench.stock import StockTraining
    from fastglt.data import load
    from fastglt.models.twins import build_twin

    torch.set_num_threads(job["threads"])
    data = load(job["name"], **job["source"]).data.to(job["device"])
    training = StockTraining(build_twin(job["twin"], job["spec"]), data, job["form"], **job["recipe"])
    for _ in range(_STAGE):
        training.run_epoch()


def run_ticket(job: Job) -> None:
    """A compiled ticket's outputs."""
    _leave_out("coverage")
    from pathlib import Path

    from fastglt.data import load
    from fastglt.deploy.compiling import compile_for
    from fastglt.runs.experiment import use_machine
    from fastglt.tickets.ticket_file import load as load_ticket

    use_machine(job["threads"])
    dataset = load(job["name"], root=job["root"], split_seed=job["split_seed"], directed=job["directed"])
    ticket = load_ticket(Path(job["file"]))
    told = {**dataset.direction, **ticket.task_options}
    task = ticket.task.from_tensors(dataset.tensors, metric=ticket.config["metric"], **told).to(job["device"])
    compile_for(ticket, task.graph, task.x).logits()


def run_pyg_inference(job: Job) -> None:
    """Stock PyG's outputs."""
    _leave_out("numba")
    import torch

    from fastglt.bench.stock import adjacency
    from fastglt.data import load
    from fastglt.models.twins import build_twin

    torch.set_num_threads(job["threads"])
    data = load(job["name"], root=job["root"], split_seed=job["split_seed"], directed=job["directed"]).data
    network, data = build_twin(job["twin"], job["spec"]).to(job["device"]).eval(), data.to(job["device"])
    with torch.no_grad():
        network(data.x, adjacency(network, data, job["form"]))


def _leave_out(module: str) -> None:
    """Do without a module that is only taken where it is found: by PyG numba, by numba what measures tests.

    Neither comes along with who takes it, and neither is used here.
    """
    sys.modules[module] = None  # type: ignore[assignment]


def _main() -> None:
    job = json.loads(sys.argv[1])
    runs = {"ours": run_ours, "pyg": run_pyg, "ticket": run_ticket, "pyg_inference": run_pyg_inference}
    run = runs[job.pop("side")]
    run(job)
    if str(job["device"]).startswith("cuda"):
        import torch

        print(torch.cuda.max_memory_allocated(job["device"]))
    else:
        from fastglt.system.process import peak_memory

        print(peak_memory())


if __name__ == "__main__":
    _main()

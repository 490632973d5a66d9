"""What a search costs by the size of its graph: seconds and bytes for each edge, on generated graphs.

Each size is measured in a process of its own: ``python -m fastglt.bench.scale '{"edges": …}'``.
"""

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from fastglt.bench import Note, silent
from fastglt.errors import InputError, MachineError, require

if TYPE_CHECKING:
    from fastglt.data import Dataset
    from fastglt.methods import Method
    from fastglt.tasks import Task
    from fastglt.training.loop import Training

_CLASSES = 4
_LEAST = 1000  # edges


@dataclass(frozen=True, kw_only=True)
class Size:
    """A generated graph and the GCN that is searched on it."""

    edges: int
    degree: int = 12  # edges of each node, on average
    features: int = 128
    hidden: int = 128
    seed: int = 0
    repeats: int = 3  # epochs of each stage to take the median of
    threads: int = 1

    def __post_init__(self) -> None:
        counts = {"degree": self.degree, "features": self.features, "hidden": self.hidden, "repeats": self.repeats}
        require("be at least 1", **counts)
        if self.edges < _LEAST:
            raise InputError(f"a graph to measure must have {_LEAST:,} edges or more (got {self.edges:,})")

    @property
    def nodes(self) -> int:
        """How many there are."""
        return 2 * self.edges // self.degree

    @property
    def dataset(self) -> str:
        """The graph's recipe."""
        from fastglt.data.synthetic import SyntheticGraph

        return str(SyntheticGraph(**self._recipe))

    @property
    def _recipe(self) -> dict[str, int]:
        counts = {"nodes": self.nodes, "edges": self.edges, "features": self.features}
        return {**counts, "classes": _CLASSES, "seed": self.seed}

    def generate(self) -> "Dataset":
        """The graph, with three fifths of its nodes to train on: next to all of it is trained with."""
        from fastglt.data.base import random_split
        from fastglt.data.synthetic import SyntheticGraph

        parts = SyntheticGraph(**self._recipe).parts(None, self.seed)
        masks = random_split(self.nodes, self.seed)
        return replace(parts, masks=masks).dataset(name=self.dataset, metric="accuracy")

    def make_method(self) -> "Method":
        """FastGLT, long enough for a cut and a swap with some epochs before each."""
        from fastglt.methods import Budget, Targets, make

        stage = 1 + self.repeats
        budget = Budget(oneshot_epochs=stage, denoise_epochs=2 * stage, interval=stage)
        return make("fastglt", targets=Targets(graph_sparsity=0.2, weight_sparsity=0.9), budget=budget)


def read_sizes(text: str, **shape: int) -> list[Size]:
    """Sizes from numbers between commas.

    >>> [size.edges for size in read_sizes("1e5, 2000000")]
    [100000, 2000000]
    """
    found = []
    for part in text.split(","):
        try:
            edges = float(part)
        except ValueError:
            edges = math.nan
        if not edges.is_integer():
            raise InputError(f"edges must be whole numbers, comma-separated (got '{part.strip()}'), as in 1e5,1e6")
        found.append(Size(edges=int(edges), **shape))
    return found


def measure(size: Size, note: Note = silent) -> dict[str, Any]:
    """A row, from a process of its own."""
    note(f"{size.edges:,} edges")
    command = [sys.executable, "-P", "-m", "fastglt.bench.scale", json.dumps(asdict(size))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}, as of too little memory"
        raise MachineError(f"{size.edges:,} edges could not be measured ({reason}); try fewer")
    row: dict[str, Any] = json.loads(done.stdout)
    return row


class _Clock:
    """Seconds by the clock and of the processor, added up by what they were spent on."""

    def __init__(self) -> None:
        self.spent: dict[str, list[tuple[float, float]]] = {}

    def time(self, what: str, work: Callable[[], Any]) -> Any:
        """Do some work."""
        began = time.perf_counter(), time.process_time()
        found = work()
        self.spent.setdefault(what, []).append((time.perf_counter() - began[0], time.process_time() - began[1]))
        return found

    def row(self, kind: int) -> dict[str, float]:
        """What is told, by the clock (0) or of the processor (1).

        The first epoch after masks changed also finds who hears whom then: what it takes longer than the others is
        part of preparing or of the swap.
        """
        found = {what: [both[kind] for both in times] for what, times in self.spent.items()}
        soft, hard = median(found["soft"]), median(found["hard"])
        return {
            "seconds_per_epoch": (soft + hard) / 2,
            "soft_seconds": soft,
            "hard_seconds": hard,
            "generate_seconds": found["generate"][0],
            "prepare_seconds": sum(found[part][0] for part in ("generate", "task", "begin"))
            + max(0.0, found["first soft"][0] - soft),
            "swap_seconds": found["swap"][0] + max(0.0, found["first hard"][-1] - hard),
        }


def run(size: Size) -> dict[str, Any]:
    """Measure a size in this process."""
    from fastglt.runs.experiment import use_machine
    from fastglt.system.process import current_memory, peak_memory

    use_machine(size.threads)
    _search(replace(size, edges=1000, repeats=1), _Clock())  # loads what is compiled
    _load_counting()
    before, clock = current_memory(), _Clock()
    _search(size, clock)
    by_processor = {f"cpu_{name}": value for name, value in clock.row(1).items()}
    return {
        "edges": size.edges,
        "nodes": size.nodes,
        **clock.row(0),
        **by_processor,
        "bytes_per_edge": (peak_memory() - before) / size.edges,
        "peak_mb": peak_memory() / 2**20,
    }


def _search(size: Size, clock: _Clock) -> None:
    """A cut and a swap, with the first epoch after each."""
    from fastglt.models import build
    from fastglt.system.seeds import own_random_state
    from fastglt.training.loop import Training

    dataset, method = clock.time("generate", size.generate), size.make_method()
    task = clock.time("task", lambda: _prepare(dataset))
    shape = {"in_channels": size.features, "hidden": size.hidden, "out_channels": _CLASSES}
    network = build({"name": "gcn", **shape, "dropout": 0.5, "seed": size.seed})
    with own_random_state(task.device):
        training = Training(network, task, method.recipe, seed=size.seed)
        clock.time("begin", lambda: method.begin(training))
        for stage in ("soft", "hard"):
            _run_stage(stage, size.repeats, training, method, clock)
        clock.time("first hard", lambda: training.run_epoch(method))


def _prepare(dataset: "Dataset") -> "Task":
    """As every run does it, digests included."""
    from fastglt.tasks.node_classification import NodeClassification

    task = NodeClassification.from_tensors(dataset.tensors, **dataset.direction)
    assert task.digest
    return task


def _run_stage(stage: str, repeats: int, training: "Training", method: "Method", clock: _Clock) -> None:
    for epoch in range(1 + repeats):
        clock.time(stage if epoch else f"first {stage}", lambda: training.run_epoch(method))
        after = ("cut" if stage == "soft" else "swap") if epoch == repeats else "nothing"
        clock.time(after, lambda: method.after_epoch(training))


def _load_counting() -> None:
    """The loops that only large graphs need."""
    import torch

    from fastglt.kernels import weigh
    from fastglt.kernels.patterns import count_columns, count_messages, exchanged

    edges = torch.tensor([[0], [1]])
    csr, edge_of = count_messages(edges, 2, both_ways=True)
    exchanged(csr)
    count_columns(torch.cat([edges, edges.flip(0)], 1), 2)
    weigh(torch.ones(edge_of.numel()), torch.ones(1, requires_grad=True), edge_of).sum().backward()  # type: ignore[no-untyped-call]


def _main(job: Mapping[str, Any]) -> None:
    print(json.dumps(run(Size(**job))))


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))

"""What a graph of any size takes on a cluster: memory, traffic and time of each process, from measured constants.

    python benchmarks/cluster_plan.py measure --folder /big/disk    # constants; 1, 2 and 4 processes by torchrun
    python benchmarks/cluster_plan.py check                         # what was measured beside what is predicted
    python benchmarks/cluster_plan.py plan --edges 1e9 --ranks 16   # the plan

The graphs are those of benchmarks/on_disk.py; a GCN of width 64 with a soft edge mask, parts of consecutive nodes,
four of them in each step, in four shares. Processes compute their shares of a step, and their strips of an
evaluation. Each owns a range of the edges. They hand over the gradients of weights and of edges after each step,
the soft edge mask of their own edges after each epoch, and hidden rows in evaluation. Constants come from runs of
one process; those of two and four take no part in them.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

DEGREE, FEATURES, CLASSES, HIDDEN, SHARES = 12, 128, 4, 64, 4
LEAVES, WEIGHTS = 4, (FEATURES + 1) * HIDDEN + (HIDDEN + 1) * CLASSES
STRIP = 1 << 19  # messages (fastglt.graphs.strips)
IN_FILE = 1 << 29  # bytes from which on a table of hidden rows is in a file (fastglt.system.scratch)
EDGE_BYTES = 4 + 1  # soft mask, hard mask
OWN_EDGE_BYTES = 4 + 8 + 4  # of edges that a process owns: gradient, Adam's moments, the best epoch's soft mask
NEAR, WINDOW = 0.9, 2048  # share of edges to nodes this near by number (on_disk.py)
NODE_BYTES = 6 * 8  # where rows begin, degrees, labels, parts and their order, training nodes
RESULTS = Path(__file__).parent.parent / "docs" / "results" / "cluster-plan.json"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A graph and how it is divided."""

    edges: int
    parts: int
    ranks: int = 1
    in_step: int = SHARES  # parts of a step, each a share of its own

    @property
    def key(self) -> str:
        return " ".join(map(str, (self.edges, self.parts, self.in_step, self.ranks)))

    @property
    def most(self) -> float:
        """The share of all strips that the first process has: they are dealt out whole."""
        strips = (2 * self.edges + self.nodes) / STRIP
        return min(1.0, -(-(int(strips) + 1) // self.ranks) / strips)

    @property
    def nodes(self) -> int:
        return 2 * self.edges // DEGREE

    @property
    def share_nodes(self) -> float:
        """Nodes of the graph that one process computes with at a time."""
        return self.nodes / self.parts

    @property
    def held(self) -> float:
        """Bytes for the edges that a process holds throughout."""
        return (EDGE_BYTES + OWN_EDGE_BYTES / self.ranks) * self.edges

    @property
    def handed_edges(self) -> tuple[float, float]:
        """Bytes for the gradients of edges, of those inside a part, with their numbers; for the soft mask's own."""
        inside = NEAR * (1 - WINDOW / 2 / self.share_nodes) + (1 - NEAR) / self.parts
        return 8.0 * inside * self.edges / self.ranks, 4.0 * self.edges / self.ranks

    @property
    def traffic(self) -> dict[str, float]:
        """Bytes that a process hands over in an epoch; one process alone has nobody to hand them to."""
        if self.ranks == 1:
            return {"gradients": 0.0, "edges": 0.0, "rows": 0.0}
        steps = -(-self.parts // self.in_step)
        rows = 4 * self.nodes * self.most * (HIDDEN + CLASSES + CLASSES)  # sent by two layers, then the outputs
        return {
            "gradients": 4.0 * steps * self.in_step * (2 + LEAVES + WEIGHTS),
            "edges": sum(self.handed_edges),
            "rows": rows,
        }

    @property
    def table_bytes(self) -> float:
        """Hidden rows that are held in memory while the graph is evaluated: what all send, what is made of it."""
        whole = 4.0 * self.nodes * HIDDEN
        own = whole * self.most
        tables = (whole, whole) if self.ranks == 1 else (own, whole, own)
        return sum(table for table in tables if table < IN_FILE)

    @property
    def page_bytes(self) -> float:
        """Features and rows that are mapped when a step ends: of all its shares that a process computes."""
        return (4 * FEATURES + 8 * (DEGREE + 1)) * self.share_nodes * -(-self.in_step // self.ranks)

    def memory(self, constants: dict[str, float]) -> float:
        """The most that a process has resident."""
        held = self.held + NODE_BYTES * self.nodes
        step = constants["bytes_per_share_node"] * self.share_nodes + constants["pages"] * self.page_bytes
        return constants["base_bytes"] + held + step + constants["tables"] * self.table_bytes

    def seconds(self, constants: dict[str, float], *, bandwidth: float) -> dict[str, float]:
        """Of an epoch: computed by each process, and handed over at so many bytes a second."""
        shared = constants["step_seconds_per_edge"] * self.edges / self.ranks
        shared += constants["rows_seconds_per_edge"] * self.edges * self.most
        shared += constants["edge_update_seconds_per_edge"] * self.edges / self.ranks
        once, to_all = self.handed_edges
        handed = 2 * self.traffic["gradients"] + once + (to_all + self.traffic["rows"]) * (self.ranks - 1)
        return {"computing": shared, "handing over": handed / bandwidth}


def train(graph: Path, parts: int, in_step: int, epochs: int) -> dict[str, Any]:
    """A few epochs in this process, as one of those that torchrun has started."""
    from fastglt.data import load
    from fastglt.models import build
    from fastglt.runs.experiment import use_machine
    from fastglt.system.process import current_memory, peak_memory
    from fastglt.system.ranks import joined
    from fastglt.system.seeds import own_random_state
    from fastglt.tasks.node_classification import NodeClassification
    from fastglt.training.hooks import Hooks
    from fastglt.training.loop import Training
    from fastglt.training.recipe import Recipe

    use_machine(1)
    imported = current_memory()
    with joined() as world:
        dataset = load(str(graph))
        task = NodeClassification.from_tensors(dataset.tensors, compressed=dataset.compressed)
        shape = {"in_channels": FEATURES, "hidden": HIDDEN, "out_channels": CLASSES}
        network = build({"name": "gcn", **shape, "dropout": 0.5, "seed": 0})
        recipe = Recipe(lr=0.01, parts=parts, partition="blocks", parts_per_step=in_step, shares=in_step)
        spent: dict[str, list[float]] = {"epoch": [], "rows": [], "edges": []}
        with own_random_state(task.device):
            training = Training(network, task, recipe, seed=0)
            training.begin_stage("soft", soft_edges=True)
            _time(training, "evaluate", spent["rows"])
            _time(training, "move_edges", spent["edges"])
            for _ in range(epochs):
                began = time.process_time()
                training.run_epoch(Hooks())
                spent["epoch"].append(time.process_time() - began)
        found = world.report(peak_memory())
        mask = training.soft_edge_mask
        assert mask is not None
        return {
            "edges": task.graph.num_edges,
            "imported_bytes": imported,
            "cpu_seconds": {name: min(seconds) for name, seconds in spent.items()},
            "checksum": float(mask.detach().double().abs().sum()),
            **found,
        }


def _time(training: Any, name: str, seconds: list[float]) -> None:
    original = getattr(training, name)

    def timed(*given: Any) -> Any:
        began = time.process_time()
        found = original(*given)
        seconds.append(time.process_time() - began)
        return found

    setattr(training, name, timed)


CALIBRATION = (
    Case(edges=1_000_000, parts=2, in_step=1),
    Case(edges=1_000_000, parts=4),
    Case(edges=2_000_000, parts=8),
)
CHECKED = tuple(Case(edges=2_000_000, parts=8, ranks=ranks) for ranks in (1, 2, 4))


def measure(folder: Path, out: Path) -> None:
    """Run what is not in the results yet."""
    rows: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    for case in dict.fromkeys((*CALIBRATION, *CHECKED)):
        if case.key not in rows:
            print(f"{case.edges:,} edges, {case.parts} parts, {case.ranks} processes", file=sys.stderr, flush=True)
            rows[case.key] = _apart(case, folder)
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(rows, indent=1) + "\n")


def _apart(case: Case, folder: Path) -> dict[str, Any]:
    graph = folder / f"generated-{case.edges}.fgr"
    if not graph.exists():
        script = Path(__file__).with_name("on_disk.py")
        prepare = ["--only", "prepare", "--number", str(case.edges), "--folder", str(graph)]
        subprocess.run([sys.executable, str(script), *prepare], check=True, stdout=subprocess.DEVNULL)
    result = folder / "rank-0.json"
    inner = [__file__, "train", "--folder", str(graph), "--parts", str(case.parts)]
    inner += ["--in-step", str(case.in_step), "--out", str(result)]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(case.ranks)]
    command = [sys.executable, *launch, *inner] if case.ranks > 1 else [sys.executable, *inner]
    subprocess.run(command, check=True)
    return {**asdict(case), **json.loads(result.read_text())}


def constants_of(rows: dict[str, Any]) -> dict[str, float]:
    """From the runs of one process: what is there before a graph is, what the rest takes, seconds an edge."""
    found = [rows[case.key] for case in CALIBRATION]
    base = min(row["imported_bytes"] for row in found)
    cases = [replace(case, edges=row["edges"]) for case, row in zip(CALIBRATION, found, strict=True)]
    left = [
        row["peak_bytes"][0] - base - case.held - NODE_BYTES * case.nodes
        for row, case in zip(found, cases, strict=True)
    ]
    terms = [[case.share_nodes, case.page_bytes, case.table_bytes] for case in cases]
    node, pages, tables = np.linalg.solve(np.array(terms), np.array(left)).tolist()
    cpu, edges = found[-1]["cpu_seconds"], found[-1]["edges"]
    return {
        "base_bytes": base,
        "bytes_per_share_node": node,
        "pages": pages,
        "tables": tables,
        "step_seconds_per_edge": (cpu["epoch"] - cpu["rows"] - cpu["edges"]) / edges,
        "rows_seconds_per_edge": cpu["rows"] / edges,
        "edge_update_seconds_per_edge": cpu["edges"] / edges,
    }


def check(rows: dict[str, Any]) -> None:
    """Print measured beside predicted, of the process that has most."""
    constants = constants_of(rows)
    print(", ".join(f"{name} {value:.3g}" for name, value in constants.items()))
    for case in CHECKED:
        row = rows[case.key]
        real = replace(case, edges=row["edges"])
        print(f"{case.ranks} processes (sum of the soft edge mask {row['checksum']:.6f})")
        cells = {"memory": (max(row["peak_bytes"]), real.memory(constants))}
        cells |= {kind: (max(row["bytes_per_epoch"][kind]), count) for kind, count in real.traffic.items()}
        for name, (measured, predicted) in cells.items():
            apart = f"{predicted / measured - 1:+.1%}" if measured else ""
            print(f"  {name:10} {measured / 1e6:8.1f} MB, predicted {predicted / 1e6:8.1f} {apart}")
        measured, predicted = row["cpu_seconds"]["epoch"], real.seconds(constants, bandwidth=1e12)["computing"]
        print(f"  {'processor':10} {measured:8.2f} s,  predicted {predicted:8.2f} {predicted / measured - 1:+.1%}")


def plan(rows: dict[str, Any], edges: int, ranks: int, share_nodes: int, bandwidth: float) -> None:
    """Print what a graph takes."""
    constants = constants_of(rows)
    parts = max(ranks, round(2 * edges / DEGREE / share_nodes))
    case = Case(edges=edges, parts=parts, ranks=ranks)
    traffic, seconds = case.traffic, case.seconds(constants, bandwidth=bandwidth)
    print(f"{edges:,} edges, {case.nodes:,} nodes, {parts} parts, {ranks} processes of one core each")
    print(f"  memory       {case.memory(constants) / 2**30:.1f} GB of each process")
    for kind, count in traffic.items():
        print(f"  {kind:12} {count / 2**30:.2f} GB handed over by each process in an epoch")
    for kind, count in seconds.items():
        print(f"  {kind:12} {count:,.0f} s of each epoch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "check", "plan", "train"])
    parser.add_argument("--folder", type=Path, default=Path("on-disk"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--in-step", type=int, default=SHARES)
    parser.add_argument("--edges", type=float, default=1e9)
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--share-nodes", type=int, default=250_000)
    parser.add_argument("--bandwidth", type=float, default=1.25e9, help="bytes a second (10 Gbit/s: 1.25e9)")
    given = parser.parse_args()
    if given.what == "train":
        found = train(given.folder, given.parts, given.in_step, epochs=2)
        if int(os.environ.get("RANK", "0")) == 0:
            given.out.write_text(json.dumps(found))
    elif given.what == "measure":
        given.folder.mkdir(parents=True, exist_ok=True)
        measure(given.folder, given.out)
    elif given.what == "check":
        check(json.loads(given.out.read_text()))
    else:
        plan(json.loads(given.out.read_text()), int(given.edges), given.ranks, given.share_nodes, given.bandwidth)


if __name__ == "__main__":
    main()

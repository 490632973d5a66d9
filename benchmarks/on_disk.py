"""Graphs larger than memory: prepared on disk and trained by parts, with the time and the memory that takes.

    python benchmarks/on_disk.py --edges 1e7,1e8 --folder /big/disk [--out docs/results/on-disk.json]

Each size is generated (12 edges a node on average, nine of ten to nodes that have nearly the same number, 128
features), prepared and trained in processes of their own: a GCN of width 64 with a soft edge mask, two epochs by
parts of 250,000 nodes, evaluated after each on the whole graph. Memory is Linux's mark of the most that a process
had resident (VmHWM), pages of mapped files included. A size that is in the results is not measured again; one that
was prepared is not
prepared again; --remove removes the graphs in the end.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

DEGREE, FEATURES, CLASSES, HIDDEN = 12, 128, 4, 64
NEAR, WINDOW, SAME = 0.9, 2048, 4096  # share of edges to nodes this near by number; so many in a row have one class
PART = 250_000  # nodes of a part
MEMORY = "2GB"


def labels_of(nodes: int) -> Any:
    classes = np.random.default_rng(0).integers(CLASSES, size=-(-nodes // SAME))
    return np.repeat(classes, SAME)[:nodes]


def edges_of(nodes: int, edges: int, most: int) -> Iterator[tuple[Any, Any]]:
    """So many and a few more, for some are drawn twice; a piece depends on its number alone."""
    total, size = int(edges * 1.0025), min(most, 1 << 24)
    for number, first in enumerate(range(0, total, size)):
        rng, count = np.random.default_rng([1, number]), min(size, total - first)
        source = rng.integers(nodes, size=count)
        near = rng.integers(1, WINDOW, size=count) * rng.choice([-1, 1], count)
        target = np.where(rng.random(count) < NEAR, source + near, rng.integers(nodes, size=count)) % nodes
        proper = source != target
        yield source[proper], target[proper]


def rows_of(labels: Any) -> Iterator[Any]:
    centres = np.random.default_rng(2).random((CLASSES, FEATURES), dtype=np.float32) * 0.2
    for first in range(0, len(labels), 1 << 16):
        some = labels[first : first + (1 << 16)]
        noise = np.random.default_rng([3, first]).random((len(some), FEATURES), dtype=np.float32)
        yield noise + centres[some] - np.float32(0.6)


def prepare(edges: int, out: Path) -> dict[str, Any]:
    from fastglt.data.base import random_split
    from fastglt.data.disk.prepare import prepare as make
    from fastglt.data.disk.prepare import read_memory
    from fastglt.data.disk.streams import Stream
    from fastglt.system.process import peak_memory

    nodes = 2 * edges // DEGREE
    labels = labels_of(nodes)
    stream = Stream(
        name=f"generated:{edges}",
        labels=labels,
        features=FEATURES,
        rows=lambda: rows_of(labels),
        edges=lambda most: edges_of(nodes, edges, most),
        masks=random_split(nodes, 0),
    )
    began, cpu = time.perf_counter(), time.process_time()
    manifest = make(lambda: stream, out, memory=read_memory(MEMORY), directed=False, asked=stream.name, tell=told)
    return {
        "nodes": manifest.nodes,
        "edges": manifest.edges,
        "bytes_on_disk": sum(entry["bytes"] for entry in manifest.arrays.values()),
        "prepare_seconds": time.perf_counter() - began,
        "prepare_cpu_seconds": time.process_time() - cpu,
        "prepare_peak_bytes": peak_memory(),
    }


def train(folder: Path, epochs: int) -> dict[str, Any]:
    from fastglt.data import load
    from fastglt.models import build
    from fastglt.runs.experiment import use_machine
    from fastglt.system.process import current_memory, peak_memory
    from fastglt.system.seeds import own_random_state
    from fastglt.tasks.node_classification import NodeClassification
    from fastglt.training.hooks import Hooks
    from fastglt.training.loop import Training
    from fastglt.training.recipe import Recipe

    use_machine(1)
    dataset = load(str(folder))
    given = {} if dataset.compressed is None else {"compressed": dataset.compressed}
    task = NodeClassification.from_tensors(dataset.tensors, **given)
    shape = {"in_channels": FEATURES, "hidden": HIDDEN, "out_channels": CLASSES}
    network = build({"name": "gcn", **shape, "dropout": 0.5, "seed": 0})
    parts = max(2, round(task.graph.num_nodes / PART))
    recipe = Recipe(lr=0.01, parts=parts, partition="blocks")
    before, seconds, cpu, train_only = current_memory(), [], [], []
    with own_random_state(task.device):
        training = Training(network, task, recipe, seed=0)
        training.begin_stage("soft", soft_edges=True)
        evaluate, spent = training.evaluate, [0.0]

        def timed() -> Any:
            began = time.perf_counter()
            found = evaluate()
            spent[0] = time.perf_counter() - began
            return found

        training.evaluate = timed  # type: ignore[method-assign]
        for _ in range(epochs):
            began, began_cpu = time.perf_counter(), time.process_time()
            training.run_epoch(Hooks())
            seconds.append(time.perf_counter() - began)
            cpu.append(time.process_time() - began_cpu)
            train_only.append(seconds[-1] - spent[0])
            peak, scores = peak_memory() / 2**30, training.history[-1]
            told(f"epoch {len(seconds)}: {seconds[-1]:.1f} s, peak {peak:.2f} GB, test {scores.test:.4f}")
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "parts": parts,
        "epoch_seconds": seconds,
        "epoch_cpu_seconds": cpu,
        "steps_seconds": train_only,
        "seconds_per_edge": min(seconds) / task.graph.num_edges,
        "cpu_seconds_per_edge": min(cpu) / task.graph.num_edges,
        "peak_bytes": peak_memory(),
        "before_bytes": before,
        "major_faults": used.ru_majflt,
        "val": [record.val for record in training.history],
        "test": [record.test for record in training.history],
    }


def told(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def measure(edges: int, folder: Path, epochs: int) -> dict[str, Any]:
    graph, facts = folder / f"generated-{edges}.fgr", folder / f"generated-{edges}.json"
    if not graph.exists() or not facts.exists():
        facts.write_text(json.dumps(_apart("prepare", edges, graph)))
    return {**json.loads(facts.read_text()), **_apart("train", epochs, graph)}


def _apart(what: str, number: int, graph: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--only", what, "--number", str(number), "--folder", str(graph)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--edges", default="1e6")
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--folder", type=Path, default=Path("on-disk"))
    options.add_argument("--out", type=Path)
    options.add_argument("--remove", action="store_true")
    options.add_argument("--only", choices=["prepare", "train"], help=argparse.SUPPRESS)
    options.add_argument("--number", type=int, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.only is not None:
        row = prepare(asked.number, asked.folder) if asked.only == "prepare" else train(asked.folder, asked.number)
        print(json.dumps(row))
        return
    asked.folder.mkdir(parents=True, exist_ok=True)
    results = asked.out or asked.folder / "on-disk.json"
    rows = json.loads(results.read_text()) if results.exists() else {}
    for edges in (int(float(part)) for part in asked.edges.split(",")):
        if str(edges) not in rows:
            rows[str(edges)] = measure(edges, asked.folder, asked.epochs)
            results.write_text(json.dumps(rows, indent=1) + "\n")
        _tell(rows[str(edges)])
        if asked.remove:
            import shutil

            shutil.rmtree(asked.folder / f"generated-{edges}.fgr", ignore_errors=True)


def _tell(row: dict[str, Any]) -> None:
    gigabytes = {name: row[name] / 2**30 for name in ("bytes_on_disk", "prepare_peak_bytes", "peak_bytes")}
    print(f"{row['edges']:,} edges, {row['nodes']:,} nodes, {row['parts']} parts")
    print(f"  prepared in {row['prepare_seconds']:.0f} s ({row['prepare_cpu_seconds']:.0f} s of the processor)")
    print(f"  {gigabytes['bytes_on_disk']:.1f} GB on disk, peak {gigabytes['prepare_peak_bytes']:.2f} GB")
    each = ", ".join(f"{seconds:.0f}" for seconds in row["epoch_seconds"])
    print(f"  epochs of {each} s, {1e9 * row['seconds_per_edge']:.0f} ns an edge")
    print(f"  peak {gigabytes['peak_bytes']:.2f} GB")
    print(f"  test accuracy {100 * row['test'][-1]:.1f} %")


if __name__ == "__main__":
    main()

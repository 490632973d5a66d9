"""Mini-batches against full batch: scores, masks, seconds and memory of a search, each in a process of its own.

    python benchmarks/parts.py run --dataset ogbn-arxiv --model gcn --arms 1:120 16:40 --seeds 3
    python benchmarks/parts.py run --model resgcn --option num_layers=7 --arms 1:150 16/exact:150 160/10:150
    python benchmarks/parts.py run --model resgcn --option norm=renorm --arms 16/4:90 16/4x4:90
    python benchmarks/parts.py table

An arm is a number of METIS parts, of parts a step and shares of it (1 unless it says so; *exact*: all parts in
every step, as full batch) and of epochs. Each search is FastGLT's, to 20 % of the edges and half of the weights
gone; the score is that of the network it leaves, on the whole graph, at its best validation epoch. Seconds are
those of the processor for an epoch, the median; memory is the most that training takes beyond what the process had
before it began, data and all. Each line of the file is one search, so a kill costs one; finished ones are not done
again.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

KEYS = ("dataset", "model", "option", "hidden", "lr", "parts", "per_step", "shares", "all_exact", "epochs", "seed")


def search(job: dict[str, Any]) -> dict[str, Any]:
    """One search; what it found and what it took."""
    from fastglt.methods.parts.schedules import kept_count
    from fastglt.runs.build import build_experiment
    from fastglt.system.process import current_memory, peak_memory, reset_peak
    from fastglt.training.loop import Training, train

    oneshot = max(1, job["epochs"] // 5)
    budget = {"oneshot_epochs": oneshot, "denoise_epochs": job["epochs"] - oneshot, "lr": job["lr"]}
    parts = {"parts": job["parts"], "parts_per_step": job["per_step"], "shares": job["shares"]}
    parts |= {"exact": job["all_exact"]}
    given = dict(text.split("=") for text in job["option"])
    options = {name: int(value) if value.isdigit() else value for name, value in given.items()}
    experiment = build_experiment(
        training={**budget, "interval": 2, **(parts if job["parts"] > 1 else {})},
        options={},
        graph_sparsity=0.2,
        weight_sparsity=0.5,
        method="fastglt",
        dataset=job["dataset"],
        model=job["model"],
        hidden=job["hidden"],
        model_options=options,
        seed=job["seed"],
        threads=1,
        data_root=Path(job["root"]) if job["root"] else None,
    )
    experiment.use_machine()
    prepared = experiment.prepare()
    before = reset_peak()
    training = Training(prepared.network, prepared.task, prepared.method.recipe, seed=job["seed"])
    seconds, clock = list[float](), [time.process_time()]

    def after_epoch(training: Training) -> None:
        seconds.append(time.process_time() - clock[0])
        clock[0] = time.process_time()
        print(f"{job['model']} {job['parts']} seed {job['seed']} epoch {training.epoch}", file=sys.stderr)

    best = train(training, prepared.method, after_epoch)
    edges, weights = best.masks.edges, (best.masks.weights_kept, best.masks.weights_total)
    exact = edges.count == kept_count(0.2, edges.size) and weights[0] == kept_count(0.5, weights[1])
    return {
        "val": best.scores.val,
        "test": best.scores.test,
        "best_epoch": best.epoch,
        "edges": [edges.count, edges.size],
        "weights": list(weights),
        "exact": exact,
        "seconds": median(seconds[1:]),
        "peak_mb": (peak_memory() - before) / 2**20,
        "held_mb": current_memory() / 2**20,
    }


def run(arguments: argparse.Namespace) -> None:
    """All searches that are not in the file yet."""
    done = [{name: line.get(name, False) for name in KEYS} for line in lines(arguments.file)]
    for seed in range(arguments.seeds):
        for arm in arguments.arms:
            division, epochs = arm.split(":")
            parts, _, step = division.partition("/")
            exact = step == "exact"
            per_step, _, shares = ("" if exact else step).partition("x")
            job = {name: getattr(arguments, name) for name in ("dataset", "model", "option", "hidden", "lr")}
            job |= {"parts": int(parts), "per_step": int(per_step or 1), "shares": int(shares or 1)}
            job |= {"all_exact": exact, "epochs": int(epochs), "seed": seed}
            if job in done:
                continue
            command = [sys.executable, __file__, "one", json.dumps({**job, "root": arguments.data_root})]
            found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            with arguments.file.open("a") as file:
                file.write(json.dumps({**job, **json.loads(found)}) + "\n")


def lines(file: Path) -> list[dict[str, Any]]:
    """What is finished."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def table(arguments: argparse.Namespace) -> None:
    """Each arm's mean ± standard deviation, and the differences between arms in standard errors."""
    arms: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for line in lines(arguments.file):
        key = (
            line["dataset"],
            " ".join([line["model"], *line["option"]]),
            line["parts"],
            line["per_step"],
            line["shares"],
            line.get("all_exact", False),
            line["epochs"],
        )
        arms.setdefault(key, []).append(line)
    for (dataset, model, parts, per_step, shares, exact, epochs), found in sorted(arms.items()):
        tests = [100 * line["test"] for line in found]
        spread = stdev(tests) if len(tests) > 1 else float("nan")
        print(
            f"{dataset} {model} parts {parts:3} / {'exact' if exact else per_step:2} in {shares:2} "
            f"epochs {epochs:4}  "
            f"test {fmean(tests):.2f} ± {spread:.2f} "
            f"(n = {len(tests)}, standard error {spread / len(tests) ** 0.5:.2f})  "
            f"seconds {fmean(line['seconds'] for line in found):.2f}  "
            f"peak {fmean(line['peak_mb'] for line in found):.0f} MB  "
            f"exact {all(line['exact'] for line in found)} {found[0]['edges']} {found[0]['weights']}"
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("one", help="one search, told as JSON; for a process of its own")
    one.add_argument("job")
    for name in ("run", "table"):
        command = commands.add_parser(name)
        command.add_argument("--file", type=Path, default=Path("parts.jsonl"))
        if name == "run":
            command.add_argument("--dataset", default="ogbn-arxiv")
            command.add_argument("--model", default="gcn")
            command.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
            command.add_argument("--hidden", type=int, default=128)
            command.add_argument("--lr", type=float, default=0.01)
            command.add_argument(
                "--arms", nargs="+", default=["1:120", "16:40"], metavar="PARTS[/A_STEP[xSHARES]|/exact]:EPOCHS"
            )
            command.add_argument("--seeds", type=int, default=3)
            command.add_argument("--data-root")
    arguments = parser.parse_args()
    if arguments.command == "one":
        print(json.dumps(search(json.loads(arguments.job))))
    else:
        {"run": run, "table": table}[arguments.command](arguments)


if __name__ == "__main__":
    main()

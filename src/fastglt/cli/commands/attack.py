"""`fastglt attack`: poison a graph, to see what a defence is worth on it."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.progress import Notes
from fastglt.errors import InputError

EXAMPLES = (
    "Examples: [bold]fastglt attack --dataset cora --rate 0.05 --out poisoned.npz[/] · "
    "[bold]fastglt suspects --dataset poisoned.npz[/] (which edges were added?) · "
    "[bold]fastglt find --dataset poisoned.npz --method forest --robust[/] (a ticket on it)"
)


def attack(
    dataset: arguments.Dataset,
    rate: Annotated[float, typer.Option(help="Share of the edges to change, in (0, 1].")],
    out: Annotated[Path, typer.Option(help="The poisoned graph: a .npz file that --dataset reads.")],
    steps: Annotated[int, typer.Option(help="Of gradient ascent.")] = 125,
    fresh: Annotated[int, typer.Option(help="Steps after which the block takes no new pairs.")] = 100,
    block: Annotated[
        int,
        typer.Option(
            help="Pairs that are looked at at a time, twice as many as are changed at least; memory grows with it."
        ),
    ] = 250_000,
    width: Annotated[int, typer.Option(help="Hidden units of the GCN that is attacked.")] = 64,
    epochs: Annotated[int, typer.Option(help="That it is trained for.")] = 200,
    seed: Annotated[int, typer.Option(help="Random seed (network, pairs).")] = 0,
    split_seed: arguments.SplitSeed = 0,
    data_root: arguments.DataRoot = None,
    threads: Annotated[int, typer.Option(help="0: all cores.")] = 0,
    quiet: arguments.Quiet = False,
    json_output: arguments.AsJson = False,
) -> None:
    """Add and remove edges so that a GCN errs, exactly round(rate × edges) of them, and write the poisoned graph.

    Random block coordinate descent, as PR-BCD (Geisler et al., 2021): memory is linear in edges and block, so that
    large graphs can be attacked. The attacker knows features, graph, training and validation labels; test labels
    are not used. It is for testing your own graphs and defences.
    """
    from fastglt.attacks.blocks import AttackSettings, attack_task_edges
    from fastglt.data import load
    from fastglt.runs.experiment import use_machine
    from fastglt.tasks.node_classification import NodeClassification

    if out.suffix.lower() != ".npz":
        raise InputError(f"--out must end in .npz (got '{out}')")
    settings = AttackSettings(steps=steps, fresh=fresh, block=block, width=width, epochs=epochs, seed=seed)
    use_machine(threads)
    loaded = load(dataset, root=data_root, split_seed=split_seed)
    if loaded.tensors.get("y") is None or loaded.tensors["y"].dim() != 1:
        raise InputError(f"the attack is on predicted classes (got '{loaded.name}', which has none)")
    for name in ("edge_weight", "edge_attr"):
        if name in loaded.tensors:
            raise InputError(f"the attack is on edges without values (got {name} in '{loaded.name}')")
    task = NodeClassification.from_tensors(loaded.tensors, **loaded.direction)
    began = time.monotonic()
    with Notes(f"attacking {task.graph.num_edges:,} edges", quiet=quiet) as notes:
        found = attack_task_edges(task, rate=rate, settings=settings, tell=notes.tell)
    _write(out, loaded.tensors, found.edges)
    facts = {
        "dataset": loaded.name,
        "edges_before": task.graph.num_edges,
        "edges_after": found.edges.shape[1],
        "added": found.added.shape[1],
        "removed": found.removed.shape[1],
        "loss_before": found.loss_before,
        "loss_after": found.loss_after,
        "changed_predictions": found.wrong_after,
        "seconds": time.monotonic() - began,
        "out": str(out),
    }
    typer.echo(json.dumps(facts)) if json_output else _tell(facts)


def _write(path: Path, tensors: dict[str, Any], edges: Any) -> None:
    """The dataset with other edges; its self-loops stay."""
    import torch

    from fastglt.data.npz_writer import npz_bytes
    from fastglt.system.storage import write_atomically

    before = tensors["edge_index"]
    loops = before[:, before[0] == before[1]]
    both = torch.cat([edges, edges.flip(0), loops], dim=1)
    write_atomically(path, npz_bytes({**tensors, "edge_index": both}))


def _tell(facts: dict[str, Any]) -> None:
    from fastglt.report.tables import say

    say(
        f"{facts['dataset']}: {facts['edges_before']:,} edges; {facts['added']:,} added, {facts['removed']:,} "
        f"removed, in {facts['seconds']:.1f} s"
    )
    say(
        f"The attacked GCN predicts another class for {100 * facts['changed_predictions']:.1f} % of the nodes that "
        "are not trained on."
    )
    say(f"Written to {facts['out']}; what is left after a fresh training, fastglt find --dataset tells.")

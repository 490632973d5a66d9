"""`fastglt predict`: the class of each node, the probability of links, or whatever the ticket's task predicts."""

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.compiled import OtherGraph, TicketPath, compiled
from fastglt.cli.shared.gather import gather
from fastglt.cli.shared.pair_predictions import PredictedPairs, read_pairs
from fastglt.cli.shared.tickets import OwnGraph
from fastglt.errors import InputError
from fastglt.report.tables import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from fastglt.data.base import Names
    from fastglt.deploy import Predictor
    from fastglt.tasks import Task

EXAMPLES = (
    "Examples: [bold]fastglt predict runs/a[/] · "
    "[bold]fastglt predict runs/a --nodes 0-9,15[/] · "
    "[bold]fastglt predict cora.safetensors --dataset cora --nodes ids.txt --out predictions.csv[/] · "
    "[bold]fastglt predict runs/links --pairs pairs.csv[/] (of a ticket for links)"
)
_ROWS = 10  # of the table on a screen
_SUFFIXES = (".npz", ".csv")
_RANGE = re.compile(r"(\d+)(?:\s*-\s*(\d+))?")


@gather
def predict(
    ticket: TicketPath,
    graph: OwnGraph,
    nodes: Annotated[
        str | None,
        typer.Option(
            help="As in 0-9,15, or a file with one id on a line (default: every node). Nodes of a CSV file are "
            "called as they are there."
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="Of a ticket for links: a CSV file with source,target on each line, as --nodes names them."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write nodes, classes and probabilities to a .npz or .csv file.")
    ] = None,
    other_graph: OtherGraph = False,
    json_output: arguments.AsJson = False,
) -> None:
    """Predict the class of every node, or of some, with the ticket's trained network on its pruned graph.

    Without --out the first rows are shown; with --json, all of them are printed. Where test nodes are among those
    asked for, the score on them is told. Nodes and classes are numbers; beside them stand the ids and labels of a
    graph in CSV files. A ticket for links predicts how likely each of the --pairs is one.
    """
    if out is not None and out.suffix not in _SUFFIXES:
        raise InputError(f"predictions are written to .npz or .csv (got '{out}')")
    predictor, task, names = compiled(ticket, graph, other_graph=other_graph)
    found: _Predicted | PredictedPairs
    if task.of_pairs:
        found = _of_pairs(predictor, nodes, pairs, names)
        facts = found.facts()
    elif pairs is not None:
        raise InputError(f"--pairs is for tickets of links (got one of the task '{task.name}'); use --nodes")
    else:
        chosen = read_nodes(nodes, task.graph.num_nodes, names and names.nodes)
        found = _Predicted(chosen, predictor.logits(None if nodes is None else chosen), predictor.task, names)
        facts = found.facts(task)
    if out is not None:
        from fastglt.system.storage import write_atomically

        write_atomically(out, found.npz() if out.suffix == ".npz" else found.csv())
        facts["out"] = str(out)
    if json_output:
        rows = {} if out is not None else {"predictions": found.rows()}
        typer.echo(json.dumps({**facts, **rows}))
    elif task.of_pairs:
        _print_pairs(facts, [] if out is not None else found.rows(_ROWS))
    else:
        _print(facts, [] if out is not None else found.rows(_ROWS))


def _of_pairs(
    predictor: "Predictor", nodes: str | None, pairs: Path | None, names: "Names | None"
) -> PredictedPairs:
    """The probability of each pair of a file."""
    if pairs is None or nodes is not None:
        got = "no --pairs" if nodes is None else "--nodes"
        raise InputError(
            f"a ticket for links predicts pairs (got {got}); pass --pairs and a CSV file, source,target"
        )
    ids = None if names is None else names.nodes
    asked = read_pairs(pairs, predictor.graph.num_nodes, ids)
    shares = predictor.task.probabilities(predictor.logits(asked))
    assert shares is not None
    return PredictedPairs(asked, shares[:, 1], ids)


def read_nodes(text: str | None, num_nodes: int, ids: "Sequence[str] | None" = None) -> "Tensor":
    """Node numbers in the order asked for: a list with ranges, or a file with one id on a line; None is every node.

    Where nodes have ids, these are what is asked for.

    >>> read_nodes("2-4, 0", 9).tolist()
    [2, 3, 4, 0]
    >>> read_nodes("b, 7-8", 3, ids=["8", "7", "b"]).tolist()
    [2, 1, 0]
    """
    import torch

    if text is None:
        return torch.arange(num_nodes)
    if not text.strip():
        raise InputError(f"nodes must be at least one (got '{text}')")
    if re.fullmatch(r"[\d\s,-]+", text) or (ids is not None and not _is_file(text)):
        parts, where = text.split(","), f"'{text}'"
    else:
        parts, where = _lines(Path(text)), f"in '{text}'"
    known = None if ids is None else {name: number for number, name in enumerate(ids)}
    found: list[int] = []
    for part in filter(None, map(str.strip, parts)):
        found += _numbers(part, num_nodes, where) if known is None else _called(part, known, where)
    if not found:
        raise InputError(f"nodes must be at least one (got none, {where})")
    return torch.tensor(found)


def _numbers(part: str, num_nodes: int, where: str) -> range:
    match = _RANGE.fullmatch(part)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise InputError(f"nodes must be as in 0-9,15, or a file with one id on a line (got {_got(part, where)})")
    last = int(match[2] or match[1])
    if last >= num_nodes:
        raise InputError(f"nodes must lie in 0 … {num_nodes - 1} (got {_got(str(last), where)})")
    return range(int(match[1]), last + 1)


def _called(part: str, known: "Mapping[str, int]", where: str) -> list[int]:
    """The number of the node of an id, or those of a range of ids that are numbers themselves."""
    match, found = _RANGE.fullmatch(part), []
    first_to_last = () if match is None or match[2] is None else range(int(match[1]), int(match[2]) + 1)
    for name in [part] if part in known or not first_to_last else map(str, first_to_last):
        if name not in known:
            raise InputError(f"nodes must be ids of the graph's file (got {_got(name, where)})")
        found.append(known[name])
    return found


def _got(wrong: str, where: str) -> str:
    """What is wrong and where it stands, unless nothing else stands there."""
    return where if where == f"'{wrong}'" else f"'{wrong}', {where}"


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # too long for a path: a list of many ids
        return False


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except FileNotFoundError:
        raise InputError(f"nodes must be as in 0-9,15, or a file with one id on a line (got '{path}')") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"the file of nodes cannot be read: {reason} (got '{path}')") from None


class _Predicted:
    """What a network's outputs for some nodes predict, in every form that is asked for."""

    def __init__(self, nodes: "Tensor", outputs: "Tensor", task: "type[Task]", names: "Names | None") -> None:
        self.nodes, self.outputs, self.task, self.names = nodes, outputs, task, names

    def facts(self, task: "Task") -> dict[str, Any]:
        """How many, and how well on the test nodes among them; a score that cannot be computed is null."""
        import numpy as np
        import torch

        from fastglt.tasks import NodeTask

        assert isinstance(task, NodeTask), "predictions are for nodes"
        _, first = np.unique(self.nodes.numpy(), return_index=True)  # nodes may be asked for twice
        tested = torch.zeros(len(self.nodes), dtype=torch.bool)
        tested[torch.from_numpy(first)] = True
        tested &= torch.isin(self.nodes, task.test)
        score = task.score(self.outputs[tested], self.nodes[tested])
        return {
            "nodes": self.nodes.numel(),
            task.answers: self.outputs.shape[1],
            "metric": task.metric,
            "test_nodes": int(tested.sum()),
            "test_score": None if math.isnan(score) else score,
        }

    def rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """A row for each node, or for the first ones: numbers, names if there are any, the probabilities last."""
        outputs, names = self.outputs[:most], self.names
        decided, shares = self.task.decide(outputs), self.task.probabilities(outputs)
        columns = {"node": self.nodes[:most].tolist(), self.task.answer: self.task.listed(decided)}
        if names is not None:
            columns["id"] = [names.nodes[node] for node in columns["node"]]
        if names is not None and names.classes and self.task.answer == "class":
            columns["label"] = [names.classes[kind] for kind in columns["class"]]
        if shares is not None:
            columns["probabilities"] = shares.tolist()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def npz(self) -> bytes:
        """The columns as arrays."""
        import numpy as np

        file, decided = io.BytesIO(), self.task.decide(self.outputs).numpy()
        shares, names = self.task.probabilities(self.outputs), self.names
        arrays = {"nodes": self.nodes.numpy(), self.task.answers: decided}
        if shares is not None:
            arrays["probabilities"] = shares.numpy()
        if names is not None:
            arrays["ids"] = np.array(names.nodes)[self.nodes.numpy()]
        if names is not None and names.classes and self.task.answer == "class":
            arrays["labels"] = np.array(names.classes)[decided]
        np.savez(file, allow_pickle=False, **arrays)
        return file.getvalue()

    def csv(self) -> bytes:
        """The rows as a table; a column p0, p1, … for each probability."""
        text, rows = io.StringIO(), self.rows()
        writer = csv.writer(text, lineterminator="\n")
        shares = [row.pop("probabilities", []) for row in rows]
        writer.writerow([*rows[0], *(f"p{i}" for i in range(len(shares[0])))])
        for row, values in zip(rows, shares, strict=True):
            writer.writerow([*map(_cell, row.values()), *(f"{share:.7g}" for share in values)])
        return text.getvalue().encode()


def _print_pairs(facts: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    from rich.console import Console

    from fastglt.report.tables import empty_table, print_table

    if rows:
        table = empty_table(*rows[0])
        for row in rows:
            table.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
        print_table(table, Console())
    if "out" in facts:
        say(f"{facts['pairs']:,} predictions written to {facts['out']}")
    elif facts["pairs"] > len(rows):
        say(f"… and {facts['pairs'] - len(rows):,} more; --out writes them all")


def _cell(value: Any) -> str:
    """A value in a table; several are apart by spaces.

    >>> _cell(3), _cell([1, 5])
    ('3', '1 5')
    """
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _print(facts: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    from rich.console import Console

    from fastglt.cli.shared.tables import percent
    from fastglt.report.tables import empty_table, print_table
    from fastglt.tasks.metrics import title_of

    console = Console()
    if rows:
        shares = [row.pop("probabilities", []) for row in rows]
        table = empty_table(*rows[0], *(["probability"] if shares[0] else []))
        for row, values in zip(rows, shares, strict=True):
            table.add_row(*map(_cell, row.values()), *([f"{max(values):.3f}"] if values else []))
        print_table(table, console)
    rest = facts["nodes"] - len(rows)
    if "out" in facts:
        say(f"{facts['nodes']:,} predictions written to {facts['out']}")
    elif rest:
        say(f"… and {rest:,} more; --out writes them all")
    if facts["test_score"] is not None:
        score = f"{title_of(facts['metric'])} on the {facts['test_nodes']:,} test nodes among them"
        say(f"{score}: {percent(facts['test_score'])}")

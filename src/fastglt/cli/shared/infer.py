"""The tickets that `fastglt bench infer` measures: those that are named, or found first."""

import hashlib
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastglt.cli.shared.measuring import Kept, Measurement, Pairs, pair_of
from fastglt.cli.shared.tickets import OwnGraph, open_ticket, refuse_users_model, task_of
from fastglt.errors import InputError
from fastglt.system.storage import as_file_name

if TYPE_CHECKING:
    from fastglt.bench import Note
    from fastglt.bench.results import Row
    from fastglt.runs.experiment import Prepared


def measurements_of(pairs: Pairs, tickets: Sequence[Path], kept: Kept, *, repeats: int) -> list[Measurement]:
    """One for each ticket, or for each pair of a dataset and a model."""
    if tickets:
        _refuse_to_find(pairs)
        return [_of_ticket(pairs, path, repeats) for path in dict.fromkeys(tickets)]
    found = []
    for experiment in pairs.experiments({}):
        prepared = experiment.prepare()
        measure = partial(_find_and_measure, pairs, prepared, kept, repeats)
        found.append(Measurement(what=pair_of(prepared), measure=measure))
    return found


def _refuse_to_find(pairs: Pairs) -> None:
    """What decides how tickets are found says nothing of those that are there."""
    defaults = {field.name: field.default for field in fields(Pairs)}
    for name in ("models", "graph_sparsity", "weight_sparsity", "hidden", "seed"):
        if getattr(pairs, name) != defaults[name]:
            flag, got = f"--{name.replace('_', '-')}", getattr(pairs, name)
            raise InputError(f"{flag} is for tickets that are found first (got {got}, and a ticket)")


def _of_ticket(pairs: Pairs, path: Path, repeats: int) -> Measurement:
    from fastglt.models import BACKBONES
    from fastglt.models.twins import check_twin

    ticket, file = open_ticket(path)
    refuse_users_model(ticket, "fastglt.compile_ticket(ticket, data, model)")
    check_twin(BACKBONES[ticket.model["name"]].twin, ticket.model["name"])
    dataset = _graph(pairs).load(file)
    what = {
        "dataset": dataset.name,
        "model": str(ticket.model["name"]),
        "ticket": str(file),
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "data": task_of(ticket, dataset).digest,
    }
    measure = partial(_measure, pairs, file, _graph(pairs).place(file), repeats)
    return Measurement(what=what, measure=measure)


def _graph(pairs: Pairs) -> OwnGraph:
    return OwnGraph(dataset=pairs.datasets, data_root=pairs.data_root, directed=pairs.directed)


def _find_and_measure(pairs: Pairs, prepared: "Prepared", kept: Kept, repeats: int, note: "Note") -> "Row":
    """Find the pair's ticket unless its folder has it, then measure it."""
    from fastglt.cli.shared.progress import stop_cleanly
    from fastglt.runs.entries import entry_of
    from fastglt.runs.run_folder import RunFolder, settings_digest
    from fastglt.runs.store import Store

    experiment = prepared.experiment
    settings = {**prepared.settings, "dense": False}
    name = f"infer-{as_file_name(experiment.dataset)}-{prepared.network.spec['name']}-{settings_digest(settings)}"
    folder = RunFolder(Path("runs") / name, settings, origin=prepared.origin)
    with folder.open(wait=True) as finished:
        metrics = finished
        if metrics is None:
            note("finding a ticket")
            with stop_cleanly(folder):
                prepared.warm_up()
                metrics = prepared.run(folder, dense=False)
        Store(kept.store).ensure(entry_of(settings, metrics, command="bench infer", folder=folder.path))
    graph = (experiment.dataset, experiment.directed)
    return _measure(pairs, folder.path / "ticket.safetensors", graph, repeats, note)


def _measure(pairs: Pairs, file: Path, graph: tuple[str, bool], repeats: int, note: "Note") -> "Row":
    from fastglt.bench.infer import measure
    from fastglt.data import load
    from fastglt.runs.experiment import thread_count

    (name, directed), (ticket, _) = graph, open_ticket(file)
    place: dict[str, Any] = {
        "root": None if pairs.data_root is None else str(pairs.data_root),
        "split_seed": _graph(pairs).split_seed_of(file),
        "directed": directed,
    }
    machine = {"threads": thread_count(pairs.threads), "device": pairs.chosen_device}
    source = {"name": name, **place, **machine}
    return measure(ticket, file, load(name, **place), source, repeats=repeats, note=note)

"""`fastglt.compare`: methods side by side, over seeds and sparsities."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Unpack

from fastglt.errors import InputError
from fastglt.methods import Targets
from fastglt.studies.compare.results import Comparison
from fastglt.studies.lists import Numbers, read_pairs, read_seeds
from fastglt.studies.shared import Place, Study, StudySettings


def compare(
    dataset: Place = "digits",
    *,
    methods: str | Sequence[str] = ("fastglt", "oneshot", "random"),
    graph_sparsity: Numbers = 0.2,
    weight_sparsity: Numbers = 0.9,
    seeds: Iterable[int] | str = range(5),
    split_seeds: Iterable[int] | str | None = None,
    **settings: Unpack[StudySettings],
) -> Comparison:
    """Compare methods on the same graph, model, seeds and sparsities, as `fastglt compare` does.

    >>> import fastglt
    >>> found = fastglt.compare("cora", methods=["fastglt", "fastglt[ramp=1]", "ugs"])  # doctest: +SKIP
    >>> print(found)  # the command's table  # doctest: +SKIP
    >>> found.cells()[0]["mean"]["search_test"]  # doctest: +SKIP

    What is finished, in `out` or in the store, is not computed again. Interrupted (Ctrl-C), runs stop with a
    checkpoint, and the same call goes on from there. A run that fails is among the result's `failures`,
    what runs have warned of among its `warnings`.

    Args:
        dataset: A name from `fastglt data list`, ``synthetic:nodes=…``, a .npz file, edges.csv or a folder in OGB's
            layout.
        task: What is predicted: a name, or ``module:Class`` of your own (default: what the data is for).
        task_options: The task's own options: ``{"decoding": "dot"}``.
        metric: How it is scored (default: the dataset's, or the task's first).
        model: A backbone's name, or ``module:Class`` of your own.
        model_options: The model's own options: ``{"dropout": 0.2}``.
        methods: Names, ``module:Class`` of your own, or variants such as ``fastglt[start=random,ramp=1]``.
        options: Options by method, for all of its variants: ``{"ugs": {"round_epochs": 100}}``.
        graph_sparsity: The share of edges to remove, or several.
        weight_sparsity: The share of weights, paired with those of edges; one alone goes with all.
        seeds: Random seeds (initial weights, dropout); also as text, ``"0-4"``.
        split_seed: Seed of the random split, if the data has none.
        split_seeds: Several of them: every run once for each, dense network and ticket paired by split and seed.
        budget: Epochs, learning rate and weight decay: a `Budget`, or what differs from the default, such as
            ``{"denoise_epochs": 100, "lr": 0.01}``. The default is the paper's for the dataset and the model.
        distill: A teacher, for distilled tickets, as of `fastglt.find_ticket`: True, or what is changed of it.
        inductive: The share of nodes to hide, with their edges, from teacher, search and training; networks are
            scored on those of them that are test nodes at the end.
        hidden: Width of the hidden layers (default: as published for OGB's sets, or 512).
        data_root: Folder of raw datasets (default: `FASTGLT_DATA`).
        directed: Do not symmetrise a graph from files.
        device: cpu, cuda, ….
        threads: Of each run; 0: all cores.
        jobs: Runs at a time; 0: as many as cores allow, or one on a GPU.
        out: Folder of the runs' folders (default: runs/compare-DATASET-MODEL).
        store: File in which every finished run is recorded (default: `FASTGLT_STORE`, or runs/results.sqlite).
        checkpoint_every: Seconds between checkpoints; 0: every epoch.
        engine: Who executes the runs: a name from `fastglt.runs.series.ENGINES`, or what makes an engine;
            None: nobody, and what is not recorded is left out.
        progress: Print a line on standard error for each run, or call a function with it.
        dry_run: Raise `fastglt.runs.forecast.DryRun`, with what would run and for how long, instead of running it.
        with_tickets: Take from the store only runs whose tickets' files are at hand, and make the others anew.
    """
    study = Study(command="compare", dataset=dataset, methods=methods, **settings)
    pairs = [Targets(graph_sparsity=g, weight_sparsity=w) for g, w in read_pairs(graph_sparsity, weight_sparsity)]
    trials = [(label, targets) for targets, label in product(pairs, study.variants)]
    return Comparison(*study.run(trials, read_seeds(seeds), _splits(study, split_seeds)))


def _splits(study: Study, given: Iterable[int] | str | None) -> list[int]:
    if given is not None and study.split_seed:
        raise InputError(f"split_seeds must come without split_seed (got {study.split_seed}); leave one out")
    return [study.split_seed] if given is None else read_seeds(given, "split_seeds")

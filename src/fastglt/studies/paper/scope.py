"""How much of a table or figure is computed: graphs, backbones, seeds, and where runs are made and kept.

A quick reproduction is a part of a full one, run for run: what it has computed is never computed again. The rounds
of iterative methods alone go further in full.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from fastglt.data.named import NAMED, data_root
from fastglt.methods import Targets
from fastglt.methods.settings.networks import network_for
from fastglt.methods.settings.paper import BUDGETS, budget_for
from fastglt.runs.experiment import Experiment
from fastglt.runs.plan import Run
from fastglt.studies.compare import Comparison, compare
from fastglt.studies.extreme import ExtremeResult, extreme
from fastglt.studies.extreme.study import walk_of
from fastglt.studies.extreme.walks import Walk
from fastglt.studies.lists import read_pairs
from fastglt.studies.shared import Study

SUBSTITUTE = "digits"  # needs no download, and never stands beside a published number
GRAPHS = ("cora", "citeseer", "pubmed")
BACKBONES = ("gcn", "gin", "gat")
STAND_INS = {"ogbn-proteins": "debian_packages", "ogbl-collab": "acl_collab"}  # folders of a data root, by set
_SEEDS = {"quick": (0, 1), "normal": (0, 1, 2, 3, 4), "full": tuple(range(10))}
_EXTREME: dict[str, Any] = {"rules": "plain", "scores": "search", "fresh_seeds": ()}


@dataclass(frozen=True, kw_only=True)
class Ask:
    """Runs that a table or figure needs: methods at sparsities, or the extreme sparsities of methods."""

    graph: str  # as the paper calls it, or what stands in for it
    model: str
    methods: tuple[str, ...]
    edges: Any = 0.0  # to remove: a share, several, or how an extreme one is looked for
    weights: Any = 0.0
    extreme: bool = False
    with_tickets: bool = False  # whether tickets are looked into, and not only their scores
    about: str = ""  # which part of the table or figure it is for
    settings: Mapping[str, Any] = field(default_factory=dict)  # of its runs, instead of the scope's

    @classmethod
    def on(cls, side: str, levels: Any, **rest: Any) -> "Ask":
        """Shares of one side alone, edges or weights."""
        return cls(about=side, **{side: levels}, **rest)

    @property
    def pair(self) -> tuple[str, str]:
        """Graph and backbone."""
        return self.graph, self.model

    @property
    def varied(self) -> dict[str, Any]:
        """What `extreme` is told of the shares; one that stays 0 is left to it."""
        both = {"graph_sparsity": self.edges, "weight_sparsity": self.weights}
        return {name: levels for name, levels in both.items() if levels}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of an `Ask`."""

    ask: Ask
    result: Comparison | ExtremeResult

    @property
    def comparison(self) -> Comparison:
        """Of methods at sparsities."""
        assert isinstance(self.result, Comparison)
        return self.result

    @property
    def hunted(self) -> ExtremeResult:
        """Extreme sparsities."""
        assert isinstance(self.result, ExtremeResult)
        return self.result

    @property
    def at(self) -> str:
        """Graph and backbone."""
        return f"{self.ask.graph} {self.ask.model}"


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What is asked for. `settings` go to `fastglt.compare` and `fastglt.extreme` as they are."""

    size: str = "normal"  # quick, normal or full
    seeds: Sequence[int] = ()  # instead of the size's own
    only_graphs: Sequence[str] = ()  # instead of the size's own
    only_models: Sequence[str] = ()
    recorded_only: bool = False  # take what is there, and train nothing
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """Those asked for, or the size's."""
        return tuple(self.seeds) or _SEEDS[self.size]

    def backbones(self, *wanted: str) -> tuple[str, ...]:
        """Those asked for, also where the paper has others; else the wanted, in full all, or the first."""
        if self.only_models:
            return tuple(self.only_models)
        known = wanted or BACKBONES
        return known if self.size == "full" else known[:1]

    def graphs(self, *wanted: str) -> list[str]:
        """Those asked for, also where the paper has others; else the wanted, in full all, that are at hand.

        Where none is at hand, the one that needs nothing.
        """
        asked = [name for name in self.only_graphs if name in GRAPHS]
        there = [name for name in asked or wanted or GRAPHS if at_hand(name, self.root)]
        return (there if self.size == "full" or self.only_graphs else there[:1]) or [SUBSTITUTE]

    def has(self, graph: str) -> bool:
        """Whether one of the paper's graphs, or what stands in for it, can be loaded without a download."""
        return at_hand(graph, self.root) if graph in GRAPHS else self.large(graph) is not None

    @property
    def root(self) -> Path | None:
        """The folder of raw datasets."""
        return data_root(self.settings.get("data_root"))

    def large(self, name: str) -> dict[str, Any] | None:
        """How to load one of OGB's sets, or the folder that stands in for it; None where neither is there.

        Settings are those published for the set, also for what stands in for it.
        """
        width, options = network_for(name, "resgcn")
        small = {"hidden": 32, "model_options": {**options, "num_layers": 3}}
        whole = {"hidden": width, "model_options": options}
        known = budget_for(name, "resgcn") if (name, "resgcn") in BUDGETS else None
        budget = {} if known is None else {**known.settings, **self.settings.get("budget", {})}
        shared = {**(whole if self.size == "full" else small), "budget": budget}
        if at_hand(name, self.root):
            return {"dataset": name, **shared}
        folder = None if self.root is None or name not in STAND_INS else self.root / STAND_INS[name]
        return {"dataset": str(folder), **shared} if folder is not None and folder.is_dir() else None

    def few(self, values: Sequence[Any]) -> list[Any]:
        """All values, or of a quick reproduction the first, one in the middle and the last."""
        if self.size != "quick" or len(values) <= 3:
            return list(values)
        return [values[0], values[len(values) // 2], values[-1]]

    def answer(self, ask: Ask) -> Answer:
        """Have the runs made that are not there yet, and gather them."""
        return Answer(ask=ask, result=(self._extreme if ask.extreme else self._compare)(ask))

    def _compare(self, ask: Ask) -> Comparison:
        sparsities = {"graph_sparsity": ask.edges, "weight_sparsity": ask.weights}
        return compare(
            methods=list(ask.methods), model=ask.model, seeds=self.all_seeds, **sparsities, **self._settings(ask)
        )

    def _extreme(self, ask: Ask) -> ExtremeResult:
        """How sparse methods can go by the papers' rule, at the end of the search, not confirmed."""
        return extreme(
            model=ask.model,
            methods=list(ask.methods),
            seeds=self.all_seeds,
            **{**ask.varied, **_EXTREME, **self._settings(ask)},
        )

    def _settings(self, ask: Ask) -> dict[str, Any]:
        names = {method.partition("[")[0] for method in ask.methods}
        all_options = self.settings.get("options") or {}
        options = {name: options for name, options in all_options.items() if name in names}
        engine = {"engine": None} if self.recorded_only else {}
        given = {**self.settings, "dataset": ask.graph, "with_tickets": ask.with_tickets, **ask.settings}
        return {**given, "options": options or None, **engine}

    def plan(self, ask: Ask) -> list[Run]:
        """The runs of an ask; of a hunt those at its first sparsities."""
        study, trials = self._study(ask)
        return study.plan(trials, self.all_seeds)

    def experiments(self, ask: Ask) -> list[Experiment]:
        """The tickets of an ask, without loading anything; of a hunt those at its first sparsities."""
        study, trials = self._study(ask)
        return [
            study.experiment(study.variants[label], targets, seed, study.split_seed)
            for label, targets in trials
            for seed in self.all_seeds
        ]

    def _study(self, ask: Ask) -> tuple[Study, list[tuple[str, Targets]]]:
        command = "extreme" if ask.extreme else "compare"
        settings = {**self._settings(ask), "dry_run": False}
        study = Study(command=command, methods=list(ask.methods), model=ask.model, **settings)
        if ask.extreme:
            points = [next(self.walk(ask)())]
        else:
            pairs = read_pairs(ask.edges, ask.weights)
            points = [Targets(graph_sparsity=graph, weight_sparsity=weight) for graph, weight in pairs]
        return study, [(label, point) for point, label in product(points, study.variants)]

    def walk(self, ask: Ask) -> Callable[[], Walk[Targets]]:
        """How an extreme sparsity is looked for."""
        return walk_of(ask.varied.get("graph_sparsity"), ask.varied.get("weight_sparsity"))


def at_hand(name: str, root: Path | None) -> bool:
    """Whether a named graph can be loaded without a download."""
    return NAMED[name].source.where(root) not in ("would be downloaded", "not at hand")


def published(graph: str, number: float | None) -> float | None:
    """A published per cent as a fraction; none beside a substitute."""
    return None if number is None or graph not in GRAPHS else round(number / 100, 6)

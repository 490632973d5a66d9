import pytest

from fastglt.methods import METHODS
from fastglt.methods.settings.published import PUBLISHED, options_for
from fastglt.models import BACKBONES
from tests.helpers import method_of

# UGS's l1 pressure on (edges, weights)
L1 = {
    "gcn": {"cora": (1e-2, 1e-2), "citeseer": (1e-2, 1e-2), "pubmed": (1e-6, 1e-3)},
    "gin": {"cora": (1e-3, 1e-3), "citeseer": (1e-5, 1e-5), "pubmed": (1e-5, 1e-5)},
    "gat": {"cora": (1e-3, 1e-3), "citeseer": (1e-7, 1e-3), "pubmed": (1e-2, 1e-2)},
}
RECIPES = {"cora": (0.008, 8e-5), "citeseer": (0.01, 5e-4), "pubmed": (0.01, 5e-4)}
each_pair = pytest.mark.parametrize(("dataset", "model"), [(d, m) for d in RECIPES for m in L1])


@each_pair
@pytest.mark.parametrize("method", ["ugs", "ace"])
def test_ugs_and_what_trains_as_it_does(method: str, dataset: str, model: str) -> None:
    options = options_for(method, dataset, model)
    assert (options.pop("edge_l1"), options.pop("weight_l1")) == L1[model][dataset]
    assert (options.pop("search_lr"), options.pop("search_weight_decay")) == RECIPES[dataset]
    assert options == {}


@each_pair
def test_wdglt_has_no_l1_term(dataset: str, model: str) -> None:
    options = options_for("wdglt", dataset, model)
    assert (options.pop("search_lr"), options.pop("search_weight_decay")) == RECIPES[dataset]
    assert options == {}


@pytest.mark.parametrize("names", [("ugs", "digits", "gcn"), ("ugs", "cora", "sage"), ("random", "cora", "gcn")])
def test_nothing_is_made_up(names: tuple[str, str, str]) -> None:
    assert options_for(*names) == {}


LARGE = {"ogbn-arxiv": (1e-6, 1e-4, 1e-3), "ogbn-proteins": (1e-1, 1e-3, 1e-2), "ogbl-collab": (1e-6, 1e-5, 1e-2)}


@pytest.mark.parametrize("dataset", LARGE)
def test_ugs_on_large_graphs(dataset: str) -> None:
    options = options_for("ugs", dataset, "resgcn")
    assert (options["edge_l1"], options["weight_l1"], options["search_lr"]) == LARGE[dataset]


def test_every_setting_is_one_that_its_method_takes() -> None:
    for name, settings in PUBLISHED.items():
        for (_, model), options in settings.items():
            assert model in BACKBONES
            assert method_of(name, 0.1, 0.1, **options).options.items() >= options.items()
    assert set(PUBLISHED) <= set(METHODS)


def test_what_is_handed_out_can_be_changed() -> None:
    options_for("ugs", "cora", "gcn")["edge_l1"] = 9
    assert options_for("ugs", "cora", "gcn")["edge_l1"] == 1e-2

"""Published networks, as data."""

import pytest

from fastglt.methods import Budget
from fastglt.methods.settings import budget_for, network_for
from fastglt.methods.settings.networks import NETWORKS
from fastglt.models import make
from fastglt.runs.build import build_experiment

# width, layers, norm, matrices of an MLP, temperature, whether it is learnt, dropout
PUBLISHED = {
    "ogbn-arxiv": (128, 28, "batch", 1, 0.1, False, 0.5),
    "ogbn-proteins": (64, 28, "layer", 2, 1.0, True, 0.1),
    "ogbl-collab": (128, 7, "batch", 1, 1.0, True, 0.0),
}
EPOCHS = {"ogbn-arxiv": (30, 400), "ogbn-proteins": (20, 200), "ogbl-collab": (50, 400)}


@pytest.mark.parametrize("dataset", PUBLISHED)
def test_the_network_is_the_published_one(dataset: str) -> None:
    width, options = network_for(dataset, "resgcn")
    spec = make("resgcn", in_channels=4, hidden=2, out_channels=3, seed=0, **{**options, "num_layers": 1}).spec
    names = ("norm", "mlp_layers", "temperature", "learn_temperature", "dropout")
    assert (width, options["num_layers"], *(spec[name] for name in names)) == PUBLISHED[dataset]


@pytest.mark.parametrize("dataset", EPOCHS)
def test_the_budget_is_the_papers(dataset: str) -> None:
    oneshot, denoise = EPOCHS[dataset]
    expected = Budget(oneshot_epochs=oneshot, denoise_epochs=denoise, interval=3, lr=0.001, weight_decay=0.0)
    assert budget_for(dataset, "resgcn") == expected
    assert budget_for("ogbn-proteins:species", "resgcn") == budget_for("ogbn-proteins", "resgcn")


def test_experiments_take_it_unless_told_otherwise() -> None:
    given = {"graph_sparsity": 0.1, "weight_sparsity": 0.2, "training": None, "options": {}}
    found = build_experiment(dataset="ogbn-arxiv", model="resgcn", **given)  # type: ignore[arg-type]
    assert (found.hidden, found.model_options["num_layers"], found.budget.interval) == (128, 28, 3)
    own = {"hidden": 16, "model_options": {"num_layers": 7}}
    found = build_experiment(dataset="ogbn-arxiv", model="resgcn", **own, **given)  # type: ignore[arg-type]
    assert (found.hidden, found.model_options["num_layers"], found.model_options["norm"]) == (16, 7, "batch")
    plain = build_experiment(dataset="cora", model="gcn", **given)  # type: ignore[arg-type]
    assert (plain.hidden, plain.model_options) == (512, {})


def test_nothing_is_made_up() -> None:
    assert network_for("digits", "resgcn") == (512, {})
    assert set(NETWORKS) == {(dataset, "resgcn") for dataset in PUBLISHED}

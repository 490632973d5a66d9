import pytest
import torch

from fastglt.errors import InputError
from fastglt.masks import Mask, Masks
from fastglt.methods import Budget
from fastglt.methods.teaching import TEACHING, with_teacher
from fastglt.models import GCN
from fastglt.tickets.phases import fixed_recipe, opponents


def test_settings_of_before_stay_as_they_were() -> None:
    names = ["oneshot_epochs", "denoise_epochs", "interval", "lr", "weight_decay"]
    assert list(Budget().settings) == names
    assert list(Budget(distill=1.0).settings) == [*names, "distill"]
    assert Budget(distill=2.0, distill_lr=0.01, isolated_decay="density").settings == {
        **Budget().settings,
        "distill": 2.0,
        "distill_lr": 0.01,
        "isolated_decay": "density",
    }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"distill_lr": 0.01}, r"distill_lr must come with a teacher \(got distill 0\)"),
        ({"distill": 1.0, "distill_temperature": 0.0}, "distill_temperature must be positive"),
        ({"distill": 1.0, "distill_nodes": "some"}, "some"),
        ({"distill": 1.0, "distill_labels": -1.0}, "distill_labels must not be negative"),
        ({"isolated_decay": "half"}, "half"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Budget(**wrong)  # type: ignore[arg-type]


class TestWithTeacher:
    def test_the_usual_one(self) -> None:
        taught = with_teacher(Budget(), True)
        assert taught == with_teacher(Budget(), {})
        assert (taught.distill, taught.distill_lr) == (TEACHING["weight"], TEACHING["lr"])
        assert with_teacher(Budget(), None) == with_teacher(Budget(), False) == Budget()

    def test_a_number_is_a_teacher_of_0_1(self) -> None:
        assert with_teacher(Budget(), 1.0) == Budget(distill=1.0)
        assert with_teacher(Budget(), 0) == Budget()

    def test_a_part_that_is_unknown_is_refused(self) -> None:
        with pytest.raises(InputError, match="strength"):
            with_teacher(Budget(), {"strength": 2})


def test_opponents() -> None:
    assert opponents(Budget()) == ("dense",)
    assert opponents(Budget(distill=1.0)) == ("dense", "dense_distilled")
    assert opponents(Budget(distill=1.0, distill_lr=0.01)) == ("dense", "dense_distilled", "dense_same_lr")
    assert opponents(Budget(distill=1.0, distill_lr=0.001)) == ("dense", "dense_distilled"), "it is the same rate"


def test_decay_times_density_by_hand() -> None:
    """12 of 120 weights are kept: a tenth of the decay; the dense network has all of it."""
    network, budget = GCN(12, 8, 3), Budget(isolated_decay="density", distill=1.0, distill_lr=0.01)
    whole = Masks.full(60, network.weight_shapes)
    weights = {name: Mask(torch.arange(mask.size).view(mask.shape) < 6) for name, mask in whole.weights.items()}
    sparse = Masks(edges=whole.edges, weights=weights)
    assert sparse.weights_kept == 12
    recipe = fixed_recipe(budget, network, sparse, taught=False)
    assert recipe.lr == 0.001
    assert recipe.weight_decay == pytest.approx(5e-5)
    for masks in (None, whole):
        assert fixed_recipe(budget, network, masks, taught=False) == budget.recipe
    assert fixed_recipe(budget, network, None, taught=True).lr == 0.01
    assert fixed_recipe(Budget(), network, sparse, taught=False) == Budget().recipe

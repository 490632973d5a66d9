import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fastglt import InputError
from fastglt.masks import Mask, Masks, as_vector, flatten, lay_side_by_side, unflatten, zeros_side_by_side
from tests.helpers import randn


@pytest.mark.parametrize("odd", [0.5, -1.0, 2.0, float("nan"), float("inf")])
def test_anything_but_zero_and_one_is_refused(odd: float) -> None:
    with pytest.raises(InputError, match=rf"a mask holds only 0 and 1 \(got {odd}\)"):
        Mask([1.0, odd, 0.0])


@pytest.mark.parametrize(
    "values", [[1, 0, 1], [1.0, 0.0, 1.0], torch.tensor([True, False, True]), torch.tensor([1, 0, 1])]
)
def test_numbers_and_booleans_make_the_same_mask(values: Tensor | list[float]) -> None:
    mask = Mask(values)
    assert mask == Mask([1, 0, 1])
    assert hash(mask) == hash(Mask([1, 0, 1]))
    assert mask.kept.dtype == torch.bool


def test_counts_shape_and_sparsity() -> None:
    mask = Mask(torch.tensor([[1, 0, 0], [0, 0, 1]]))
    assert (mask.count, mask.size, mask.shape) == (2, 6, (2, 3))
    assert mask.sparsity == pytest.approx(4 / 6)
    assert repr(mask) == "Mask(2 of 6 kept)"


def test_a_mask_of_nothing_removes_nothing() -> None:
    assert Mask([]).sparsity == 0
    assert Mask.full([2, 3]).sparsity == 0


def test_masks_of_different_shape_or_kind_are_not_equal() -> None:
    assert Mask.full([4]) != Mask.full([2, 2])
    assert Mask([1, 0]) != Mask([0, 1])
    assert Mask([1, 0]) != [1, 0]


def test_difference_counts_what_went_and_what_came() -> None:
    assert Mask.difference(Mask([1, 1, 1, 0, 0]), Mask([1, 0, 0, 1, 0])) == (2, 1)


def test_of_size_passes_a_fitting_vector_and_refuses_the_rest() -> None:
    mask = Mask([1, 0])
    assert mask.of_size(2) is mask
    with pytest.raises(InputError, match=r"one entry for each of 3 elements \(got shape \(2,\)\)"):
        mask.of_size(3)
    with pytest.raises(InputError, match=r"one entry for each of 4 elements \(got shape \(2, 2\)\)"):
        Mask.full([2, 2]).of_size(4)


def test_masks_count_over_all_matrices() -> None:
    masks = Masks(
        edges=Mask([1, 0, 0, 0]), weights={"a": Mask(torch.eye(2, dtype=torch.bool)), "b": Mask.full([2, 3])}
    )
    assert (masks.weights_kept, masks.weights_total) == (8, 10)
    assert masks.graph_sparsity == 0.75
    assert masks.weight_sparsity == pytest.approx(0.2)


def test_full_masks_keep_everything() -> None:
    masks = Masks.full(5, {"a": (2, 3)})
    assert (masks.edges.count, masks.weights["a"].count) == (5, 6)
    assert (masks.graph_sparsity, masks.weight_sparsity) == (0, 0)


def test_no_weights_are_not_sparse() -> None:
    assert Masks.full(0, {}).weight_sparsity == 0


@settings(deadline=None, max_examples=30)
@given(shapes=st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), max_size=4))
def test_unflatten_is_the_inverse_of_flatten(shapes: list[list[int]]) -> None:
    tensors = {str(index): randn(*shape, seed=index) for index, shape in enumerate(shapes)}
    vector = flatten(tensors)
    assert vector.shape == (sum(tensor.numel() for tensor in tensors.values()),)
    back = unflatten(vector, tensors)
    assert list(back) == list(tensors)
    assert all(torch.equal(back[name], tensors[name]) for name in tensors)


def test_flatten_keeps_the_mappings_order() -> None:
    assert flatten({"b": torch.tensor([[1, 2], [3, 4]]), "a": torch.tensor([5])}).tolist() == [1, 2, 3, 4, 5]


def test_tensors_side_by_side_are_one_vector_without_a_copy() -> None:
    tensors = {"b": torch.tensor([[1.0, 2.0], [3.0, 4.0]]), "a": torch.tensor([5.0])}
    apart = as_vector(tensors)
    lay_side_by_side(tensors)
    vector = as_vector(tensors)
    assert vector.tolist() == apart.tolist() == [1, 2, 3, 4, 5]
    tensors["a"][0] = 6
    tensors["b"][0, 1] = 7
    assert vector.tolist() == [1, 7, 3, 4, 6]
    assert apart.tolist() == [1, 2, 3, 4, 5], "a copy"


def test_only_neighbours_in_order_are_one_vector() -> None:
    whole = torch.arange(6.0)
    for parts in ([whole[3:], whole[:3]], [whole[:2], whole[3:]], [whole[::2], whole[1::2]]):
        vector = as_vector(dict(zip("ab", parts, strict=True)))
        assert vector.tolist() == torch.cat(parts).tolist()
        assert vector.untyped_storage().data_ptr() != whole.untyped_storage().data_ptr()
    assert as_vector({}).numel() == 0


def test_zeros_side_by_side_have_the_shapes_of_what_they_are_like() -> None:
    zeros = zeros_side_by_side({"b": torch.ones(2, 2), "a": torch.ones(3)})
    assert {name: part.tolist() for name, part in zeros.items()} == {"b": [[0, 0], [0, 0]], "a": [0, 0, 0]}
    as_vector(zeros)[4] = 1
    assert zeros["a"].tolist() == [1, 0, 0]
    apart = zeros_side_by_side({"a": torch.ones(1), "b": torch.ones(1, dtype=torch.float64)})
    assert [part.dtype for part in apart.values()] == [torch.float32, torch.float64]
    assert zeros_side_by_side({}) == {}


def test_tensors_of_several_types_stay_where_they_are() -> None:
    tensors = {"a": torch.tensor([1.0]), "b": torch.tensor([2.0], dtype=torch.float64)}
    lay_side_by_side(tensors)
    assert [tensor.dtype for tensor in tensors.values()] == [torch.float32, torch.float64]
    assert as_vector(tensors).tolist() == [1, 2]

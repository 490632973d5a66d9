"""A new graph in the words of the one before: its classes, its split."""

import pytest
import torch
from torch import Tensor

from fastglt import InputError
from fastglt.data.base import Dataset, Names
from fastglt.data.following import following, learnt_from_is_judged

PARTS = ("train", "val", "test")


def dataset(y: list[int], parts: str, *, classes: tuple[str, ...] = (), drawn: bool = False) -> Dataset:
    """Nodes with labels, each in a part that a letter stands for: t(rain), v(al), e (test), or none."""
    letters = zip(PARTS, "tve", strict=True)
    masks = {f"{part}_mask": torch.tensor([at == letter for at in parts]) for part, letter in letters}
    ids = tuple(f"n{at}" for at in range(len(y)))
    names = Names(ids, classes) if classes else None
    return Dataset(
        name="mine", tensors={"y": torch.tensor(y), **masks}, metric="accuracy", names=names, drawn=drawn
    )


def parts_of(found: Dataset) -> list[list[int]]:
    return [found.tensors[f"{part}_mask"].nonzero().flatten().tolist() for part in PARTS]


def nodes(*numbers: int) -> Tensor:
    return torch.tensor(numbers)


BEFORE = dataset([0, 1, 2, 1], "tvet", classes=("apple", "bean", "corn"))


def test_classes_have_the_numbers_of_their_names_before() -> None:
    after = dataset([0, 1, -1, 0], "vet.", classes=("bean", "corn"))
    found = following(BEFORE, after, nodes(1, 2, 3, -1))
    assert found.tensors["y"].tolist() == [1, 2, -1, 1]
    assert found.names == Names(("n0", "n1", "n2", "n3"), ("apple", "bean", "corn"))
    assert parts_of(found) == parts_of(after), "its own split"
    assert after.tensors["y"].tolist() == [0, 1, -1, 0]


def test_a_new_class_is_refused() -> None:
    after = dataset([0, 1], "tv", classes=("apple", "date"))
    with pytest.raises(
        InputError, match=r"among .*, apple, bean, corn \(got 'date'\); a new class needs a new search"
    ):
        following(BEFORE, after, nodes(0, 1))


def test_a_drawn_split_is_that_of_before() -> None:
    after = dataset([2, 1, 0, -1, 1], "vtete", drawn=True)
    found = following(BEFORE, after, nodes(2, 1, 0, 3, -1))
    assert parts_of(found) == [[2], [1], [0]], "no new node, and none without a label"
    assert not learnt_from_is_judged(BEFORE, found, nodes(2, 1, 0, 3, -1))
    with pytest.raises(
        InputError, match=r"must be left \(got no train_mask\); give the new graph masks of its own"
    ):
        following(BEFORE, after, nodes(2, 1, -1, -1, -1))


def test_a_graph_that_is_as_it_has_to_be_is_left_alone() -> None:
    for after in (BEFORE, dataset([0, 1, 2, 1], "tvet", drawn=True), dataset([0, 1, 2, 1], "vtee")):
        assert following(BEFORE, after, nodes(0, 1, 2, 3)) is after


@pytest.mark.parametrize(
    ("y", "parts", "expected"),
    [
        ([0, 1, 2, 1], "tvet", False),
        ([0, 1, 2, 1], ".vee", True),  # a training node is tested
        ([0, 1, 2, 1], "tvev", True),  # a training node is validated
        ([0, 1, 2, 1], "teet", True),  # a validation node is tested
        ([0, 1, 2, 1], "ttvt", False),  # what was judged may be learnt from
        ([0, 1, 1, 1], "tvet", True),  # another class
        ([0, 1, -1, 1], "tv.t", False),  # one that is not known any more
    ],
)
def test_what_was_learnt_from_and_is_judged_now(y: list[int], parts: str, expected: bool) -> None:
    assert learnt_from_is_judged(BEFORE, dataset(y, parts), nodes(0, 1, 2, 3)) is expected

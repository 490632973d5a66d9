import torch

from fastglt.data import load


def test_shape_and_split() -> None:
    dataset = load("digits")
    data = dataset.data
    assert (dataset.name, dataset.metric) == ("digits", "accuracy")
    assert data.x.shape == (1797, 64)
    assert (float(data.x.min()), float(data.x.max())) == (0.0, 1.0)
    assert data.edge_index.shape == (2, 2 * 12339)
    assert data.is_undirected()
    assert not data.has_self_loops()
    masks = (data.train_mask, data.val_mask, data.test_mask)
    assert [int(mask.sum()) for mask in masks] == [200, 500, 1097]
    assert torch.stack(masks).sum(0).eq(1).all()
    assert data.y[data.train_mask].bincount().tolist() == [20] * 10
    assert data.y[data.val_mask].bincount().tolist() == [50] * 10


def test_every_image_has_its_ten_neighbours() -> None:
    assert int(load("digits").data.edge_index[0].bincount().min()) >= 10


def test_the_seed_moves_the_split_and_nothing_else() -> None:
    one, again, other = load("digits").data, load("digits").data, load("digits", split_seed=1).data
    assert torch.equal(one.edge_index, other.edge_index)
    assert torch.equal(one.x, other.x)
    assert torch.equal(one.train_mask, again.train_mask)
    assert not torch.equal(one.train_mask, other.train_mask)

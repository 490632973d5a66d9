"""What travels between processes that own parts of a vector; run by each of them."""

import torch

from fastglt.system.ranges import Ranges
from fastglt.system.ranks import World, joined


def check(world: World, size: int) -> None:
    """Every way of handing over, of a vector of some size."""
    ranges, whole = Ranges(size, world), torch.arange(float(size)) + 1
    own = ranges.own(whole).clone()
    assert torch.equal(ranges.whole(own, "edges"), whole)
    filled = torch.zeros(size)
    filled[ranges.mine] = own
    assert torch.equal(ranges.fill(filled, "edges"), whole)
    mask = whole % 3 == 0
    assert torch.equal(ranges.whole_mask(ranges.own(mask), "masks"), mask)
    gathered = ranges.to_first(own)
    assert torch.equal(gathered, whole if world.writes else own)
    assert torch.equal(ranges.from_first(whole if world.writes else None, torch.float32), own)
    places = torch.arange(size)[world.rank :: world.size]  # two lists, ascending each, one of them maybe empty
    lists = [(part, whole[part]) for part in (places[::2], places[1::2])]
    come = torch.zeros_like(own).index_add_(0, *ranges.to_owners(lists, own, "edges"))
    assert torch.equal(come, own)
    assert ranges.to_owners([], own, "edges")[1].numel() == 0


def check_first(world: World) -> None:
    """What the first process has, of any kind and shape."""
    sent = {"a": torch.tensor([True, False]), "b": torch.zeros(()), "c": torch.ones(2, 0), "d": torch.arange(3)}
    found, meta = world.from_first(sent if world.writes else None, {"x": 1} if world.writes else None)
    assert meta == {"x": 1}
    assert list(found) == list(sent)
    assert all(torch.equal(found[name], value) and found[name].dtype == value.dtype for name, value in sent.items())


if __name__ == "__main__":
    with joined() as all_of_them:
        for count in (0, 1, 2, 7, 100):
            check(all_of_them, count)
        check_first(all_of_them)

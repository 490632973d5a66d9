"""What our layers are held against: PyG's own convolutions with the same weights."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.models.twins import shaped_like
from tests.helpers import columns, house, randn, sparse_features

IN, HIDDEN, OUT = 10, 6, 3
GRAPHS = {
    "undirected": house(),
    "directed": house(directed=True),
    "looped": Graph.from_edge_index(torch.cat([house().edge_index, columns([(0, 0), (6, 6)])], dim=1), num_nodes=7),
    "no edges": Graph.from_edge_index(torch.empty(2, 0, dtype=torch.int64), num_nodes=7),
}
FEATURES = {"dense": Features(randn(7, IN, seed=5)), "sparse": sparse_features(7, IN, seed=5)}


def randomise(module: nn.Module) -> None:
    """Give every parameter a value that matters, biases and GIN's eps too."""
    with torch.no_grad():
        for index, parameter in enumerate(module.parameters()):
            parameter.copy_(randn(*parameter.shape, seed=100 + index) * 0.5)


def assert_same(
    ours: nn.Module,
    theirs: nn.Module,
    names: dict[str, str],
    run_ours: Callable[[], Tensor],
    run_theirs: Callable[[], Tensor],
    *,
    tolerance: float = 1e-5,
) -> None:
    """Same outputs and same gradients in every parameter, once theirs has our numbers.

    `names` gives each of our parameters its counterpart; a matrix counterpart is our transpose, unless it
    has more than two dimensions.
    """
    mine, other = dict(ours.named_parameters()), dict(theirs.named_parameters())
    assert set(names) == set(mine)
    assert set(names.values()) == set(other)
    with torch.no_grad():
        for name, counterpart in names.items():
            other[counterpart].copy_(shaped_like(mine[name], other[counterpart]))
    out, expected = run_ours(), run_theirs()
    torch.testing.assert_close(out, expected, rtol=tolerance, atol=tolerance)
    projection = randn(*out.shape, seed=42).to(out.dtype)
    gradients = torch.autograd.grad((out * projection).sum(), list(mine.values()))
    wanted = torch.autograd.grad((expected * projection).sum(), [other[names[name]] for name in mine])
    for name, gradient, want in zip(mine, gradients, wanted, strict=True):
        assert torch.allclose(shaped_like(gradient, want), want, rtol=tolerance, atol=tolerance), name


def score_messages(conv: nn.Module, graph: Graph, score: Tensor, *, added_loops: bool) -> None:
    """Multiply a PyG convolution's messages by their edge's score; self-loops have 1.

    PyG's convolutions put the loops they add behind the columns, in place of the data's own.
    """
    proper = graph.column_edge < graph.num_edges
    loops = graph.num_nodes if added_loops else int((~proper).sum())
    factor = torch.cat([score[graph.column_edge[proper]], torch.ones(loops)])

    def hook(module: nn.Module, inputs: object, messages: Tensor) -> Tensor:
        return messages * factor.view(-1, *[1] * (messages.dim() - 1))

    conv.register_message_forward_hook(hook)  # type: ignore[operator]

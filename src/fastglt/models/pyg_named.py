"""A user's PyG model that is built from a name: ``module:Class``, called as PyG's own models are.

The class, or a function that returns a model, is called with in_channels, hidden_channels (or hidden) and
out_channels by name. Whatever else it takes are its options: num_layers is 2 unless told otherwise, all others need
a default. PyTorch's random numbers are seeded before, so that a seed decides the initial weights.
"""

import inspect
import typing
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, cast

from torch import Tensor, nn

from fastglt.errors import InputError
from fastglt.graphs.features import FeatureRows, Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.models.base import Backbone, Network
from fastglt.models.units import Units
from fastglt.system.plugins import described, digest_of_files

_SHAPE = {
    "in_channels": ("in_channels",),
    "hidden": ("hidden_channels", "hidden"),
    "out_channels": ("out_channels",),
}
_NEEDED = ("in_channels", "out_channels")
_DEFAULTS = {"num_layers": 2}  # which PyG's models take without a default
_PLAIN = (type(None), bool, int, float, str)  # what an option's value may be
_LIBRARIES = ("builtins", "torch", "torch_geometric")
_INNER = "inner."

Build = Callable[..., nn.Module]


class NamedModel(Backbone):
    """The base of such models; `as_backbone` makes the class for one."""

    tried_out = True
    build: ClassVar[Build]
    place: ClassVar[str]  # module:Class
    takes_more: ClassVar[bool]  # options that its signature does not name

    def __init__(self, **given: Any) -> None:
        arguments = {**_defaults_of(self.build), **given}
        owner = arguments.pop("class", self.place)
        if owner != self.place:
            raise InputError(f"the model is {owner}, which is another class of that name (got {self.place})")
        shape = {name: arguments.pop(name) for name in ("in_channels", "hidden", "out_channels")}
        seed = arguments.pop("seed", 0)
        super().__init__(**shape, dropout=0.0, seed=seed, num_layers=1)
        self._options = arguments
        self.inner = _wrapped(self._made(shape))

    def _made(self, shape: dict[str, int]) -> nn.Module:
        parameters = inspect.signature(self.build).parameters
        by_name = {
            theirs: shape[ours] for ours, names in _SHAPE.items() for theirs in names if theirs in parameters
        }
        try:
            model: object = type(self).build(**by_name, **self._options)
        except InputError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".split("\n")[0]
            raise InputError(f"{self.place} must be built from its shape and options (got {reason})") from error
        if not isinstance(model, nn.Module) or isinstance(model, Network):
            raise InputError(f"{self.place} must give a torch.nn.Module (got {type(model).__name__})")
        return model

    def outputs(self, x: FeatureRows, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Tensor:
        """A user's model is run on its whole graph."""
        raise NotImplementedError

    def forward(
        self, x: Features, graph: Graph, soft_edge_mask: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """As any model of a user's."""
        return self.inner(x, graph, soft_edge_mask, nodes)  # type: ignore[no-any-return]

    @property
    def spec(self) -> dict[str, Any]:
        """The class, its shape and its options: the initial weights follow from them and the seed."""
        shape = {name: getattr(self, name) for name in ("in_channels", "hidden", "out_channels", "seed")}
        return {"name": self.name, "class": self.place, **shape, **self._options}

    @property
    def identity(self) -> dict[str, Any]:
        """With the code of its file, and of those that it builds on, PyTorch's and PyG's apart."""
        code = _code_of(type(self).build)
        return {"model": self.spec, **({} if code is None else {"model_code": code})}

    @property
    def described(self) -> str:
        """Where it lives."""
        return f"the model {self.place}"

    @property
    def prunable(self) -> tuple[str, ...]:
        """As of any model of a user's."""
        return tuple(_INNER + name for name in self.inner.prunable)

    @property
    def public(self) -> nn.Module:
        """The model."""
        return self.inner.public  # type: ignore[no-any-return]

    def public_name(self, name: str) -> str:
        """As the model's owner knows it."""
        return self.inner.public_name(name.removeprefix(_INNER))  # type: ignore[no-any-return]

    def private_name(self, name: str) -> str:
        """Inside this wrapper."""
        return _INNER + cast(str, self.inner.private_name(name))

    @property
    def reads_edge_values(self) -> bool:
        """As of any model of a user's."""
        return self.inner.reads_edge_values  # type: ignore[no-any-return]

    def read_fields(self, graph: Graph) -> tuple[str, ...]:
        """As of any model of a user's."""
        return self.inner.read_fields(graph)  # type: ignore[no-any-return]

    def units(self, x: Features, graph: Graph) -> Units:
        """As of any model of a user's."""
        found: Units = self.inner.units(x, graph)
        return replace(found, ends={_INNER + name: ends for name, ends in found.ends.items()})

    def check_fits(self, x: Features, graph: Graph, num_outputs: int, *, soft_edges: bool = True) -> None:
        """Try a copy out; every weight matrix must take part, as a ticket does not say which do."""
        super().check_fits(x, graph, num_outputs, soft_edges=soft_edges)
        before = self.prunable
        self.inner.check_fits(x, graph, num_outputs, soft_edges=soft_edges)
        idle = [name for name in before if name not in self.prunable]
        if idle:
            rule = "every weight matrix of a model that is named must take part in its prediction"
            raise InputError(f"{rule} (got '{self.public_name(idle[0])}', which does not)")

    def portable(self, graph: Graph, soft_edge_mask: Tensor | None) -> nn.Module:
        """As of any model of a user's."""
        return self.inner.portable(graph, soft_edge_mask)  # type: ignore[no-any-return]


@cache
def as_backbone(build: Any, place: str) -> type[NamedModel]:
    """The backbone of a model's class, or of a function that returns a model; `place` is where it lives."""
    parameters = inspect.signature(build).parameters
    for name in _NEEDED:
        if name not in parameters:
            takes = "in_channels, hidden_channels and out_channels"
            raise InputError(f"a model must be built from {takes}, by name (got {described(build)} without {name})")
    options = _options_of(build)
    hints = _hints_of(build)

    def begin(self: NamedModel, **given: Any) -> None:
        NamedModel.__init__(self, **given)

    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
    shape = [inspect.Parameter(name, kinds) for name in ("self", "in_channels", "hidden", "out_channels", "seed")]
    named = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in options.items()
    ]
    init: Any = begin
    init.__signature__ = inspect.Signature([*shape, *named])
    init.__annotations__ = {name: hints.get(name, type(value)) for name, value in options.items()}
    init.__wrapped__ = build.__init__ if inspect.isclass(build) else build  # the comments beside options are there
    body = {
        "__init__": init,
        "__doc__": build.__doc__,
        "__module__": build.__module__,
        "__qualname__": build.__qualname__,
        "name": f"pyg-{build.__name__.lower()}",
        "build": staticmethod(build),
        "place": place,
        "takes_more": any(value.kind is value.VAR_KEYWORD for value in parameters.values()),
    }
    return type(build.__name__, (NamedModel,), body)


def is_model(thing: Any) -> bool:
    """Whether something is a class of PyTorch's, other than our networks, or a function that may return a model."""
    kind = inspect.isclass(thing) and issubclass(thing, nn.Module) and not issubclass(thing, Network)
    return kind or inspect.isfunction(thing)


def _options_of(build: Build) -> dict[str, Any]:
    """What it takes beside its shape, with defaults; only what can be told in words."""
    found: dict[str, Any] = {}
    theirs = {name for names in _SHAPE.values() for name in names}
    for name, parameter in inspect.signature(build).parameters.items():
        if name in theirs or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        default = (
            _DEFAULTS.get(name, parameter.empty) if parameter.default is parameter.empty else parameter.default
        )
        if default is parameter.empty or parameter.kind is parameter.POSITIONAL_ONLY:
            rule = "every option of a model must have a name and a default"
            raise InputError(f"{rule} (got {name} of {described(build)}, without)")
        if type(default) in _PLAIN:
            found[name] = default
    return found


def _defaults_of(build: Build) -> dict[str, Any]:
    """The options that are passed although nobody named them."""
    parameters = inspect.signature(build).parameters
    return {name: value for name, value in _DEFAULTS.items() if name in parameters}


def _hints_of(build: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(build.__init__ if inspect.isclass(build) else build)
    except Exception:  # names that nobody can look up
        return {}


def _code_of(build: Any) -> str | None:
    parts = build.__mro__ if inspect.isclass(build) else [build]
    own = [part for part in parts if part.__module__.partition(".")[0] not in _LIBRARIES]
    return digest_of_files([inspect.getsourcefile(part) for part in own])


def _wrapped(model: nn.Module) -> Any:
    from fastglt.models.pyg import PyGNetwork

    return PyGNetwork(model)

"""Programs that run without Python code of ours: `torch.export` and ONNX."""

import contextlib
import copy
import io
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import GraphModule

from fastglt.deploy.compact import expand
from fastglt.deploy.predictor import Predictor
from fastglt.errors import InputError, MachineError


def make_torch(predictor: Predictor) -> dict[str, bytes]:
    """A program from x [nodes, features] to class scores; the graph is part of it."""
    file, program = io.BytesIO(), _program(predictor)
    program.example_inputs = None  # the features, which need not be in the file
    with _quiet():
        torch.export.save(program, file)
    return {"ticket.pt2": file.getvalue()}


def read_torch(path: Path, x: Tensor, *pairs: Tensor) -> Tensor:
    """Class scores, or those of pairs, from the file."""
    with _quiet():
        found: Tensor = torch.export.load(path).module()(x, *pairs)
    return found


def make_onnx(predictor: Predictor) -> dict[str, bytes]:
    """A model with one input, x, or for links two, x and pairs, and one output, scores; the graph is part of it."""
    _require_onnx()
    program, names = _program(predictor), ["x", "pairs"] if predictor.task.of_pairs else ["x"]
    with _quiet(), _refusing("ONNX"):
        model = torch.onnx.export(
            program, dynamo=True, verbose=False, input_names=names, output_names=["scores"], optimize=True
        )
        assert model is not None
        return {"ticket.onnx": model.model_proto.SerializeToString()}


def read_onnx(path: Path, x: Tensor, *pairs: Tensor) -> Tensor:
    """Class scores, or those of pairs, from the file, by ONNX Runtime."""
    from onnxruntime import InferenceSession

    session = InferenceSession(path, providers=["CPUExecutionProvider"])
    given = {"x": x.numpy(), **({"pairs": pairs[0].numpy()} if pairs else {})}
    return torch.from_numpy(session.run(["scores"], given)[0])


def _program(predictor: Predictor) -> ExportedProgram:
    network = copy.deepcopy(predictor.network)
    expand(network)
    with _quiet(), _refusing("torch.export"), torch.no_grad():
        module, pairs = network.portable(predictor.graph, predictor.score), predictor.some_pairs
        if pairs is None:
            return _without_places(torch.export.export(module, (predictor.x.dense.cpu(),), strict=False))
        shapes = {"x": None, "pairs": {0: torch.export.Dim("pairs", min=1)}}
        inputs = (predictor.x.dense.cpu(), pairs.cpu())
        return _without_places(torch.export.export(module, inputs, dynamic_shapes=shapes, strict=False))


def _without_places(program: ExportedProgram) -> ExportedProgram:
    """Without the files and lines that operations were traced in: folders of this machine are nobody's affair."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, GraphModule) else ():
            node.meta.pop("stack_trace", None)
    return program


def _require_onnx() -> None:
    for name in ("onnx", "onnxscript", "onnxruntime"):
        try:
            __import__(name)
        except ImportError:
            raise MachineError(f"ONNX needs {name}, which is not there; pip install 'fastglt[onnx]'") from None


@contextlib.contextmanager
def _refusing(what: str) -> Iterator[None]:
    """A model that cannot be traced is its owner's affair; the tracer's first line tells why."""
    try:
        yield
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{what} cannot trace the model ({reason}); try another format") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what the tracers tell about their own insides."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "torch.fx", "onnxscript")]
    before = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)

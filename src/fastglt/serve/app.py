"""The service: one predictor behind a few addresses."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import torch
from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from prometheus_client import generate_latest
from pydantic import BaseModel, Field

from fastglt import __version__
from fastglt.data.base import Names
from fastglt.deploy import Predictor
from fastglt.errors import InputError
from fastglt.serve.bodies import Aside, BodyRoute, shortened
from fastglt.serve.gate import RETRY_AFTER, Gate
from fastglt.serve.limits import Limits
from fastglt.serve.metrics import Counted, Metrics
from fastglt.serve.page import HEADERS, page
from fastglt.serve.pairs import PairResponse, pair_request_model
from fastglt.serve.requests import (
    NamedPredictRequest,
    Refusal,
    request_model,
    response_model,
)
from fastglt.serve.worker import Prediction, Worker

_PATHS = frozenset({"/", "/predict", "/healthz", "/metrics", "/docs", "/openapi.json"})
_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "The body is not JSON."},
    408: {"model": Refusal, "description": "The request did not arrive in time."},
    413: {"model": Refusal, "description": "The body is too long."},
    415: {"model": Refusal, "description": "The body is not declared as application/json."},
    422: {"model": Refusal, "description": "The request does not fit this service; the detail says where."},
    503: {"model": Refusal, "description": "Too much to do, or no answer in time; Retry-After says when to ask."},
}


class About(BaseModel):
    """What is served."""

    service: str = "fastglt"
    version: str
    ticket: str | None = Field(description="SHA-256 of the ticket's file.")
    nodes: int
    edges: int
    features: int
    classes: int | None = Field(description="None where pairs are asked for.")
    limits: dict[str, int | float]
    docs: str = "/docs"


class Health(BaseModel):
    """Whether requests are answered."""

    status: str


def make_app(
    predictor: Predictor, *, limits: Limits | None = None, ticket: str | None = None, names: Names | None = None
) -> FastAPI:
    """An ASGI app that serves a predictor, also one of your own PyG model; `fastglt.serve.run` runs it.

    `ticket` is a digest that every answer carries; `names` are what a file calls nodes and classes. The predictor
    runs with as many threads as `fastglt.set_threads` has set.
    """
    limits = limits or Limits()
    metrics, pairs = Metrics(), predictor.task.of_pairs
    worker = Worker(predictor, metrics, threads=torch.get_num_threads())
    about = About(
        version=__version__,
        ticket=ticket,
        nodes=predictor.graph.num_nodes,
        edges=predictor.graph.num_edges,
        features=predictor.x.num_features,
        classes=None if pairs else worker.outputs.shape[1],
        limits=vars(limits),
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with worker.running():
            yield

    app = FastAPI(
        title="fastglt serve",
        version=__version__,
        summary=f"{'Links between' if pairs else 'Classes of'} nodes, predicted by a graph lottery ticket.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.limits = limits  # for the server, which bounds connections by them
    app.add_middleware(Gate, path="/predict", limits=limits, metrics=metrics, pairs=pairs)
    app.add_middleware(Counted, metrics=metrics, paths=_PATHS)  # the last one added is outside
    app.add_exception_handler(InputError, _refuse)
    app.add_exception_handler(Exception, _hide)
    _add_routes(app, about, worker, metrics)
    describe: Any = pair_request_model if pairs else request_model
    model = describe(about.nodes, about.features, limits, named=names is not None)
    answer = (_AnsweringPairs if pairs else _Answering)(about, worker, limits, names)
    router = APIRouter(route_class=BodyRoute)
    router.post("/predict", response_model=answer.kind, responses=_REFUSALS)(answer.to(model))
    app.include_router(router)
    return app


def _add_routes(app: FastAPI, about: About, worker: Worker, metrics: Metrics) -> None:
    @app.get("/")
    async def describe() -> About:
        """What is served, and its limits."""
        return about

    @app.get("/healthz", responses={503: {"model": Health, "description": "It is starting or stopping."}})
    async def health(response: Response) -> Health:
        """200 if requests are answered, 503 if not."""
        if worker.ready:
            return Health(status="ready")
        response.status_code = 503
        return Health(status="not ready")

    @app.get("/metrics", response_class=PlainTextResponse)
    async def report() -> PlainTextResponse:
        """For Prometheus."""
        return PlainTextResponse(generate_latest(metrics.registry), media_type="text/plain; version=0.0.4")

    @app.get("/docs", include_in_schema=False)
    async def show() -> HTMLResponse:
        return HTMLResponse(page(app.openapi()), headers=HEADERS)


class _Answering:
    """What becomes of a request."""

    about = "The classes of nodes of the graph, or of new ones that exist for this request only."

    def __init__(self, about: About, worker: Worker, limits: Limits, names: Names | None) -> None:
        self._about, self._worker, self._limits, self._names = about, worker, limits, names
        self._aside = Aside()
        self._numbers = {} if names is None else {name: number for number, name in enumerate(names.nodes)}

    @property
    def kind(self) -> type[BaseModel]:
        """What comes back."""
        return response_model(self._worker.task, named=self._names is not None)

    def to(self, model: type[BaseModel]) -> Callable[..., Awaitable[Response]]:
        """The function that answers requests of a kind."""

        async def predict(request: Any) -> Response:
            if not self._worker.ready:
                raise HTTPException(503, "the service is starting or stopping; try again", RETRY_AFTER)
            try:
                found = await self._worker.ask(self._by_number(request), self._limits.timeout)
            except TimeoutError:
                detail = f"an answer may take {self._limits.timeout:g} s; try again, or ask for less"
                raise HTTPException(503, detail, RETRY_AFTER) from None
            written = await self._aside.run(self._write, found, size=self._size(found))
            return Response(written, media_type="application/json")

        predict.__doc__ = self.about
        predict.__annotations__["request"] = model  # with this graph's numbers in it
        return predict

    def _size(self, found: Any) -> int:
        return len(found) * (1 if found.probabilities is None else self._about.classes or 1)

    def _write(self, found: Any) -> bytes:
        origin = {"ticket": self._about.ticket, "version": self._about.version}
        predicted = {self._worker.task.answers: found.answers, "probabilities": found.probabilities}
        answer = self.kind(nodes=found.nodes, **predicted, **self._called(found), **origin)
        return answer.model_dump_json().encode()

    def _by_number(self, request: Any) -> Any:
        if not isinstance(request, NamedPredictRequest) or not request.ids:
            return request
        nodes = [*request.nodes, *map(self._number, request.ids)]
        if len(nodes) > self._limits.max_nodes:
            raise InputError(f"nodes and ids must be at most {self._limits.max_nodes} (got {len(nodes)})")
        return request.model_copy(update={"nodes": nodes})

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            raise InputError(f"ids must be those of the graph's file (got {shortened(name)})")
        return self._numbers[name]

    def _called(self, found: Prediction) -> dict[str, Any]:
        if self._names is None:
            return {}
        (ids, classes), task = self._names, self._worker.task
        called = {"ids": [ids[node] if node < len(ids) else None for node in found.nodes]}
        if task.answers == "labels":  # a node's labels stand there themselves
            return called
        return {**called, "labels": [classes[int(kind)] for kind in found.answers] if classes else None}


class _AnsweringPairs(_Answering):
    """The same for pairs."""

    about = "How likely pairs of nodes are links, new nodes among them that exist for this request only."
    kind = PairResponse

    def _size(self, found: Any) -> int:
        return 3 * len(found)

    def _write(self, found: Any) -> bytes:
        answer = PairResponse(
            pairs=found.pairs,
            probabilities=found.probabilities,
            ticket=self._about.ticket,
            version=self._about.version,
        )
        return answer.model_dump_json().encode()

    def _by_number(self, request: Any) -> Any:
        pairs = [*request.pairs, *([*map(self._number, pair)] for pair in request.ids)]
        if len(pairs) > self._limits.max_nodes:
            raise InputError(f"pairs and ids must be at most {self._limits.max_nodes} (got {len(pairs)})")
        return request.model_copy(update={"pairs": pairs, "ids": []})


async def _refuse(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 422)


async def _hide(_: Request, error: Exception) -> JSONResponse:
    """Which line failed is the log's business."""
    return JSONResponse({"detail": "internal error"}, 500)

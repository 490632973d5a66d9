"""What the service tells Prometheus. Each app has a registry of its own."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_CLIENT_LEFT = 499  # no answer was sent; a status that proxies use for it


class Metrics:
    """Counters, gauges and histograms."""

    def __init__(self) -> None:
        self.registry = home = CollectorRegistry()
        self.requests = Counter(
            "fastglt_requests", "Requests that were answered.", ["path", "status"], registry=home
        )
        self.seconds = Histogram(
            "fastglt_request_seconds",
            "From a request's headers to its answer.",
            ["path"],
            buckets=_SECONDS,
            registry=home,
        )
        self.waiting = Gauge("fastglt_queue_length", "Requests that wait for the predictor.", registry=home)
        self.under_way = Gauge(
            "fastglt_requests_under_way", "Requests to predict without an answer yet.", registry=home
        )
        self.unfinished = Gauge(
            "fastglt_requests_unfinished", "Requests to predict whose body is on its way.", registry=home
        )
        self.nodes = Counter("fastglt_nodes_predicted", "Nodes whose class was predicted.", registry=home)


class Counted:
    """Counts and times every request of the app inside, whatever becomes of it."""

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: frozenset[str]) -> None:
        self._app, self._metrics = app, metrics
        self._paths = paths  # any other path is "other": clients must not be able to make up time series

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and watch its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = _CLIENT_LEFT, time.perf_counter()

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception:
            status = 500
            raise
        finally:
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.requests.labels(path, status).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - began)

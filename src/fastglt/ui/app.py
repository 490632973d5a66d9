"""The addresses of `fastglt ui`: the page, and the progress that it asks for. Nothing can be changed by them."""

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from fastglt.errors import FastGLTError
from fastglt.ui.live import Live

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def make_app(live: Live) -> Starlette:
    """The pages over runs, without a guard: `fastglt ui` puts one before them that looks at the Host header."""

    async def page(_: Request) -> Response:
        try:
            return HTMLResponse(await run_in_threadpool(live.page), headers=HEADERS)
        except FastGLTError as error:
            return Response(f"{error}\n", 500, HEADERS, "text/plain; charset=utf-8")

    async def progress(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(live.progress), headers=HEADERS)

    return Starlette(routes=[Route("/", page), Route("/progress.json", progress)])

"""Whom the service talks to: requests that name it by one of its own names and, if there is a token, that know it.

A page from elsewhere can have its own name resolve to 127.0.0.1 and then ask as if it came from here (DNS
rebinding); its requests still carry that name in their Host header.
"""

import hmac
import ipaddress
import re
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fastglt.errors import InputError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HEALTH = "/healthz"  # whoever watches over the service need not know the token


class Guard:
    """Passes on requests to allowed hosts that carry the token, if there is one.

    The names of loopback and the address that a connection has come in at are always allowed: no other page's host
    can be one of these. Who is refused is told the hint, if there is one: how another name can be allowed.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: Collection[str] = (), token: str | None = None, hint: str = ""
    ) -> None:
        self._app, self._hint = app, hint and f"; {hint}"
        self._hosts = frozenset(map(normal_host, (*LOOPBACK, *map(require_host, hosts))))
        self._token = None if token is None else f"bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if not self._named(headers.get("host", ""), scope):
            got = headers.get("host", "")[:80]
            detail = f"the Host header must be a name of this service (got {got!a}){self._hint}"
            await JSONResponse({"detail": detail}, 400)(scope, receive, send)
        elif not self._knows(headers.get("authorization", ""), scope):
            detail = "the service must be asked with its token; send it as Authorization: Bearer TOKEN"
            challenge = {"WWW-Authenticate": "Bearer"}
            await JSONResponse({"detail": detail}, 401, challenge)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _named(self, header: str, scope: Scope) -> bool:
        if "*" in self._hosts:
            return True
        host = _host(header)
        return bool(host) and (host in self._hosts or host == _host_here(scope))

    def _knows(self, header: str, scope: Scope) -> bool:
        if self._token is None or scope["path"].removeprefix(scope.get("root_path", "")) == _HEALTH:
            return True
        scheme, _, given = header.partition(" ")
        return hmac.compare_digest(f"{scheme.lower()} {given.strip()}".encode("latin-1"), self._token)


def is_loopback(bound: str) -> bool:
    """Whether an address is reached from this machine only."""
    return ipaddress.ip_address(bound.partition("%")[0]).is_loopback


def normal_host(name: str) -> str:
    """A host name or address in one spelling.

    >>> normal_host("LocalHost."), normal_host("[0:0::1]"), normal_host("*")
    ('localhost', '::1', '*')
    """
    name = name.lower().removesuffix(".").removeprefix("[").removesuffix("]")
    try:
        return ipaddress.ip_address(name).compressed
    except ValueError:
        return name


def require_host(name: str) -> str:
    """Refuse what is no host name, address or *."""
    if not re.fullmatch(r"\*|[a-z0-9_.-]+|(?=.*:.*:)[0-9a-f:.]+", normal_host(name)):
        raise InputError(f"--allowed-host must be a host's name or address without a port, or * (got {name!r})")
    return name


def require_token(token: str, source: str) -> str:
    """Without the white space around it; refuse what no header can carry."""
    token = token.strip()
    if not re.fullmatch(r"[!-~]+", token):
        raise InputError(f"the token must be printable ASCII without spaces (got something else in {source})")
    return token


def _host(header: str) -> str:
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(:\d*)?", header.strip())
    return normal_host(found[1]) if found else ""


def _host_here(scope: Scope) -> str:
    server = scope.get("server")
    here = normal_host(str(server[0]).partition("%")[0]) if server else ""
    return here.removeprefix("::ffff:") if "." in here else here

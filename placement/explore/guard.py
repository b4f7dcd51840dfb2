"""Guard of the server: who may ask, how much, and what a browser may do with the answers.

The server is for one person on one machine. A page of another origin must neither read from it nor
make it work. The address therefore holds a random token. The headers Host and Origin must be those
of this server (a name that an attacker's DNS points to this machine is another Host). Answers say
that no other page may use them.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["HEADERS", "MOST_BYTES", "RequestGuard", "new_token"]

MOST_BYTES = 262_144
"""Most bytes of a question."""

HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "style-src-attr 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every answer. Charts place their marks with style attributes, which run nothing."""


def new_token() -> str:
    """Return a random token for the address: 128 bits."""
    return secrets.token_urlsafe(16)


class RequestGuard:
    """ASGI middleware that accepts only requests from the page of this server.

    Parameters
    ----------
    app
        The application; it sees paths without the token.
    token
        First segment of every path.
    hosts
        Values of Host that are this server, with port.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [(k, v) for k, v in message["headers"] if k.decode() not in HEADERS]
                added = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message = {**message, "headers": [*kept, *added]}
            await send(message)

        refused = self._refusal(scope)
        if refused is not None:
            status, why = refused
            await PlainTextResponse(why + "\n", status)(scope, receive, send_with_headers)
            return
        _, _, rest = scope["path"][1:].partition("/")
        inner = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        await self._app(inner, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return the status and the reason why a request is refused, or None."""
        headers = Headers(scope=scope)
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return 403, "unknown host"
        origins = headers.getlist("origin")
        post = scope["method"] == "POST"
        if (post or origins) and origins not in [[f"http://{host}"] for host in self._hosts]:
            return 403, "another origin"
        token, slash, _ = scope["path"][1:].partition("/")
        if not (slash and secrets.compare_digest(token.encode(), self._token.encode())):
            return 404, "not found"
        if post:
            if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                return 415, "expected JSON"
            length = headers.get("content-length", "")
            if not length.isascii() or not length.isdigit():
                return 411, "expected a length"
            if len(length) > 9 or int(length) > MOST_BYTES:
                return 413, "too long"
        return None

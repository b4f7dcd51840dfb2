"""Web application of the explorer. The server stores the instance, and no data of a request."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import socket
from collections.abc import AsyncIterator, Mapping

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from placement.errors import InputError, LimitError
from placement.explore.desk import Desk
from placement.explore.guard import MOST_BYTES, RequestGuard
from placement.explore.jobs import JOBS, Explorer
from placement.explore.page import page_files
from placement.explore.worker import Event, Worker
from placement.io.formats.document import parse_json

__all__ = ["application", "host_names", "web_server"]

_LONGEST_LANE = 64
_PATIENCE = 5.0
"""Seconds that a connection may take to send the head of its next request."""
_MOST_WAITING = 64
"""Most connections without a request."""


def application(
    explorer: Explorer, worker: Worker, token: str, hosts: frozenset[str]
) -> RequestGuard:
    """Return the application.

    Parameters
    ----------
    explorer
        Instance, origin and limit.
    worker
        Runs the jobs; the caller closes it.
    token
        First segment of every path.
    hosts
        Values of the header Host that are this server, with port.

    Notes
    -----
    ``GET /TOKEN/`` and the style and scripts beside it are made when the application starts; no
    path of a request reaches the file system. ``POST /TOKEN/ask/KIND`` answers with server-sent
    events: "progress" while a search runs, then one of "answer", "error", "cancelled".
    """
    desk = Desk(worker)
    files = page_files(explorer)

    def shown(name: str) -> Route:
        content, kind = files[name]

        async def show(request: Request) -> Response:
            del request
            return Response(content, media_type=kind)

        return Route(f"/{name}", show, methods=["GET"])

    async def ask(request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in JOBS:
            return PlainTextResponse("not found\n", 404)
        body = b""
        try:
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    return PlainTextResponse("too long\n", 413)
        except ClientDisconnect:  # nobody is there to read an answer
            return Response(status_code=400)
        try:
            value = parse_json(body.decode("utf-8"), "question")
        except UnicodeDecodeError:
            return PlainTextResponse("not UTF-8\n", 400)
        except InputError as error:
            return PlainTextResponse(f"{error}\n", 400)
        lane = request.headers.get("x-lane", "")[:_LONGEST_LANE]
        events = _sent(desk.events(lane, kind, value))
        return StreamingResponse(events, media_type="text/event-stream")

    routes = [*map(shown, files), Route("/ask/{kind}", ask, methods=["POST"])]
    return RequestGuard(Starlette(routes=routes), token, hosts)


def host_names(host: str, port: int) -> frozenset[str]:
    """Return the values of the header Host that a server on an address has.

    On loopback these are its three names; elsewhere the address and the names of this machine, so
    that a name that another DNS points here is none of them.
    """
    if ipaddress.ip_address(host).is_loopback:
        names = {"127.0.0.1", "localhost", "[::1]"}
    else:
        names = {f"[{host}]" if ":" in host else host, socket.gethostname(), socket.getfqdn()}
    known = {f"{name}:{port}" for name in names}
    return frozenset(known | names if port == 80 else known)


class _Patience(H11Protocol):
    """Connection that is closed unless a request arrives whole, but for its body, in time.

    A connection without a request has shown no token. It must not keep the page from its owner:
    where there are too many, the one that has waited longest goes at once.
    """

    waits_since = 0.0
    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as there
        super().connection_made(transport)
        self._wait()
        waiting = [one for one in self.connections if isinstance(one, _Patience) and one.idle]
        if len(waiting) > _MOST_WAITING:
            min(waiting, key=lambda one: one.waits_since).leave()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._limit is not None:
            self._limit.cancel()

    @property
    def idle(self) -> bool:
        """Return whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
        self.waits_since = self.loop.time()
        self._limit = self.loop.call_later(_PATIENCE, self.leave)

    def leave(self) -> None:
        """Close the connection if it is still idle."""
        if self.idle:
            self.transport.abort()


def web_server(app: RequestGuard) -> uvicorn.Server:
    """Return the server of an application, without logs of requests: addresses hold the token."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="off",
        http=_Patience,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=65_536,
    )
    return uvicorn.Server(config)


async def _sent(events: AsyncIterator[Event]) -> AsyncIterator[str]:
    """Yield events as text; the job of an answer that is not read to its end is cancelled."""
    async with contextlib.aclosing(events) as open_events:  # type: ignore[type-var]  # a generator
        try:
            async for name, content in open_events:
                yield _event(name, content)
        except LimitError as error:
            yield _event("error", {"message": str(error)})


def _event(name: str, content: Mapping[str, object]) -> str:
    data = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return f"event: {name}\ndata: {data}\n\n"

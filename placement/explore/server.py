"""Web application of the explorer: who may ask, the order of jobs, and what is answered.

The server stores the instance, and no data of a request. It is for one person on one machine. A
page of another origin must neither read from it nor make it work. The address therefore holds a
random token. The headers Host and Origin must be those of this server (a name that an attacker's
DNS points to this machine is another Host). Answers say that no other page may use them.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import secrets
import socket
from collections.abc import AsyncIterator, Mapping

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from placement.errors import InputError, LimitError
from placement.explore.jobs import JOBS, Explorer
from placement.explore.page import page_files
from placement.explore.worker import Event, Worker
from placement.io.formats.document import parse_json

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


_LAST = ("answer", "error", "cancelled")


class Desk:
    """Hands jobs to a worker.

    Parameters
    ----------
    worker
        Runs one job at a time.
    most
        Most jobs that wait.
    """

    def __init__(self, worker: Worker, most: int = 32) -> None:
        self._worker = worker
        self._most = most
        self._turn = asyncio.Lock()
        self._number = 0
        self._lanes: dict[str, int] = {}
        self._waiting: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def events(self, lane: str, kind: str, value: object) -> AsyncIterator[Event]:
        """Yield the events of a job; one that is left early is cancelled.

        Parameters
        ----------
        lane
            Name of a tab: a job cancels the one before it of the same lane.
        kind, value
            As of :func:`placement.explore.jobs.run_job`.

        Raises
        ------
        LimitError
            When too many jobs wait.
        """
        if len(self._waiting) >= self._most:
            raise LimitError("too many questions wait; ask again later")
        self._number = number = self._number + 1
        before = self._lanes.get(lane)
        self._lanes[lane] = number
        self._waiting.add(number)
        if before is not None:
            self._cancel(before)
        queue: asyncio.Queue[Event] = asyncio.Queue()
        task = asyncio.create_task(self._run(number, lane, kind, value, queue))
        self._tasks.add(task)  # the loop alone would not keep it
        task.add_done_callback(self._tasks.discard)
        last = False
        try:
            while not last:
                event = await queue.get()
                last = event[0] in _LAST
                yield event
        finally:
            if not last:
                self._cancel(number)

    def _cancel(self, number: int) -> None:
        """Cancel a job that waits or runs."""
        if number in self._waiting:
            self._waiting.discard(number)
        elif number in self._lanes.values() or number == self._running:
            self._worker.cancel(number)

    _running = 0

    async def _run(
        self, number: int, lane: str, kind: str, value: object, queue: asyncio.Queue[Event]
    ) -> None:
        """Wait for the turn of a job, and run it to its end."""
        loop = asyncio.get_running_loop()

        def tell(event: Event) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, event)

        async with self._turn:
            if number not in self._waiting:
                queue.put_nowait(("cancelled", {}))
            else:
                self._waiting.discard(number)
                self._running = number
                await asyncio.to_thread(self._worker.run, number, kind, value, tell)
                self._running = 0
        if self._lanes.get(lane) == number:
            del self._lanes[lane]


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

"""Web server of the explorer: who may ask, and what is answered.

The server stores the instance, and no data of a request. It is for one person on one machine. A
page of another origin must neither read from it nor make it work. The address therefore holds a
random token. The headers Host and Origin must be those of this server (a name that an attacker's
DNS points to this machine is another Host). Answers say that no other page may use them.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import secrets
import select
import socket
import sys
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from placement.errors import InputError, LimitError
from placement.explore.jobs import JOBS
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

_LONGEST_LANE = 64
_PATIENCE = 5.0
"""Seconds for the head of a request, and for each part of its body and of the answer."""
_MOST_WAITING = 64
"""Most connections without a request."""


def in_address(host: str) -> str:
    """Return an IP address as it stands in the address of a page."""
    return f"[{host}]" if ":" in host else host


def host_names(host: str, port: int) -> frozenset[str]:
    """Return the values of the header Host that a server on an address has.

    On loopback these are its three names; elsewhere the address and the names of this machine, so
    that a name that another DNS points here is none of them.
    """
    if ipaddress.ip_address(host).is_loopback:
        names = {"127.0.0.1", "localhost", "[::1]"}
    else:
        names = {in_address(host), socket.gethostname(), socket.getfqdn()}
    known = {f"{name}:{port}" for name in names}
    return frozenset(known | names if port == 80 else known)


class ExplorerServer(ThreadingHTTPServer):
    """Serves the page and its questions, a thread for each connection.

    ``GET /TOKEN/`` and the style and scripts beside it are made when the server starts; no path of
    a request reaches the file system. ``POST /TOKEN/ask/KIND`` answers with server-sent events:
    "progress" while a search runs, then one of "answer", "error", "cancelled". The worker runs the
    jobs, and the caller closes it. The `token` is the first segment of every path; None: a random
    one of 128 bits.
    """

    def __init__(self, listening: socket.socket, worker: Worker, token: str | None = None) -> None:
        host, port = listening.getsockname()[:2]
        super().__init__((host, port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.worker = worker
        self.token = token or secrets.token_urlsafe(16)
        self.hosts = host_names(host, port)
        self.files = page_files(worker.explorer)
        self.idle: dict[Any, float] = {}  # connection without a request -> when it was made

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin a connection."""
        self.idle[request] = time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Close connections without a request after a time, and the oldest of too many.

        Such a connection has shown no token. It must not keep the page from its owner.
        """
        late = time.monotonic() - _PATIENCE
        for number, (request, since) in enumerate(reversed(list(self.idle.items()))):
            if since < late or number >= _MOST_WAITING:
                with contextlib.suppress(OSError):  # its thread then ends
                    request.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self.idle.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell of an error, unless it is that of a client that leaves."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers or refuses one request; the connection then ends."""

    server: ExplorerServer
    timeout = _PATIENCE  # of one read or write; http.server then closes the connection
    disable_nagle_algorithm = True  # an event is sent at once

    def parse_request(self) -> bool:
        """Read the head of the request, which ends the wait for it."""
        read = super().parse_request()
        self.server.idle.pop(self.request, None)
        return read

    def _refusal(self) -> tuple[int, str] | None:
        """Return the status and the reason why the request is refused, or None."""
        hosts, post = self.server.hosts, self.command == "POST"
        if self.headers.get_all("host") not in [[host] for host in hosts]:
            return 403, "unknown host"
        origins = self.headers.get_all("origin", [])
        if (post or origins) and origins not in [[f"http://{host}"] for host in hosts]:
            return 403, "another origin"
        token, slash, _ = self.path[1:].partition("/")
        if not (slash and secrets.compare_digest(token.encode(), self.server.token.encode())):
            return 404, "not found"
        if post:
            if self.headers.get_content_type() != "application/json":
                return 415, "expected JSON"
            length = self.headers.get("content-length", "")
            if not length.isascii() or not length.isdigit():
                return 411, "expected a length"
            if len(length) > 9 or int(length) > MOST_BYTES:
                return 413, "too long"
        return None

    def _name(self) -> str | None:
        """Return the path after the token; None: the request was refused."""
        refused = self._refusal()
        if refused is not None:
            self.send_error(*refused)
            return None
        return self.path.partition("?")[0][1:].partition("/")[2]

    def do_GET(self) -> None:
        """Answer with a file of the page."""
        name = self._name()
        if name in self.server.files:
            self._send(200, *self.server.files[name])
        elif name is not None:
            self.send_error(404, "not found")

    def do_POST(self) -> None:
        """Run a job, and answer with its events."""
        name = self._name()
        if name is None:
            return
        where, _, kind = name.partition("/")
        if where != "ask" or kind not in JOBS:
            self.send_error(404, "not found")
            return
        length = int(self.headers["content-length"])
        body = self.rfile.read(length)
        if len(body) < length:  # nobody is there to read an answer
            return
        try:
            value = parse_json(body.decode("utf-8"), "question")
        except UnicodeDecodeError:
            self.send_error(400, "not UTF-8")
        except InputError as error:
            self.send_error(400, str(error))
        else:
            self._send(200, "", "text/event-stream")
            lane, _, place = self.headers.get("x-lane", "")[:_LONGEST_LANE].partition(" ")
            order = int(place) if place.isascii() and place.isdigit() else 0
            try:
                self.server.worker.run(lane, kind, value, self._tell, self._left, order)
            except LimitError as error:
                self._tell(("error", {"message": str(error)}))

    def _tell(self, event: Event) -> None:
        data = json.dumps(event[1], allow_nan=False, separators=(",", ":"))
        with contextlib.suppress(OSError):  # the client left; the job goes on until it is cancelled
            self.wfile.write(f"event: {event[0]}\ndata: {data}\n\n".encode())

    def _left(self) -> bool:
        """Return whether the client closed the connection."""
        try:
            ready, _, _ = select.select([self.connection], [], [], 0)
            return bool(ready) and not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def _send(self, status: int, content: str, kind: str) -> None:
        self.send_response_only(status)
        for header in (*HEADERS.items(), ("content-type", f"{kind}; charset=utf-8")):
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(content.encode())

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer with an error as text."""
        self._send(code, f"{message or 'refused'}\n", "text/plain")

    def log_message(self, format: str, *args: object) -> None:
        """Write no log: addresses hold the token."""

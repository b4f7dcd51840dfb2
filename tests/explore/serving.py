"""A running explorer, and plain HTTP to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from placement import Instance
from placement.explore.jobs import Explorer
from placement.explore.server import ExplorerServer
from placement.explore.worker import Worker
from placement.question import Question

TOKEN = "a-token-of-the-tests"


def events_of(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.strip().split("\n\n"):
        head, body = block.split("\n")
        found.append((head.removeprefix("event: "), json.loads(body.removeprefix("data: "))))
    return found


class Served(contextlib.AbstractContextManager["Served"]):
    """An explorer that serves an instance on loopback until it is closed."""

    def __init__(self, instance: Instance, *, source: str = "world27", limit: float = 30.0) -> None:
        self.explorer = Explorer(instance, Question(instance=source), limit)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        self.address = f"http://{self.host}/{TOKEN}/"
        self.worker = Worker(self.explorer)
        self._server = ExplorerServer(self._socket, self.worker, TOKEN)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def request(
        self,
        verb: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Mapping[str, str], str]:
        """Send a request with exactly these headers beside the length.

        A server may refuse a request before it has read the body. When it then closes, the system
        can reset the connection, and the answer is lost: the request is sent again.
        """
        given = {"Host": self.host} if headers is None else dict(headers)
        tries = 0
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            try:
                connection.putrequest(verb, path, skip_host=True, skip_accept_encoding=True)
                for name, value in given.items():
                    connection.putheader(name, value)
                if body is not None and "Content-Length" not in given:
                    connection.putheader("Content-Length", str(len(body)))
                connection.endheaders(body)
                answer = connection.getresponse()
                text = answer.read().decode()
                return answer.status, {k.lower(): v for k, v in answer.getheaders()}, text
            except ConnectionError:
                if (tries := tries + 1) > 9:
                    raise
                time.sleep(0.05)
            finally:
                connection.close()

    def headers(self, lane: str = "test") -> dict[str, str]:
        return {
            "Host": self.host,
            "Origin": f"http://{self.host}",
            "Content-Type": "application/json",
            "X-Lane": lane,
        }

    def ask(self, kind: str, value: object, lane: str = "test") -> tuple[str, Any]:
        """Ask for a job and return its last event."""
        body = json.dumps(value).encode()
        status, _, text = self.request("POST", f"/{TOKEN}/ask/{kind}", body, self.headers(lane))
        assert status == 200, text
        return events_of(text)[-1]

    def plan(self, **question: object) -> Any:
        """Ask for a plan and return the answer."""
        name, content = self.ask("plan", {"question": question})
        assert name == "answer", content
        return content

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(30)
        self.worker.close()
        self._socket.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def served(instance: Instance) -> Iterator[Served]:
    """Yield an explorer; for fixtures."""
    with Served(instance) as found:
        yield found

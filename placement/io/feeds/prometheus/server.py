"""Instant queries to a Prometheus server over HTTP, with the standard library."""

from __future__ import annotations

import http.client
import json
import math
import queue
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from placement.errors import InputError

__all__ = ["PrometheusServer", "Sample", "finite"]

_MOST_BYTES = 2**28
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Sample:
    """Element of an instant vector.

    Attributes
    ----------
    labels
        Name -> value.
    value
        The value; NaN and infinities as Prometheus gives them.
    """

    labels: Mapping[str, str]
    value: float


class PrometheusServer:
    """A server that answers PromQL.

    Parameters
    ----------
    url
        ``http://HOST:PORT`` or ``https://…``, perhaps with a path prefix.
    timeout
        Seconds for one query, from the look-up of the name to the last byte of the answer.

    Raises
    ------
    InputError
        For any other URL, and for one with a user name: the name would stand in messages.
    """

    def __init__(self, url: str, timeout: float = 60.0) -> None:
        try:
            parts = urllib.parse.urlsplit(url)
            wrong = parts.scheme not in ("http", "https") or not parts.hostname
            wrong = wrong or "@" in parts.netloc or bool(parts.query or parts.fragment)
            port = parts.port
        except ValueError:
            wrong, port = True, None
        if wrong or any(ord(c) <= 32 for c in url):
            raise InputError(
                "not the URL of a Prometheus server",
                field="URL",
                value=url.rpartition("@")[2],
                expected="http://HOST:PORT, without user, query and fragment",
            )
        self.name = f"{parts.hostname}:{port}" if port else str(parts.hostname)
        self._query = url.rstrip("/") + "/api/v1/query"
        self._timeout = timeout

    def query(self, promql: str, at: str | None = None) -> tuple[Sample, ...]:
        """Return the instant vector of an expression.

        Parameters
        ----------
        promql
            The expression.
        at
            RFC 3339 or seconds since 1970; None: now.

        Raises
        ------
        InputError
            When the server cannot be reached, refuses the expression, or answers with anything but
            an instant vector; with the server's own words.
        """
        form = {"query": promql} | ({} if at is None else {"time": at})
        request = urllib.request.Request(
            self._query, data=urllib.parse.urlencode(form).encode(), method="POST"
        )
        try:
            body, refusal = _by(self._timeout, lambda: _answer(request, self._timeout))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._failed(f"no answer ({error})", promql) from None
        if refusal:
            raise self._failed(_words(body) or refusal, promql)
        if len(body) > _MOST_BYTES:
            raise self._failed("an answer of more than 256 MiB", promql)
        return self._vector(body, promql)

    def _vector(self, body: bytes, promql: str) -> tuple[Sample, ...]:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            raise self._failed("an answer that is no JSON", promql) from None
        data = value.get("data") if isinstance(value, dict) else None
        found = data.get("result") if isinstance(data, dict) else None
        if not isinstance(data, dict) or not isinstance(found, list):
            raise self._failed(_words(body) or "an answer without a result", promql)
        if data.get("resultType") != "vector":
            raise self._failed(f"a result of the type {data.get('resultType')}", promql)
        samples = []
        for element in found:
            try:
                labels = {str(k): str(v) for k, v in element["metric"].items()}
                samples.append(Sample(labels, float(element["value"][1])))
            except (TypeError, KeyError, IndexError, AttributeError, ValueError):
                raise self._failed("an element that is no sample", promql) from None
        return tuple(samples)

    def _failed(self, words: str, promql: str) -> InputError:
        return InputError(
            f"Prometheus: {words}",
            source=self.name,
            field="query",
            value=promql,
            expected="an instant vector",
        )


def _answer(request: urllib.request.Request, timeout: float) -> tuple[bytes, str]:
    """Return the body of an answer, and the status of a refusal in words."""
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            body: bytes = response.read(_MOST_BYTES + 1)
            return body, ""
    except urllib.error.HTTPError as error:
        with error:
            return error.read(_MOST_BYTES), str(error)


def _by(seconds: float, work: Callable[[], _T]) -> _T:
    """Return what `work` returns, or raise TimeoutError after so many seconds.

    The time limit of a socket begins anew with every byte: a server that sends one now and then
    would never be given up. The thread that waits for it ends with the process.
    """
    outcome: queue.SimpleQueue[_T | Exception] = queue.SimpleQueue()

    def put() -> None:
        try:
            outcome.put(work())
        except Exception as error:
            outcome.put(error)

    threading.Thread(target=put, name="prometheus", daemon=True).start()
    try:
        found = outcome.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"not whole after {seconds:g} s") from None
    if isinstance(found, Exception):
        raise found
    return found


def _words(body: bytes) -> str:
    """Return the error in an answer of the API; empty without an error."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    return str(value.get("error", ""))[:500] if isinstance(value, dict) else ""


def finite(sample: Sample) -> bool:
    """Return whether a sample has a value that can be an RTT or a count."""
    return math.isfinite(sample.value) and sample.value >= 0

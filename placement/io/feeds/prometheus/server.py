"""Instant queries to a Prometheus server over HTTP, with the standard library."""

from __future__ import annotations

import http.client
import json
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from placement.errors import InputError

__all__ = ["PrometheusServer", "Sample", "finite"]

_MOST_BYTES = 2**28


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
        Seconds for one query.

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
            with urllib.request.urlopen(request, timeout=self._timeout) as response:
                body = response.read(_MOST_BYTES + 1)
        except urllib.error.HTTPError as error:
            raise self._failed(_words(error.read(_MOST_BYTES)) or str(error), promql) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._failed(f"no answer ({error})", promql) from None
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

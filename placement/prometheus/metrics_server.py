"""RTTs and operations by region from a Prometheus server: presets, PromQL, HTTP, reading.

The presets stand in ``presets.toml``. Texts of users are checked or escaped before they stand in an
expression.
"""

from __future__ import annotations

import http.client
import json
import math
import queue
import re
import statistics
import threading
import tomllib
import urllib.error
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from placement.errors import InputError, refused, require
from placement.io.demand_tables import DemandTable
from placement.io.feeds.pair_samples import table_of
from placement.io.feeds.registry import RttReading

# --- presets ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RttMetric:
    """An expression for RTTs per pair."""

    expression: str  #: PromQL, see the module
    unit: float  #: milliseconds per unit of the values
    target: str  #: label of the far end
    series: str  #: selector whose samples are counted, to find gaps
    #: expression that tells the region of each value of `target`; empty: `target` is a name
    identity: str = ""
    identity_label: str = ""  #: label of that expression that has the values of `target`
    bias: float = 1.0  #: known ratio of the metric to the true RTT; results are divided by it
    note: str = ""  #: one sentence on the metric, for the user


@dataclass(frozen=True, slots=True)
class Preset:
    """Metrics of one system."""

    title: str  #: name of the system
    rtts: tuple[RttMetric, ...]  #: the first one that has samples counts
    #: operation -> expressions of the operations in the window, by region; they are added up
    operations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""  #: one sentence for the user


def _presets() -> dict[str, Preset]:
    document = tomllib.loads(Path(__file__).with_name("presets.toml").read_text("utf-8"))
    found = {}
    for name, told in document.items():
        rtts = told.get("rtts", [])
        rtts = document[rtts]["rtts"] if isinstance(rtts, str) else rtts
        operations = {kind: tuple(parts) for kind, parts in told.get("operations", {}).items()}
        metrics = tuple(RttMetric(**metric) for metric in rtts)
        found[name] = Preset(told["title"], metrics, operations, told.get("note", ""))
    return found


PRESETS: Mapping[str, Preset] = MappingProxyType(_presets())
"""Name -> preset, as ``presets.toml`` has them."""


# --- PromQL ----------------------------------------------------------------------------------

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_WINDOW = re.compile(r"(?:[1-9]\d{0,5}(?:ms|[smhdwy]))+")
_MATCHER = re.compile(r"([^=!~]+)(=~|!~|!=|=)(.*)", re.DOTALL)


def quoted(text: str) -> str:
    r"""Return a text as a string of PromQL: quotes, backslashes and line ends are escaped.

    >>> print(quoted('a"} or up{x="'))
    "a\"} or up{x=\""
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\x00") + '"'


def label_name(text: str, field: str) -> str:
    """Return a label's name; another text is refused."""
    expected = "letters, digits and underscores, such as region"
    require(_NAME.fullmatch(text), field, "not the name of a label", text, expected)
    return text


def matchers(texts: Sequence[str], field: str) -> str:
    """Return matchers such as ``job=etcd`` or ``cluster=~eu-.*`` as the inside of a selector."""
    parts = []
    for text in texts:
        match = _MATCHER.fullmatch(text)
        if match is None:
            raise refused("", field, "not a matcher", text, "LABEL=VALUE or LABEL=~REGEX")
        parts.append(label_name(match[1].strip(), field) + match[2] + quoted(match[3]))
    return ", ".join(parts)


def window_of(text: str, field: str) -> str:
    """Return a duration of PromQL, such as ``1d`` or ``1h30m``; another text is refused."""
    expected = "a duration such as 30m, 6h or 7d"
    require(_WINDOW.fullmatch(text), field, "not a duration", text, expected)
    return text


# --- HTTP ------------------------------------------------------------------------------------

_MOST_BYTES = 2**28
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Sample:
    """Element of an instant vector."""

    labels: Mapping[str, str]  #: name -> value
    value: float  #: the value; NaN and infinities as Prometheus gives them


class PrometheusServer:
    """A server that answers PromQL at ``http://HOST:PORT`` or ``https://…``, perhaps with a prefix.

    The time limit of a query counts from the look-up of the name to the last byte of the answer. A
    URL with a user name is refused too: the name would stand in messages.
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
            words = "not the URL of a Prometheus server"
            expected = "http://HOST:PORT, without user, query and fragment"
            raise InputError(words, field="URL", value=url.rpartition("@")[2], expected=expected)
        self.name = f"{parts.hostname}:{port}" if port else str(parts.hostname)
        self._query = url.rstrip("/") + "/api/v1/query"
        self._timeout = timeout

    def query(self, promql: str, at: str | None = None) -> tuple[Sample, ...]:
        """Return the instant vector of an expression at a time (RFC 3339 or seconds since 1970).

        InputError, with the server's own words, when it cannot be reached, refuses the expression,
        or answers with anything but an instant vector.
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
        return refused(self.name, "query", f"Prometheus: {words}", promql, "an instant vector")


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


def _finite(sample: Sample) -> bool:
    """Return whether a sample has a value that can be an RTT or a count."""
    return math.isfinite(sample.value) and sample.value >= 0


# --- reading ---------------------------------------------------------------------------------

_SHOWN = 5
_COVERED = 0.9


@dataclass(frozen=True, slots=True)
class PrometheusRequest:
    """Facts about the metrics that the user told."""

    window: str = "1d"  #: duration before `at`
    at: str | None = None  #: RFC 3339 or seconds since 1970; None: now
    match: Sequence[str] = ()  #: matchers for every selector, such as `job=etcd`
    #: label that names the region of the scraped server, or of the probe
    region_label: str = "region"
    target_label: str | None = None  #: names the far end of a probe; None: that of the preset
    sites: Mapping[str, str] = field(default_factory=dict)  #: value of a label -> region
    bias: float | None = None  #: known ratio of the metric to the RTT; None: that of the preset
    rtt_query: str | None = None  #: expression for RTTs in seconds, in the place of the preset's
    #: operation -> expression for operations in the window
    ops_query: Mapping[str, str] = field(default_factory=dict)

    def fill(self, expression: str) -> str:
        """Return an expression with matchers, window and region label, which are checked."""
        match = matchers(self.match, "--match")
        return expression.format(
            match=match + ", " if match else "",
            window=window_of(self.window, "--window"),
            region=label_name(self.region_label, "--region-label"),
        )

    def site(self, sample: Sample, label: str, server: str) -> str:
        """Return the region that a label of a sample names; InputError without the label."""
        found = sample.labels.get(label, "")
        words = f"a series without the label {label}"
        expected = "--region-label and --target-label with labels of the metric"
        require(found, label, words, dict(sample.labels), expected, source=server)
        return self.sites.get(found, found)


def read_rtts(server: PrometheusServer, preset: Preset, request: PrometheusRequest) -> RttReading:
    """Return the RTTs between regions.

    Refused are metrics without samples, a peer of no known region, and a custom expression that
    takes a quantile of histogram buckets; and what :meth:`PrometheusServer.query` refuses.
    """
    metrics = preset.rtts if request.rtt_query is None else (_custom(request),)
    words, expected = "no expression for RTTs", "PromQL with RTTs in seconds"
    require(metrics, "--rtt-query", words, expected=expected)
    for metric in metrics:
        samples = server.query(request.fill(metric.expression), request.at)
        if samples:
            return _reading(server, preset, metric, samples, request)
    words = f"no samples of {preset.title} in the window"
    expected = "samples; --window, --at and --match choose others"
    raise refused(server.name, "query", words, request.fill(metrics[0].expression), expected)


def _custom(request: PrometheusRequest) -> RttMetric:
    query = str(request.rtt_query)
    words = "a quantile of default buckets is no RTT: 120 ms reads as 175 ms"
    expected = "sums and counts: rate(NAME_sum[1d]) / rate(NAME_count[1d])"
    require("histogram_quantile" not in query, "--rtt-query", words, query, expected)
    literal = query.replace("{", "{{").replace("}", "}}")
    return RttMetric(literal, 1000.0, "target", "")


def _reading(
    server: PrometheusServer,
    preset: Preset,
    metric: RttMetric,
    samples: Sequence[Sample],
    request: PrometheusRequest,
) -> RttReading:
    target = (
        metric.target if request.target_label is None or metric.identity else request.target_label
    )
    identity = _identity(server, metric, request)
    bias = metric.bias if request.bias is None else request.bias
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    named: dict[tuple[str, str], list[float]] = {}
    unknown: list[str] = []
    for sample in samples:
        start = request.site(sample, request.region_label, server.name)
        peer = sample.labels.get(target, "")
        if metric.identity and peer not in identity and peer not in request.sites:
            unknown.append(peer)
            continue
        end = identity.get(peer) or request.site(sample, target, server.name)
        named.setdefault((start, end), [])
        if _finite(sample):
            values[start, end].append(sample.value * metric.unit / bias)
    rtts = {pair: statistics.median(found) for pair, found in values.items()}
    if not rtts:
        given = ", ".join(f"{a} → {b}" for a, b in named) or ", ".join(dict.fromkeys(unknown))
        expected = "peers of known regions; --site-of PEER=REGION names them"
        expected = "two measurements or more in the window (--window)" if named else expected
        raise refused(server.name, target, "no pair of regions has an RTT", given, expected)
    notes = [metric.note, preset.note]
    if bias != 1:
        notes.append(f"RTTs were divided by the known bias {bias:g} of the metric (--bias)")
    if unknown:
        peers = ", ".join(dict.fromkeys(unknown))
        notes.append(f"peers of no known region were left out: {peers}")
    empty = [f"{a} → {b}" for a, b in named if (a, b) not in rtts]
    if empty:
        notes.append(_some("pairs without a value", empty))
    notes.extend(_gaps(server, metric.series, request))
    what = f"{preset.title} in Prometheus, window {request.window}"
    notes.append(f"{len(rtts)} pairs of regions")
    sentence = f"RTTs were read from {what}."
    corrected = f"They were divided by {bias:g}, the known bias of the metric."
    return RttReading(
        table_of(server.name, rtts, (sentence, *([corrected] if bias != 1 else [])), named),
        None,
        True,
        tuple(note for note in notes if note),
    )


def _identity(
    server: PrometheusServer, metric: RttMetric, request: PrometheusRequest
) -> dict[str, str]:
    """Return the region of each peer; a peer in two regions is refused."""
    if not metric.identity:
        return {}
    found: dict[str, str] = {}
    for sample in server.query(request.fill(metric.identity), request.at):
        peer = sample.labels.get(metric.identity_label, "")
        region = request.site(sample, request.region_label, server.name)
        if found.setdefault(peer, region) != region:
            given, expected = f"{peer}: {found[peer]}, {region}", "one region per peer"
            expected += "; --match chooses one cluster"
            words = "a peer in two regions"
            raise refused(server.name, metric.identity_label, words, given, expected)
    return found


def _gaps(server: PrometheusServer, series: str, request: PrometheusRequest) -> list[str]:
    """Return a note on series with far fewer samples than the others."""
    if not series:
        return []
    selector = request.fill(series)
    counts = server.query(f"count_over_time({selector}[{request.window}])", request.at)
    most = max((sample.value for sample in counts), default=0.0)
    thin = {
        f"{sample.labels.get(request.region_label, '?')} ({sample.value / most:.0%} of the samples)"
        for sample in counts
        if sample.value < _COVERED * most
    }
    return [_some("gaps in the window", sorted(thin))] if thin else []


def _some(what: str, names: Sequence[str]) -> str:
    return f"{what}: " + ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def read_operations(
    server: PrometheusServer, preset: Preset, request: PrometheusRequest
) -> DemandTable:
    """Return the operations by region in the window; counter resets are taken into account.

    Refused are a preset without operations, and expressions without samples; and what
    :meth:`PrometheusServer.query` refuses.
    """
    queries = {name: [query] for name, query in request.ops_query.items()} or {
        name: [request.fill(part) for part in parts] for name, parts in preset.operations.items()
    }
    words = f"no operations are known for {preset.title}"
    expected = "--ops-query OPERATION=PROMQL, --counts FILE or --mix NAME"
    require(queries, "--preset", words, expected=expected)
    sums: dict[tuple[str, str], float] = defaultdict(float)
    silent = []
    for operation, parts in queries.items():
        found = (sample for query in parts for sample in server.query(query, request.at))
        samples = [sample for sample in found if _finite(sample)]
        if not samples:
            silent.append(operation)
        for sample in samples:
            sums[request.site(sample, request.region_label, server.name), operation] += sample.value
    if not sums or not any(sums.values()):
        words = f"no operations of {preset.title} in the window"
        expected = "samples of counters; or --ops-query, --counts FILE, --mix NAME"
        raise refused(server.name, "query", words, next(iter(queries.values()))[0], expected)
    clients = tuple(dict.fromkeys(client for client, _ in sums))
    operations = tuple(name for name in queries if name not in silent)
    values = np.array([[sums.get((c, o), 0.0) for o in operations] for c in clients])
    notes = [f"operations of the window {request.window} by the label {request.region_label}"]
    if silent:
        notes.append("no samples of " + ", ".join(silent))
    counts = values[np.newaxis, np.newaxis]
    return DemandTable(server.name, (), (), clients, operations, counts, True, tuple(notes))

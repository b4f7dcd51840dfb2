"""RTTs and operations by region from a Prometheus server; notes on gaps and biased values."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from placement.errors import InputError
from placement.io.assemble_instance import Demanded
from placement.io.feeds.pair_samples import table_of
from placement.io.feeds.prometheus.presets import Preset, RttMetric
from placement.io.feeds.prometheus.promql import label_name, matchers, window_of
from placement.io.feeds.prometheus.server import PrometheusServer, Sample, finite
from placement.io.feeds.registry import RttReading
from placement.io.labelled_arrays import Labelled

__all__ = ["PrometheusRequest", "read_operations", "read_rtts"]

_SHOWN = 5
_COVERED = 0.9


@dataclass(frozen=True, slots=True)
class PrometheusRequest:
    """Facts about the metrics that the user told.

    Attributes
    ----------
    window
        Duration before `at`.
    at
        RFC 3339 or seconds since 1970; None: now.
    match
        Matchers for every selector, such as ``job=etcd``.
    region
        Label that names the region of the scraped server, or of the probe.
    target
        Label of the far end of a probe; None: that of the preset.
    sites
        Value of a label -> region.
    bias
        Known ratio of the metric to the RTT; None: that of the preset.
    rtt_query
        Expression for RTTs in seconds, in the place of the preset's.
    ops_queries
        Operation -> expression for operations in the window.
    """

    window: str = "1d"
    at: str | None = None
    match: Sequence[str] = ()
    region: str = "region"
    target: str | None = None
    sites: Mapping[str, str] = field(default_factory=dict)
    bias: float | None = None
    rtt_query: str | None = None
    ops_queries: Mapping[str, str] = field(default_factory=dict)

    def fill(self, expression: str) -> str:
        """Return an expression with matchers, window and region label.

        Raises
        ------
        InputError
            For a matcher, window or label that is none.
        """
        match = matchers(self.match, "--match")
        return expression.format(
            match=match + ", " if match else "",
            window=window_of(self.window, "--window"),
            region=label_name(self.region, "--region-label"),
        )

    def site(self, sample: Sample, label: str, server: str) -> str:
        """Return the region that a label of a sample names.

        Raises
        ------
        InputError
            For a sample without the label.
        """
        found = sample.labels.get(label, "")
        if not found:
            raise InputError(
                f"a series without the label {label}",
                source=server,
                field=label,
                value=dict(sample.labels),
                expected="--region-label and --target-label with labels of the metric",
            )
        return self.sites.get(found, found)


def read_rtts(server: PrometheusServer, preset: Preset, request: PrometheusRequest) -> RttReading:
    """Return the RTTs between regions.

    Raises
    ------
    InputError
        Where no metric has samples, a peer is of no known region, or a custom expression takes a
        quantile of histogram buckets; and as :meth:`PrometheusServer.query`.
    """
    metrics = preset.rtts
    if request.rtt_query is not None:
        metrics = (_custom(request),)
    if not metrics:
        raise InputError(
            "no expression for RTTs", field="--rtt-query", expected="PromQL with RTTs in seconds"
        )
    for metric in metrics:
        samples = server.query(request.fill(metric.expression), request.at)
        if samples:
            return _reading(server, preset, metric, samples, request)
    raise InputError(
        f"no samples of {preset.title} in the window",
        source=server.name,
        field="query",
        value=request.fill(metrics[0].expression),
        expected="samples; --window, --at and --match choose others",
    )


def _custom(request: PrometheusRequest) -> RttMetric:
    query = str(request.rtt_query)
    if "histogram_quantile" in query:
        raise InputError(
            "a quantile of default buckets is no RTT: 120 ms reads as 175 ms",
            field="--rtt-query",
            value=query,
            expected="sums and counts: rate(NAME_sum[1d]) / rate(NAME_count[1d])",
        )
    literal = query.replace("{", "{{").replace("}", "}}")
    return RttMetric(literal, 1000.0, "target", "")


def _reading(
    server: PrometheusServer,
    preset: Preset,
    metric: RttMetric,
    samples: Sequence[Sample],
    request: PrometheusRequest,
) -> RttReading:
    target = metric.target if request.target is None or metric.identity else request.target
    identity = _identity(server, metric, request)
    bias = metric.bias if request.bias is None else request.bias
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    named: dict[tuple[str, str], list[float]] = {}
    unknown: list[str] = []
    for sample in samples:
        start = request.site(sample, request.region, server.name)
        peer = sample.labels.get(target, "")
        if metric.identity and peer not in identity and peer not in request.sites:
            unknown.append(peer)
            continue
        end = identity.get(peer) or request.site(sample, target, server.name)
        named.setdefault((start, end), [])
        if finite(sample):
            values[start, end].append(sample.value * metric.unit / bias)
    rtts = {pair: statistics.median(found) for pair, found in values.items()}
    if not rtts:
        raise InputError(
            "no pair of regions has an RTT",
            source=server.name,
            field=target,
            value=", ".join(f"{a} → {b}" for a, b in named) or ", ".join(dict.fromkeys(unknown)),
            expected="two measurements or more in the window (--window)"
            if named
            else "peers of known regions; --site-of PEER=REGION names them",
        )
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
    """Region of each peer.

    Raises
    ------
    InputError
        For a peer in two regions.
    """
    if not metric.identity:
        return {}
    found: dict[str, str] = {}
    for sample in server.query(request.fill(metric.identity), request.at):
        peer = sample.labels.get(metric.identity_label, "")
        region = request.site(sample, request.region, server.name)
        if found.setdefault(peer, region) != region:
            raise InputError(
                "a peer in two regions",
                source=server.name,
                field=metric.identity_label,
                value=f"{peer}: {found[peer]}, {region}",
                expected="one region per peer; --match chooses one cluster",
            )
    return found


def _gaps(server: PrometheusServer, series: str, request: PrometheusRequest) -> list[str]:
    """Return a note on series with far fewer samples than the others."""
    if not series:
        return []
    selector = request.fill(series)
    counts = server.query(f"count_over_time({selector}[{request.window}])", request.at)
    most = max((sample.value for sample in counts), default=0.0)
    thin = {
        f"{sample.labels.get(request.region, '?')} ({sample.value / most:.0%} of the samples)"
        for sample in counts
        if sample.value < _COVERED * most
    }
    return [_some("gaps in the window", sorted(thin))] if thin else []


def _some(what: str, names: Sequence[str]) -> str:
    return f"{what}: " + ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def read_operations(
    server: PrometheusServer, preset: Preset, request: PrometheusRequest
) -> Demanded:
    """Return the operations by region in the window; counter resets are taken into account.

    Raises
    ------
    InputError
        Where the preset knows no operations, or no expression has samples; and as
        :meth:`PrometheusServer.query`.
    """
    queries = {name: [query] for name, query in request.ops_queries.items()} or {
        name: [request.fill(part) for part in parts] for name, parts in preset.operations.items()
    }
    if not queries:
        raise InputError(
            f"no operations are known for {preset.title}",
            field="--preset",
            expected="--ops-query OPERATION=PROMQL, --counts FILE or --mix NAME",
        )
    counts: dict[tuple[str, str], float] = defaultdict(float)
    silent = []
    for operation, parts in queries.items():
        found = (sample for query in parts for sample in server.query(query, request.at))
        samples = [sample for sample in found if finite(sample)]
        if not samples:
            silent.append(operation)
        for sample in samples:
            counts[request.site(sample, request.region, server.name), operation] += sample.value
    if not counts or not any(counts.values()):
        raise InputError(
            f"no operations of {preset.title} in the window",
            source=server.name,
            field="query",
            value=next(iter(queries.values()))[0],
            expected="samples of counters; or --ops-query, --counts FILE, --mix NAME",
        )
    clients = tuple(dict.fromkeys(client for client, _ in counts))
    operations = tuple(name for name in queries if name not in silent)
    values = np.array([[counts.get((c, o), 0.0) for o in operations] for c in clients])
    notes = [f"operations of the window {request.window} by the label {request.region}"]
    if silent:
        notes.append("no samples of " + ", ".join(silent))
    table = Labelled(server.name, (), clients, operations, values)
    return Demanded(table, True, tuple(notes))

"""Metrics of databases and probes: where RTTs and operations stand, and how they are biased.

Expressions have the fields ``{match}`` (matchers, empty or ending with a comma), ``{window}`` and
``{region}`` (the label that names the region of the scraped server).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["PRESETS", "Preset", "RttMetric"]


@dataclass(frozen=True, slots=True)
class RttMetric:
    """An expression for RTTs per pair.

    Attributes
    ----------
    expression
        PromQL, see the module.
    unit
        Milliseconds per unit of the values.
    target
        Label of the far end.
    series
        Selector whose samples are counted, to find gaps.
    identity
        Expression that tells the region of each value of `target`; empty: `target` is a name.
    identity_label
        Label of that expression that has the values of `target`.
    bias
        Known ratio of the metric to the true RTT; results are divided by it.
    note
        One sentence on the metric, for the user.
    """

    expression: str
    unit: float
    target: str
    series: str
    identity: str = ""
    identity_label: str = ""
    bias: float = 1.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Preset:
    """Metrics of one system.

    Attributes
    ----------
    title
        Name of the system.
    rtts
        The first one that has samples counts.
    operations
        Operation -> expressions of the operations in the window, by region; they are added up.
    note
        One sentence for the user.
    """

    title: str
    rtts: tuple[RttMetric, ...]
    operations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""


def _increase(metric: str, *wanted: str) -> str:
    inside = "{{{match}" + ", ".join(wanted) + "}}"
    return f"sum by ({{region}}) (increase({metric}{inside}[{{window}}]))"


def _handled(method: str) -> str:
    return _increase("grpc_server_handled_total", method, 'grpc_code="OK"')


def _probe(metric: str, labels: str, note: str, *, phase: bool) -> RttMetric:
    """Return the median of the successful probes of blackbox_exporter."""
    success = "ignoring (phase) " if phase else ""
    series = metric + "{{{match}" + labels + "}}"
    good = f"({series} and {success}(probe_success{{{{{{match}}}}}} == 1))"
    return RttMetric(
        f"quantile_over_time(0.5, {good}[{{window}}:30s])", 1000.0, "instance", series, note=note
    )


_PROBES = (
    _probe("probe_icmp_duration_seconds", 'phase="rtt"', "icmp reads 2 to 5 ms more", phase=True),
    _probe(
        "probe_http_duration_seconds",
        'phase="connect"',
        "the phase connect of http was taken: one round trip",
        phase=True,
    ),
    _probe("probe_duration_seconds", "", "tcp reads 1 to 2.4 ms more", phase=False),
)

_PEER = "etcd_network_peer_round_trip_time_seconds"


def _peer(part: str) -> str:
    return f"sum by ({{region}}, To) (increase({_PEER}_{part}{{{{{{match}}}}}}[{{window}}]))"


_ETCD = RttMetric(
    f"{_peer('sum')} / {_peer('count')}",
    1000.0,
    "To",
    _PEER + "_count{{{match}}}",
    "group by ({region}, server_id) (last_over_time(etcd_server_id{{{match}}}[{window}]))",
    "server_id",
    1.5,
    "one of etcd's two probers opens a connection for each probe, so that the mean reads 1.5 times "
    "the RTT without TLS, and more with TLS; probes of blackbox_exporter are better; etcd observes "
    "every 30 s",
)


def _connection(metric: str, note: str) -> RttMetric:
    series = metric + "{{{match}}}"
    return RttMetric(
        f"quantile_over_time(0.5, ({series} > 0)[{{window}}:30s])",
        1e-6,
        "remote_node_id",
        series,
        f"group by ({{region}}, node_id) (last_over_time({series}[{{window}}]))",
        "node_id",
        1.0,
        note,
    )


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "etcd": Preset(
            "etcd",
            (_ETCD,),
            {
                "strong_read": (_handled('grpc_method="Range"'),),
                "single_group": (_handled('grpc_method=~"Put|Txn|DeleteRange"'),),
            },
            "every Range counts as strong_read, health checks and serializable reads included",
        ),
        "cockroachdb": Preset(
            "CockroachDB",
            (
                _connection("rpc_connection_tcp_rtt", "RTTs of the kernel's TCP connections"),
                _connection("rpc_connection_avg_round_trip_latency", "moving averages of RPC"),
            ),
            {
                "strong_read": (_increase("sql_select_count"),),
                "single_group": tuple(
                    _increase(f"sql_{kind}_count") for kind in ("insert", "update", "delete")
                ),
            },
            "the RTTs of pairs need the cluster setting server.child_metrics.enabled",
        ),
        "tidb": Preset(
            "TiDB",
            _PROBES,
            {
                "strong_read": (_increase("tidb_executor_statement_total", 'type="Select"'),),
                "single_group": (
                    _increase(
                        "tidb_executor_statement_total", 'type=~"Insert|Update|Delete|Replace"'
                    ),
                ),
            },
            "RTTs are those of blackbox_exporter: TiDB has no metric of RTTs between regions",
        ),
        "cassandra": Preset(
            "Cassandra",
            _PROBES,
            {},
            "RTTs are those of blackbox_exporter: Cassandra's own latencies between nodes are one "
            "way and depend on clocks; operations come from --ops-query or --counts",
        ),
        "blackbox": Preset("blackbox_exporter", _PROBES),
        "custom": Preset("expressions of one's own", ()),
    }
)
"""Name -> preset."""

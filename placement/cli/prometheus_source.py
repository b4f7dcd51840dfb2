"""``placement import prometheus URL``: options, and RTTs and demand of the server."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placement.cli import argument_parser as types
from placement.cli.options import Switch, add_options
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.io.assemble_instance import Demanded
    from placement.io.feeds.registry import RttReading

WORD = "prometheus"
"""First argument of ``placement import`` for a server in the place of files."""

_PRESETS = ("etcd", "cockroachdb", "tidb", "cassandra", "blackbox", "custom")
_DEFAULTS: dict[str, Any] = {
    "window": "1d",
    "at": None,
    "match": [],
    "region_label": "region",
    "target_label": None,
    "bias": None,
    "rtt_query": None,
    "ops_query": [],
}


def add_prometheus(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``placement import prometheus URL``."""
    group = parser.add_argument_group("Prometheus (import prometheus URL …)")
    group.add_argument(
        "--preset", metavar="NAME", choices=_PRESETS,
        help=f"system whose metrics the server has: {', '.join(_PRESETS)}",
    )  # fmt: skip
    add_options(group,
        Switch("--window", "DURATION", "time before --at (default 1d)"),
        Switch("--at", "TIME", "end of the window, RFC 3339 (default: now)"),
        Switch("--match", "LABEL=VALUE", "only series with this label; also =~ with a regular "
            "expression; may be repeated", several=True),
        Switch("--region-label", "LABEL", "label with the region (default region)"),
        Switch("--target-label", "LABEL", "label with the far end of a probe (default "
            "instance; of --rtt-query: target)"),
        Switch("--bias", "F", "known ratio of the metric to the RTT (default: of the preset, "
            "1.5 for etcd)", types.number(above=True)),
        Switch("--rtt-query", "PROMQL", "RTTs in seconds, with the labels of region and target"),
        Switch("--ops-query", "OPERATION=PROMQL", "operations in the window with the label of "
            "the region; may be repeated", several=True),
    )  # fmt: skip


def refuse_prometheus(args: argparse.Namespace) -> None:
    """Refuse the options of a server where files are read.

    Raises
    ------
    InputError
        For the first such option.
    """
    for name in ("preset", *_DEFAULTS):
        value = vars(args)[name]
        if value is not None:
            raise InputError(
                "an option for placement import prometheus only",
                field="--" + name.replace("_", "-"),
                value=value,
                expected="placement import prometheus URL --preset NAME",
            )


def read_prometheus(
    args: argparse.Namespace, sites: Mapping[str, str]
) -> tuple[RttReading, Demanded | None]:
    """Return RTTs, and demand unless another one is given.

    Raises
    ------
    InputError
        For a missing URL or preset, and as the reader.
    """
    from placement.prometheus.metrics_server import (
        PRESETS,
        PrometheusRequest,
        PrometheusServer,
        label_name,
        read_operations,
        read_rtts,
    )

    if len(args.rtt) != 2:
        expected = "placement import prometheus http://HOST:PORT --preset NAME"
        raise InputError("one URL is required", field=WORD, value=args.rtt[1:], expected=expected)
    if args.preset is None:
        raise InputError("whose metrics", field="--preset", expected=" or ".join(_PRESETS))
    given = {
        name: default if vars(args)[name] is None else vars(args)[name]
        for name, default in _DEFAULTS.items()
    }
    if given["target_label"] is not None:
        label_name(given["target_label"], "--target-label")
    request = PrometheusRequest(
        window=given["window"],
        at=given["at"],
        match=given["match"],
        region=given["region_label"],
        target=given["target_label"],
        sites=sites,
        bias=given["bias"],
        rtt_query=given["rtt_query"],
        ops_queries=types.read_named_texts(given["ops_query"], "--ops-query", "OPERATION=PROMQL"),
    )
    server, preset = PrometheusServer(args.rtt[1]), PRESETS[args.preset]
    reading = read_rtts(server, preset, request)
    if args.counts is not None or args.mix is not None:
        return reading, None
    return reading, read_operations(server, preset, request)

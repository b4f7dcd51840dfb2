"""The questions of the instance library, from easy to open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.instances.question import DRAWN, LibraryQuestion
from placement.workloads import MIXES

__all__ = ["catalogue"]

_MEASURED = ("world27", "aws", "gcp", "azure")

_RULES: dict[str, dict[str, Any]] = {
    "survive-country": {"survive": "country"},
    "countries": {
        "rules": ({"level": "country", "role": "replicas", "min_domains": 4},),
    },
    "voters-in-continents": {"rules": ({"level": "continent", "min_domains": 3},)},
    "named-continent": {
        "rules": (
            {"level": "continent", "role": "replicas", "domain": "Europe", "least": 2},
            {"level": "continent", "role": "replicas", "domain": "Asia", "least": 1},
        ),
    },
    "named-voters": {
        "rules": ({"level": "continent", "domain": "Europe", "least": 2},),
    },
    "caps-and-countries": {
        "rules": (
            {"level": "continent", "role": "replicas", "cap": 2},
            {"level": "country", "role": "replicas", "min_domains": 4},
            {"level": "continent", "min_domains": 2},
        ),
    },
}


RETIRED = frozenset({296, 297})
"""Numbers of questions that can no longer be asked; the others keep their numbers and seeds."""


def catalogue() -> tuple[LibraryQuestion, ...]:
    """Return every question, the smaller ones of each kind first."""
    return tuple(
        LibraryQuestion(name=f"{kind}-{number:03d}", kind=kind, seed=number, **settings)
        for number, (kind, settings) in enumerate(_settings(), 1)
        if number not in RETIRED
    )


def _settings() -> Iterator[tuple[str, dict[str, Any]]]:
    mixes = tuple(MIXES)
    for sites, clients in ((10, 10), (20, 30), (50, 50), (100, 100), (200, 200), (500, 300)):
        for mix in mixes:
            yield "mean", _drawn(sites, clients, mix, 5, 3)
    for sites, clients in ((20, 30), (50, 50), (100, 100), (200, 200)):
        for mix in mixes:
            yield "mean", _drawn(sites, clients, mix, 9, 5)
    for mix in ("cache", "oltp", "logging"):
        yield "mean", _drawn(1000, 500, mix, 5, 3)
    for sites, clients in ((50, 50), (100, 100), (200, 400)):
        for mix in ("cache", "social", "oltp", "ledger"):
            for demand in ("pareto", "half", "unit"):
                yield "tails", _drawn(sites, clients, mix, 9, 5) | {"demand": demand}
    for sites in (50, 100, 200, 500, 1000):
        for share in (0.05, 0.1, 0.2):
            yield (
                "p-median",
                _drawn(sites, sites, "social", max(2, int(share * sites)), 1)
                | {"reads_only": True, "demand": "unit"},
            )
    for number, (name, rule) in enumerate(_RULES.items()):
        for offset, mix in enumerate(mixes):
            source = _MEASURED[(number + offset) % len(_MEASURED)]
            yield f"rules-{name}", {"source": source, "mix": mix, "replicas": 7, "voters": 5} | rule
    for goal in ("worst", "weighted"):
        loss: dict[str, Any] = {"level": "site", "goal": goal}
        if goal == "weighted":
            loss["probability"] = 0.001
        for replicas, voters in ((5, 3), (7, 5), (9, 5)):
            for number, mix in enumerate(("social", "oltp", "ledger", "cache")):
                source = _MEASURED[(number + replicas) % len(_MEASURED)]
                yield (
                    f"loss-{goal}",
                    {"source": source, "mix": mix, "replicas": replicas, "voters": voters}
                    | {"loss": loss},
                )
    for mix in ("social", "oltp", "cache"):
        for sites in (20, 50, 100):
            yield "loss-worst", _drawn(sites, sites, mix, 7, 5) | {"loss": {"level": "country"}}
    for percent, spread in ((99.0, 0.2), (99.9, 0.2), (50.0, 0.4)):
        for number, mix in enumerate(("social", "oltp", "ledger", "cache")):
            for replicas, voters in ((5, 3), (9, 5)):
                source = _MEASURED[(number + voters // 2) % 2 * 3]
                yield (
                    "percentile",
                    {"source": source, "mix": mix, "replicas": replicas, "voters": voters}
                    | {"percentile": (percent, spread)},
                )
    for sites in (10, 20, 50):
        for mix in ("social", "oltp", "cache", "logging"):
            yield "budget", _drawn(sites, sites, mix, 5, 3) | {"budget": 18.0}
    for sites in (10, 15, 25):
        for mix in ("social", "oltp", "cache"):
            yield "varying-rtt", _drawn(sites, sites, mix, 5, 3) | {"intervals": 3}
    for sites in (50, 100):
        for mix in ("social", "oltp", "cache"):
            yield "varying-rtt", _drawn(sites, sites, mix, 9, 5) | {"intervals": 6}
    yield from _losses_with_limits()
    yield from _protocols()


def _losses_with_limits() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield questions with a limit on every loss, and percentiles after the worst loss."""
    for source, mix, replicas, voters, limit in (
        ("world27", "social", 5, 3, 100.0),
        ("azure", "oltp", 5, 3, 137.0),
        ("aws", "ledger", 7, 5, 135.0),
        ("gcp", "cache", 7, 5, 60.0),
        ("world27", "oltp", 9, 5, 134.0),
        ("azure", "social", 9, 5, 76.0),
    ):
        loss = {"level": "site", "goal": "bounded", "limit": limit}
        sizes = {"replicas": replicas, "voters": voters}
        yield "loss-bounded", {"source": source, "mix": mix, "loss": loss} | sizes
    for source, mix, replicas, voters in (
        ("world27", "social", 5, 3),
        ("azure", "oltp", 5, 3),
        ("aws", "cache", 5, 3),
        ("world27", "oltp", 7, 5),
        ("azure", "social", 7, 5),
    ):
        sizes = {"replicas": replicas, "voters": voters}
        rest: dict[str, Any] = {
            "loss": {"level": "site", "goal": "worst"},
            "percentile": (99.0, 0.2),
        }
        yield "loss-percentile", {"source": source, "mix": mix} | sizes | rest


def _protocols() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield questions under commit protocols with and without a leader, and with witnesses.

    Those under "leases:holders=2" are retired.
    """
    for number, protocol in enumerate(
        (
            "leases",
            "leases:holders=2",
            "flexiraft:level=continent",
            "semi-sync:k=1,level=continent",
            "epaxos:slow=0.05",
            "atlas:f=1",
            "mencius",
            "fast-paxos",
            "pqr",
            "abd",
        )
    ):
        for replicas, source in ((5, _MEASURED[number % 2 * 3]), (7, _MEASURED[number % 3])):
            settings = {"source": source, "mix": "ycsb-b", "protocol": protocol}
            yield "protocol", settings | {"replicas": replicas, "voters": replicas}
    for source, mix in (
        ("world27", "social"),
        ("aws", "oltp"),
        ("gcp", "ledger"),
        ("azure", "cache"),
    ):
        sizes = {"replicas": 4, "voters": 5, "witnesses": 1}
        yield "witness", {"source": source, "mix": mix} | sizes


def _drawn(sites: int, clients: int, mix: str, replicas: int, voters: int) -> dict[str, Any]:
    """Return the settings of a generated instance."""
    return {
        "source": DRAWN, "sites": sites, "clients": clients, "mix": mix, "replicas": replicas,
        "voters": voters,
    }  # fmt: skip

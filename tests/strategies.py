"""Generated instances and problems for all property tests.

    @given(problems())                          any tier 3 problem
    @given(problems(tier=2))                    replicas given by name
    @given(problems(kinds=NESTED))              caps on nested levels, simple constraints
    @given(problems(kinds=SIMPLE - {"decay"}))  any subset of the kinds below
    @given(instances(integral=True))            the world alone

Shapes, constraints and the style of the numbers are drawn by hypothesis and shrink; the numbers
themselves come from a drawn seed, which is ten times as fast as drawing them one by one. A failing
example prints its arrays.

Every problem is well put (no InputError), but it need not have an answer: caps, minimum domains,
budgets and forbidden sites can make it infeasible, and methods must then say so.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from hypothesis import note
from hypothesis import strategies as st

from placement import STANDARD_OPERATIONS, Diversity, Instance, Operation, Prices, Problem

__all__ = ["ALL", "CROSSING", "NESTED", "SIMPLE", "Kind", "instances", "problems"]

Kind = Literal[
    "budget", "cost_weight", "crossing", "decay", "forbidden", "leader", "leaders",
    "min_domains", "named_domains", "nested_caps", "non_voters", "pinned", "pinned_voters",
    "quorum", "range", "replica_caps", "survive", "unlabelled", "varying_rtt",
]  # fmt: skip

ALL: frozenset[Kind] = frozenset(get_args(Kind))
"""Every kind of constraint there is."""

SIMPLE: frozenset[Kind] = frozenset(
    {"decay", "forbidden", "leader", "leaders", "non_voters", "pinned", "pinned_voters", "quorum"}
)
"""What needs neither failure domains nor prices nor several RTT matrices."""

NESTED: frozenset[Kind] = SIMPLE | {"nested_caps", "survive", "unlabelled"}
"""The voters of a leader are found by greedy choice: caps on nested levels, one RTT matrix."""

CROSSING: frozenset[Kind] = ALL - {"varying_rtt", "budget", "cost_weight"}
"""Everything that one RTT matrix without money allows."""

Style = Literal["ties", "tenths", "integers", "reals", "plane"]
INTEGRAL: tuple[Style, ...] = ("ties", "integers")
MONEY: frozenset[Kind] = frozenset({"budget", "cost_weight"})
OPERATION_SETS = (
    STANDARD_OPERATIONS,
    (Operation("weak", near=1),),
    (Operation("write", direct=1, quorum=1),),
    (Operation("bounded", near=1, relay=1), Operation("write", direct=1, quorum=2)),
    (Operation("often fresh", near=1, relay=0.25), Operation("odd", 0.5, 2, 0.75, 1.5)),
    (Operation("relay only", relay=1), Operation("votes only", quorum=1)),
)


def _rtts(rng: np.random.Generator, style: Style, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """RTTs in ms; the first two styles are full of ties, "tenths" of ties up to rounding."""
    if style == "ties":
        return rng.integers(0, 4, shape).astype(float)
    if style == "tenths":
        return rng.integers(1, 8, shape) / 10
    if style == "integers":
        return rng.integers(1, 300, shape).astype(float)
    return rng.uniform(0.3, 300, shape)


def _on_a_plane(
    rng: np.random.Generator, clients: int, sites: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Metric, symmetric RTTs: distances between points."""
    points = rng.uniform(0, 200, (sites, 2))
    homes = rng.uniform(0, 200, (clients, 2))
    between = np.linalg.norm(points[:, None] - points, axis=-1)
    return np.linalg.norm(homes[:, None] - points, axis=-1), between


def _counts(
    rng: np.random.Generator, style: str, shape: tuple[int, int, int], zero: Iterable[int]
) -> npt.NDArray[Any]:
    """Operation counts; the columns in `zero` are empty as far as something is left."""
    if style == "sparse":
        counts = rng.integers(0, 2, shape).astype(float)
    elif style == "integers":
        counts = rng.integers(0, 50, shape).astype(float)
    else:
        counts = rng.exponential(100, shape) * (rng.random(shape) < 0.8)
    counts[:, :, list(zero)] = 0
    if not counts[-1].any():  # the last interval is all that an infinite decay leaves
        counts[-1, rng.integers(shape[1]), rng.integers(shape[2])] = 1
    return counts


def _nested_labels(rng: np.random.Generator, sites: int) -> dict[str, tuple[str, ...]]:
    """Zones inside regions inside continents, and a provider that crosses them."""
    zone = rng.integers(0, max(1, sites), sites)
    region_of = rng.integers(0, max(1, (sites + 1) // 2), sites)
    continent_of = rng.integers(0, 3, sites)
    region = region_of[zone]
    continent = continent_of[region]
    return {
        "zone": tuple(f"z{i}" for i in zone),
        "region": tuple(f"r{i}" for i in region),
        "continent": tuple(f"c{i}" for i in continent),
        "provider": tuple(f"p{i}" for i in rng.integers(0, 3, sites)),
    }


@st.composite
def instances(
    draw: st.DrawFn,
    *,
    min_sites: int = 1,
    max_sites: int = 7,
    max_clients: int = 8,
    max_intervals: int = 1,
    varying_rtt: bool = False,
    prices: bool = False,
    integral: bool | None = None,
    styles: Sequence[Style] = (),
) -> Instance:
    """Draw a world.

    Parameters
    ----------
    draw
        Given by hypothesis.
    min_sites, max_sites, max_clients, max_intervals
        Bounds on the shapes.
    varying_rtt
        Whether client RTTs, site RTTs or both are given per interval (needs `max_intervals` > 1).
    prices
        Whether replicas have prices, with or without transfer.
    integral
        True: all RTTs and counts are whole numbers; False: none need be; None: either.
    styles
        Styles of RTTs to draw from; empty: all, or those that `integral` allows.
    """
    # Hypothesis draws the first choice most often; one site is worth a tenth of the examples.
    sizes = [*range(max(2, min_sites), max_sites + 1), *range(min_sites, 2)]
    sites = draw(st.sampled_from(sizes), label="sites")
    same = draw(st.booleans(), label="clients are the sites")
    clients = sites if same else draw(st.integers(1, max_clients), label="clients")
    possible = styles or (INTEGRAL if integral else get_args(Style))
    style: Style = draw(st.sampled_from(possible), label="RTTs")
    count_styles = ("sparse", "integers") if integral else ("sparse", "integers", "reals")
    count_style = draw(st.sampled_from(count_styles), label="counts")
    least = 2 if varying_rtt else 1
    intervals = draw(st.integers(least, max(least, max_intervals)), label="intervals")
    operations = draw(st.sampled_from(OPERATION_SETS), label="operations")
    if integral and any(c != int(c) for o in operations for c in o.coefficients):
        operations = STANDARD_OPERATIONS
    zero = draw(st.sets(st.integers(0, len(operations) - 1), max_size=3), label="empty columns")
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed of the numbers"))

    vary = draw(st.sampled_from(["both", "clients", "sites"])) if varying_rtt else "none"
    client_axes = (intervals,) if vary in ("both", "clients") else ()
    site_axes = (intervals,) if vary in ("both", "sites") else ()
    client_rtt = _rtts(rng, style, (*client_axes, clients, sites))
    site_rtt = _rtts(rng, style, (*site_axes, sites, sites))
    if style == "plane" and not varying_rtt:
        client_rtt, site_rtt = _on_a_plane(rng, clients, sites)
    elif draw(st.booleans(), label="symmetric"):
        site_rtt = (site_rtt + np.swapaxes(site_rtt, -1, -2)) / (1 if integral else 2)
    site_rtt[..., np.arange(sites), np.arange(sites)] = 0
    if same and not varying_rtt:
        client_rtt = site_rtt + draw(st.sampled_from([0.0, 1.0])) * np.eye(sites)
    price = None
    if prices:
        flat = draw(st.booleans(), label="free transfer")
        transfer = rng.integers(0, 5, (sites, sites)).astype(float)
        np.fill_diagonal(transfer, 0)
        price = Prices(
            rng.integers(0, 10, sites).astype(float), None if flat else transfer, written_gb=2.0
        )
    return Instance(
        sites=tuple(f"s{i}" for i in range(sites)),
        clients=tuple(f"k{i}" for i in range(clients)),
        client_rtt=client_rtt,
        site_rtt=site_rtt,
        counts=_counts(rng, count_style, (intervals, clients, len(operations)), zero),
        operations=operations,
        domains=_nested_labels(rng, sites),
        prices=price,
        name="generated",
    )


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    tier: int = 3,
    kinds: Iterable[Kind] = ALL,
    min_sites: int = 1,
    max_sites: int = 7,
    max_clients: int = 8,
    integral: bool | None = None,
    styles: Sequence[Style] = (),
    min_kinds: int = 0,
    max_kinds: int = 4,
    writes: bool = False,
) -> Problem:
    """Draw a question: an instance and up to `max_kinds` kinds of constraints on it.

    Parameters
    ----------
    draw
        Given by hypothesis.
    tier
        At most this tier: 3 counts only, 2 replicas by name, 1 replicas and voters by name.
    kinds
        Kinds of constraints that may occur.
    min_sites, max_sites, max_clients, integral, styles
        As for :func:`instances`.
    min_kinds, max_kinds
        How many kinds may meet in one problem; 0: none.
    writes
        Whether quorums must matter: 3 voters or more, and operations that wait for them.
    """
    allowed = sorted(kinds)
    chosen: set[Kind] = set()
    if allowed and max_kinds:
        sets = st.sets(st.sampled_from(allowed), min_size=min_kinds, max_size=max_kinds)
        chosen = draw(sets, label="constraints")
    instance = draw(
        instances(
            min_sites=min_sites,
            max_sites=max_sites,
            max_clients=max_clients,
            max_intervals=3 if chosen & {"decay", "varying_rtt"} else 1,
            varying_rtt="varying_rtt" in chosen,
            prices=bool(chosen & MONEY),
            integral=integral,
            styles=styles,
        )
    )
    if writes:
        last = instance.counts.copy()
        last[..., -1] += 10  # of the last operation, which is made to wait for votes
        needy = dataclasses.replace(instance.operations[-1], quorum=1.0)
        instance = instance.replace(counts=last, operations=(*instance.operations[:-1], needy))
    return draw(_questions(instance, tier, frozenset(chosen), 3 if writes else 1))


@st.composite
def _questions(
    draw: st.DrawFn, instance: Instance, tier: int, chosen: frozenset[Kind], least_voters: int
) -> Problem:
    count = len(instance.sites)
    fewest = min(least_voters, count)
    everyone = set(range(count))

    def some(pool: Iterable[int], least: int = 0, most: int | None = None) -> set[int]:
        sites = sorted(pool)
        top = len(sites) if most is None else max(0, min(most, len(sites)))
        if least > top or not sites:
            return set()
        return draw(st.sets(st.sampled_from(sites), min_size=least, max_size=top))

    def names(sites: Iterable[int]) -> tuple[str, ...]:
        return tuple(instance.sites[s] for s in sorted(sites))

    asked: dict[str, Any] = {}
    most = draw(st.sampled_from(range(fewest, count + 1)), label="replicas")
    voters = draw(st.integers(fewest, most), label="voters")

    if tier < 3:
        holders = some(everyone, most, most)
        forbidden = some(everyone - holders) if "forbidden" in chosen else set()
        asked["replicas"] = names(holders)
    else:
        # One site in three at most: more, and next to nothing stays feasible.
        forbidden = some(everyone, 0, max(1, count // 3)) if "forbidden" in chosen else set()
        if forbidden == everyone:
            forbidden = set()
        holders = everyone - forbidden
        asked["replicas"] = most
        if "range" in chosen:
            least = draw(st.integers(1, most), label="least replicas")
            voters = min(voters, least) if draw(st.booleans()) else voters
            asked["replicas"] = (least, most)
    asked["forbidden"] = names(forbidden)

    quiet = some(holders, 0, max(0, len(holders) - voters)) if "non_voters" in chosen else set()
    can_vote = holders - quiet
    asked["non_voters"] = names(quiet)
    asked["voters"] = voters
    if tier == 1 and len(can_vote) >= voters:
        can_vote = some(can_vote, voters, voters)
        asked["voters"] = names(can_vote)

    must_vote: set[int] = set()
    if can_vote and "leader" in chosen:
        must_vote = some(can_vote, 1, 1)
        asked["leader"] = names(must_vote)[0]
    elif can_vote and "leaders" in chosen:
        asked["leaders"] = names(some(can_vote, 1))
    if "pinned_voters" in chosen:
        more = some(can_vote - must_vote, 0, voters - len(must_vote))
        asked["pinned_voters"] = names(more)
        must_vote |= more
    if "pinned" in chosen:
        asked["pinned"] = names(some(holders - must_vote, 0, most - len(must_vote)))
    if "quorum" in chosen:
        asked["quorum"] = draw(st.integers(1, voters), label="quorum")
    if "decay" in chosen:
        asked["decay"] = draw(st.sampled_from([1.0, 1.5, 2.0, math.inf]), label="decay")

    if "unlabelled" in chosen:
        missing = {
            level: tuple(None if s in forbidden else label for s, label in enumerate(labels))
            for level, labels in instance.domains.items()
        }
        instance = instance.replace(domains=missing)
    asked["diversity"] = tuple(_diversity(draw, chosen, instance))
    if "survive" in chosen:
        quorum = asked.get("quorum", voters // 2 + 1)
        if voters > max(quorum, voters - quorum + 1):
            asked["survive"] = draw(st.sampled_from(["zone", "region", "continent"]))
    if "budget" in chosen:
        asked["budget"] = float(draw(st.integers(0, 12 * most), label="budget"))
    if "cost_weight" in chosen:
        asked["cost_weight"] = draw(st.sampled_from([0.5, 1.0, 30.0]), label="cost weight")

    note((instance.client_rtt, instance.site_rtt, instance.counts, instance.operations))
    note((dict(instance.domains), instance.prices, asked))
    return Problem(instance, **asked)


def _diversity(draw: st.DrawFn, chosen: frozenset[Kind], instance: Instance) -> Iterable[Diversity]:
    """Diversity rules of the kinds chosen; each of them may come out infeasible."""
    caps = st.integers(1, 3)
    if "nested_caps" in chosen:
        levels = draw(st.sets(st.sampled_from(["zone", "region", "continent"]), min_size=1))
        for level in sorted(levels):
            yield Diversity(level, cap=draw(caps))
    if "crossing" in chosen:
        yield Diversity("provider", cap=draw(caps))
        yield Diversity(draw(st.sampled_from(["region", "continent"])), cap=draw(caps))
    if "replica_caps" in chosen:
        level = draw(st.sampled_from(["zone", "region", "continent", "provider"]))
        yield Diversity(level, role="replicas", cap=draw(caps))
    if "min_domains" in chosen:
        level = draw(st.sampled_from(["zone", "region", "continent", "provider"]))
        role: Literal["voters", "replicas"] = draw(st.sampled_from(["voters", "replicas"]))
        yield Diversity(level, role=role, min_domains=draw(caps))
    if "named_domains" in chosen:
        level = draw(st.sampled_from(["zone", "region", "continent", "provider"]))
        of_role: Literal["voters", "replicas"] = draw(st.sampled_from(["voters", "replicas"]))
        labels = {label for label in instance.domains[level] if label is not None}
        name = draw(st.sampled_from(sorted(labels)))
        yield Diversity(level, role=of_role, domain=name, least=draw(st.integers(1, 2)))

"""The evaluator of measures: their value of a configuration, the only number that is shown.

Every value comes from the evaluators of Eq. 1, of losses, of distributions, of the cost and of
moves. A measure of some operations and clients is the same measure of the part of the demand that
counts (:meth:`placement.model.demand.Demand.part`). After a loss that takes the leader, the
surviving voter leads that is best for the measure.

A client is at the site of its name, else at the site that the prices give it (`client_sites`), else
at the site that is closest to it; so it belongs to the domains of that site.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError, refused
from placement.evaluation.breakdown import mean_latencies
from placement.evaluation.cost_model import CostModel, cost_model
from placement.evaluation.losses import Loss, losses, scores_after_many, survivors, unnoticed
from placement.evaluation.moves import LinearLimit, MoveCosts, Moves
from placement.evaluation.objective import MeanLatency, scores_of
from placement.measures.measure import Measure, MeasureKind
from placement.model.configuration import Configuration
from placement.support.checks import BoolArray, FloatArray, suggest
from placement.tail.objective import Percentile
from placement.tail.rtt_distributions import Distributions

if TYPE_CHECKING:
    from placement.problem import Problem

_READS_WRITES = {"reads": "read", "writes": "write"}


@dataclass(frozen=True)
class MeasureData(MeanLatency):
    """The data of a question that measures read beside its instance."""

    #: of RTTs, for percentiles and shares in time: one, or one for each interval
    distributions: tuple[Distributions, ...] = field(default=(), hash=False)
    #: site or LEVEL:DOMAIN -> probability
    outages: Mapping[str, float] = field(default_factory=dict, hash=False)
    stored_gb: float | None = None  #: GB of one replica; None: `Prices.stored_gb`


_NO_DATA = MeasureData()

_FEW_BINS = 1000


def value(problem: Problem, measure: Measure, configuration: Configuration) -> float:
    """Value of a measure: ms, a share, currency a month, GB or a count.

    Infinite (a share: 0) where the service stops, and for a percentile beyond the horizon.
    """
    return float(values(problem, measure, [configuration])[0])


def values(
    problem: Problem, measure: Measure, configurations: Sequence[Configuration]
) -> FloatArray:
    """Values of a measure of many configurations, each as :func:`value` gives it, shape (n,)."""
    kind = measure.kind
    if not kind.of_latency:
        return np.array([_of_sites(problem, kind, one) for one in configurations], dtype=float)
    part = focused(problem, measure.operations, measure.clients)
    normal = _latencies(problem, part, measure, configurations)
    if measure.after is None and not measure.over_outages:
        return normal
    lost = losses_of(problem, measure)
    after = [_after(problem, part, measure, configurations, loss, normal) for loss in lost]
    return _over_losses(problem, measure, normal, after)


def mixed_mean(
    problem: Problem,
    measure: Measure,
    configurations: Sequence[Configuration],
    shares: Sequence[float],
) -> float:
    """Value of a mean of groups on several configurations: a loss hits all of them at once."""
    part, each = focused(problem, measure.operations, measure.clients), np.array(shares)
    used = [one for one, share in zip(configurations, shares, strict=True) if share]
    each = each[each > 0]
    normal = _latencies(problem, part, measure, used)
    lost = losses_of(problem, measure)
    after = [_after(problem, part, measure, used, loss, normal) @ each for loss in lost]
    mean = np.array([normal @ each])
    return float(_over_losses(problem, measure, mean, [np.array([one]) for one in after])[0])


def _over_losses(
    problem: Problem, measure: Measure, normal: FloatArray, after: Sequence[FloatArray]
) -> FloatArray:
    """Values of a measure from those without a loss and after each, shape (n,)."""
    if measure.over_outages:
        weights = list(outages_of(problem).values())
        total = (1 - sum(weights)) * normal
        for weight, each in zip(weights, after, strict=True):
            total = total + (weight * each if weight else np.where(np.isinf(each), each, 0.0))
        return np.asarray(total)
    if measure.after is not None and measure.after.named:
        return after[0]
    worst: np.ufunc = np.minimum if measure.share else np.maximum
    return np.asarray(worst.reduce([normal, *after]))


def _of_sites(problem: Problem, kind: MeasureKind, one: Configuration) -> float:
    if kind is MeasureKind.REPLICAS:
        return float(len(one.replicas))
    if kind is MeasureKind.COST:
        return _cost_model(problem).value(one)
    return move_function(problem, kind).value(one)


def _latencies(
    problem: Problem, part: Problem, measure: Measure, configurations: Sequence[Configuration]
) -> FloatArray:
    """Values in normal operation of a measure of latency, shape (n,)."""
    if measure.kind is MeasureKind.MEAN:
        return scores_of(part, configurations) / part.demand.operations
    if measure.kind is MeasureKind.SLOWEST:
        return np.array([np.nanmax(mean_latencies(part, one, (0, 2))[1]) for one in configurations])
    return np.array([_of_mixture(problem, part, measure, one) for one in configurations])


def _of_mixture(
    problem: Problem,
    part: Problem,
    measure: Measure,
    one: Configuration,
    quorum: int | None = None,
) -> float:
    """Percentile in ms, or share that is answered in time, of one configuration."""
    percentile = percentile_of(problem, measure)
    if measure.kind is MeasureKind.PERCENTILE:
        return percentile.value(part, one, quorum)
    latency = percentile.latency(part, one, quorum)
    # in steps, so that shares that differ by the order of a sum alone tie
    share = float(latency[: deadline_bins(problem, measure) + 1].sum())
    step = share_step(percentile.distributions)
    return min(1.0, round(round(share / step) * step, 12))


def share_step(distributions: Distributions) -> float:
    """Return the step of shares in time: rounding of sums of four RTTs is less than half of it."""
    return 1e-9 if distributions.bins <= _FEW_BINS else 1e-8


def _after(
    problem: Problem,
    part: Problem,
    measure: Measure,
    configurations: Sequence[Configuration],
    loss: Loss,
    normal: FloatArray,
) -> FloatArray:
    """Values after one loss, those of the leader that is best for the measure, shape (n,)."""
    after = measure.after
    moves, hop = (False, False) if after is None else (after.leader_moves, after.clients_move)
    if measure.kind is MeasureKind.MEAN:
        rate = part.demand.operations
        known = {"leader_may_move": moves, "clients_move": hop}
        return scores_after_many(part, configurations, loss.sites, normal * rate, **known) / rate
    found = normal.copy()
    for row, one in enumerate(configurations):
        if not unnoticed(part, one, loss.sites):
            found[row] = _best_after(problem, part, measure, one, loss)
    return found


def _best_after(
    problem: Problem, part: Problem, measure: Measure, one: Configuration, loss: Loss
) -> float:
    after = measure.after
    left = survivors(part, one, loss.sites, leader_may_move=bool(after and after.leader_moves))
    if left is None:
        return 0.0 if measure.share else math.inf
    each = [
        _of_mixture(
            problem,
            part,
            measure,
            Configuration.of(leader, left.voters, left.replicas),
            left.quorum,
        )
        for leader in left.leaders
    ]
    return max(each) if measure.share else min(each)


# --- the part of the question that a measure reads -------------------------------------------


@lru_cache(maxsize=64)
def focused(
    problem: Problem, operations: tuple[str, ...] = (), clients: tuple[str, ...] = ()
) -> Problem:
    """Return the problem with the part of the demand that some operations of some clients make.

    InputError for an unknown operation, client or domain, and for a part without any operation.
    """
    if not operations and not clients:
        return problem
    demand = problem.demand.part(_clients(problem, clients), _operations(problem, operations))
    if not demand.counts.any():
        raise InputError(
            "no operation counts",
            field="measure",
            value=", ".join((*operations, *clients)),
            expected="kinds of operations that these clients issue",
        )
    copy = object.__new__(type(problem))
    copy.__dict__.update(problem.__dict__, rules=problem.rules, demand=demand)
    return copy


def largest(problem: Problem, measure: Measure) -> float:
    """Return what no plan exceeds: every way as long as the longest; +∞ where it is not known."""
    if measure.kind is MeasureKind.REPLICAS:
        return problem.rules.replicas_max
    latency = measure.kind in {MeasureKind.MEAN, MeasureKind.SLOWEST}
    if not latency or measure.after is not None or measure.over_outages:
        return math.inf
    demand = focused(problem, measure.operations, measure.clients).demand
    near, relay, direct, votes = demand.coefficients[demand.counts.any(axis=(0, 1))].T
    most = (near + direct) * demand.client_rtt.max() + (relay + votes) * demand.site_rtt.max()
    return math.inf if demand.has_waits else float(most.max(initial=0.0))


def _operations(problem: Problem, names: tuple[str, ...]) -> BoolArray:
    operations = problem.instance.operations
    chosen = np.zeros(len(operations), dtype=bool)
    for name in names:
        kind = _READS_WRITES.get(name)
        rows = [
            row
            for row, one in enumerate(operations)
            if one.name == name or (kind is not None and one.kind == kind)
        ]
        if not rows:
            known = [*_READS_WRITES, *(one.name for one in operations)]
            raise InputError(
                "no such kind of operations",
                field="measure",
                value=name,
                expected=suggest(name, known, "reads, writes, or the name of an operation"),
            )
        chosen[rows] = True
    return chosen if names else ~chosen


def _clients(problem: Problem, names: tuple[str, ...]) -> BoolArray:
    instance = problem.instance
    chosen = np.zeros(len(instance.clients), dtype=bool)
    for name in names:
        if name in instance.clients:
            chosen[instance.clients.index(name)] = True
            continue
        level, colon, domain = name.partition(":")
        if not colon:
            known = [*instance.clients, *_domain_names(problem)]
            expected = suggest(name, known, "a client, or LEVEL:DOMAIN")
            raise InputError("no such client", field="measure", value=name, expected=expected)
        labels = instance.labels(level)
        if domain not in labels:
            known = [f"{level}:{one}" for one in labels if one is not None]
            expected = suggest(name, known, f"a {level} of the instance")
            raise InputError("no such domain", field="measure", value=name, expected=expected)
        chosen |= np.array([labels[site] == domain for site in _homes(problem)])
    return chosen if names else ~chosen


def _domain_names(problem: Problem) -> list[str]:
    domains = problem.instance.domains
    return [f"{level}:{one}" for level in domains for one in dict.fromkeys(domains[level]) if one]


def _homes(problem: Problem) -> list[int]:
    """Site of every client: see the module."""
    instance = problem.instance
    places = {name: site for site, name in enumerate(instance.sites)}
    given = {} if instance.prices is None else instance.prices.client_sites
    closest = problem.demand.client_rtt.mean(axis=0).argmin(axis=1).tolist()
    return [
        places.get(client, places.get(given.get(client, ""), near))
        for client, near in zip(instance.clients, closest, strict=True)
    ]


def losses_of(problem: Problem, measure: Measure) -> tuple[Loss, ...]:
    """Return the losses of a measure: those of its level, the named one, or the outages.

    InputError for an unknown level, site or domain, and for outages that the question does not
    give.
    """
    if measure.over_outages:
        return tuple(_named_loss(problem, name) for name in outages_of(problem))
    after = measure.after
    if after is None:
        return ()
    if after.named:
        return (_named_loss(problem, after.named),)
    return losses(problem, after.level, together=after.together)


def _named_loss(problem: Problem, name: str) -> Loss:
    instance = problem.instance
    if name in instance.sites:
        return Loss(name, frozenset((instance.sites.index(name),)))
    level, colon, domain = name.partition(":")
    sites = [s for s, one in enumerate(instance.labels(level)) if one == domain] if colon else []
    if not sites:
        expected = suggest(
            name, [*instance.sites, *_domain_names(problem)], "a site, or LEVEL:DOMAIN"
        )
        raise InputError("no such site or domain", field="measure", value=name, expected=expected)
    return Loss(domain, frozenset(sites))


def _data(problem: Problem) -> MeasureData:
    goal = problem.objective
    return goal if isinstance(goal, MeasureData) else _NO_DATA


def outages_of(problem: Problem) -> dict[str, float]:
    """Return the probability of every outage by site or LEVEL:DOMAIN; "any LEVEL" is all of one."""
    found: dict[str, float] = {}
    for name, p in _data(problem).outages.items():
        level = name.removeprefix("any ")
        found |= {name: p} if level == name else dict.fromkeys(_named(problem, level), p)
    if not found:
        raise InputError(
            "a mean over outages needs their probabilities",
            field="outages",
            value=None,
            expected="outages={'region:eu': 0.001, …}, or --outage NAME=P",
        )
    return found


def _named(problem: Problem, level: str) -> list[str]:
    """Return the names of all domains of a level as outages are named."""
    labels = [label for label in dict.fromkeys(problem.instance.labels(level)) if label is not None]
    return labels if level == "site" else [f"{level}:{label}" for label in labels]


def distributions_of(problem: Problem) -> tuple[Distributions, ...]:
    """Return the distributions of RTTs that a question brings, one or one an interval."""
    found = _data(problem).distributions
    if not found:
        raise InputError(
            "a percentile or a share in time needs the distributions of RTTs",
            field="distributions",
            value=None,
            expected="distributions=…; --distributions FILE, or --spread V where only means are "
            "known",
        )
    return found


@lru_cache(maxsize=64)
def percentile_of(problem: Problem, measure: Measure) -> Percentile:
    """Return the percentile of a measure, whose distributions give its mixtures."""
    each = distributions_of(problem)
    level = measure.level if measure.kind is MeasureKind.PERCENTILE else None
    percent = 100.0 if level is None else round(100 * level, 9)
    if not problem.instance.varying_rtt:
        return Percentile(percent, each[0])
    return Percentile.varying(percent, each)


def deadline_bins(problem: Problem, measure: Measure) -> int:
    """Return the deadline of a share that is answered in time, in bins of the distributions."""
    one = distributions_of(problem)[0]
    assert measure.level is not None
    found = math.floor(measure.level / one.width + 1e-9)
    if found >= one.bins:
        raise InputError(
            "a deadline beyond the horizon of the distributions",
            field="measure",
            value=measure.level,
            expected=f"< {one.bins * one.width:g} ms",
        )
    return found


@lru_cache(maxsize=16)
def move_function(problem: Problem, kind: MeasureKind) -> LinearLimit:
    """Return the changes, or the GB copied, as a linear function of the placement."""
    present = problem.present
    if present is None:
        raise InputError(
            "changes and copies are counted from the present configuration",
            field="current",
            value=None,
            expected="current=…, the configuration that runs today (--from PLAN)",
        )
    stored = _data(problem).stored_gb if problem.moves is None else problem.moves.stored_gb
    if kind is MeasureKind.CHANGES:
        moves = Moves(at_most=0)
    else:
        moves = Moves(copy_gb=0.0, stored_gb=stored)
    return MoveCosts(problem.instance, present, moves).limits[0]


def _cost_model(problem: Problem) -> CostModel:
    model = cost_model(problem.instance)
    if model is None:
        expected = "an instance with prices: Instance(prices=Prices(…)), or --prices"
        words = "a cost needs prices, and the instance has none"
        raise refused("", "measure", words, "cost", expected)
    return model


def check_measure(problem: Problem, measure: Measure) -> None:
    """Raise InputError where a measure names what the question or its instance does not have."""
    if measure.kind is MeasureKind.COST:
        _cost_model(problem)
    if measure.kind in {MeasureKind.CHANGES, MeasureKind.COPIED}:
        move_function(problem, measure.kind)
    if measure.kind in {MeasureKind.PERCENTILE, MeasureKind.WITHIN}:
        percentile_of(problem, measure).check(problem)
    if measure.kind is MeasureKind.WITHIN:
        deadline_bins(problem, measure)
    if measure.kind.of_latency:
        try:
            focused(problem, measure.operations, measure.clients)
            losses_of(problem, measure)
        except InputError as error:  # of several measures, the one with the unknown name
            raise error.at(str(measure)) from None

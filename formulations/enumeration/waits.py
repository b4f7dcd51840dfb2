"""Every replica set, every choice of voters, every leader: the reference for waits and witnesses.

Part ``exhaustive.waits`` of the method ``exhaustive``. Nothing is bounded and nothing shared: each
configuration is scored by the one evaluator, many at a time.
O(C(|S|, |R|) · C(|R|, |V|) · |V| · |C| · |R|), and with w witnesses C(|S| − |R|, w) times as much,
with p lease holders C(|R| − 1, p − 1) times.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from formulations.enumeration.enumerate_sets import Found, enumerate_sets
from formulations.enumeration.exhaustive import count_sets
from placement.errors import LimitError
from placement.evaluation.breakdown import objective_values
from placement.evaluation.score import TIE
from placement.evaluation.voter_choice import by_answer_time
from placement.feasibility.holder_choice import holder_choices
from placement.methods.options import Options
from placement.model.configuration import Configuration
from placement.model.constraints import Rules
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import IntArray

__all__ = ["configurations", "enumerate_configurations", "in_order", "solve", "with_order"]

_BLOCK = 200


def solve(problem: Problem, options: Options) -> Plan:
    """Evaluate every configuration.

    Raises
    ------
    LimitError
        When there are more replica sets than the setting ``limit``.
    """
    return enumerate_configurations(problem, options, lambda sets: _best_of(problem, sets), _BLOCK)


def enumerate_configurations(
    problem: Problem, options: Options, look: Callable[[IntArray], Found | None], block: int
) -> Plan:
    """Return the best configuration over all replica sets, as :func:`.enumerate_sets` does.

    Parameters
    ----------
    problem, options, look
        As there.
    block
        Replica sets at a time where there are no other choices beside them.

    Raises
    ------
    LimitError
        When there are more choices than the setting ``limit``.
    """
    choices = _witness_choices(problem.rules) * _holder_choices(problem.rules)
    if choices > 1:
        total, limit = count_sets(problem) * choices, int(str(options.settings["limit"]))
        if total > limit:
            raise LimitError(
                f"{total:,} sets of {_sets_of(problem.rules)} are more than the limit of "
                f"{limit:,}; {_instead(problem)}, or raise the setting 'limit'"
            )
    return enumerate_sets(
        problem,
        options,
        look,
        block=max(1, block // choices),
        instead=_other_method(problem, choices),
    )


def _other_method(problem: Problem, choices: int) -> str:
    """Return the methods for larger numbers of replica sets, in words."""
    if problem.objective.kind != "mean":
        return "fewer candidate sites (forbidden)"
    return "'milp'" if choices > 1 or problem.rules.lease_holders else "'sets'"


def _instead(problem: Problem) -> str:
    """Return advice for too many sets of replicas and witnesses, in words."""
    if problem.objective.kind != "mean":
        return "use fewer candidate sites (forbidden)"
    if "witnesses" in problem.cost_parts:
        return "leave out the price of witnesses (prices.witness_share) and use 'milp'"
    return "use 'milp'"


def _witness_choices(rules: Rules) -> int:
    """Return the number of choices of witnesses beside any replicas, at most."""
    if rules.may_witness is None or not rules.witnesses:
        return 1
    return max(1, math.comb(int(rules.may_witness.sum()), rules.witnesses))


def _holder_choices(rules: Rules) -> int:
    """Return the number of choices of lease holders beside a leader and replicas, at most."""
    if not rules.lease_holders or rules.voters_hold_leases:
        return 1
    return math.comb(rules.replicas_max - 1, rules.lease_holders - 1)


def _sets_of(rules: Rules) -> str:
    """Return the roles counted beside the replicas, in words."""
    parts = ["replicas"]
    parts += ["witnesses"] * bool(rules.witnesses) + ["lease holders"] * bool(rules.lease_holders)
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def configurations(
    problem: Problem, sets: IntArray, leader: int | None = None
) -> list[Configuration]:
    """Return every configuration on some replica sets that obeys the rules.

    Parameters
    ----------
    problem
        The question.
    sets
        Replica sets of one size, shape (sets, size), rows ascending.
    leader
        Site index of the only leader; None: every site that may lead.
    """
    rules = problem.rules
    sets = sets[rules.obeyed("replicas", sets)]
    found: list[Configuration] = []
    for places in itertools.combinations(range(sets.shape[1]), rules.data_voters):
        holding = sets[:, places]
        held = np.isin(holding, np.nonzero(rules.must_vote)[0]).sum(axis=1)
        able = rules.may_vote[holding].all(axis=1) & (held == rules.must_vote.sum())
        for row, voters in _with_each_witness(rules, sets, holding, np.nonzero(able)[0]):
            leaders = [site for site in holding[row].tolist() if rules.may_lead[site]]
            if problem.demand.leaderless:  # any does: it has no part
                leaders = leaders[:1]
            elif leader is not None:
                leaders = [leader] if leader in leaders else []
            for site in leaders:
                one = Configuration(site, voters, tuple(sets[row].tolist()))
                found.extend(
                    dataclasses.replace(one, lease_holders=chosen) if chosen else one
                    for chosen in holder_choices(problem, one)
                )
    if problem.limits:  # of money, which questions with witnesses may have
        found = [one for one in found if not any(limit.broken(one) for limit in problem.limits)]
    return found


def _best_of(problem: Problem, sets: IntArray) -> Found | None:
    """Return the best configuration of a block of replica sets; ties by :func:`in_order`."""
    found = configurations(problem, sets)
    if not found:
        return None
    values = objective_values(problem, found)
    best = float(values.min())
    if not np.isfinite(best):
        return None
    tied = np.nonzero(values <= best * (1 + TIE))[0].tolist()
    first = min(tied, key=lambda row: in_order(problem, found[row]))
    return float(values[first]), 0.0, with_order(problem, found[first])


def with_order(problem: Problem, one: Configuration) -> Configuration:
    """Return a configuration with its voters in the order in which they answer the leader."""
    if problem.demand.leaderless:
        return one
    return dataclasses.replace(one, voters=by_answer_time(problem.demand, one.leader, one.voters))


def in_order(problem: Problem, one: Configuration) -> tuple[object, ...]:
    """Return the order among configurations of equal value; the least comes first.

    The leader, the replicas, the voters closest to the leader, and the lease holders.
    """
    voters: tuple[object, ...] = one.voters
    if not problem.demand.leaderless:
        sites = np.arange(problem.demand.site_rtt.shape[-1])
        near = by_answer_time(problem.demand, one.leader, sites)
        voters = tuple(sorted(near.index(site) for site in one.voters))
    return one.leader, one.replicas, voters, one.lease_holders


def _with_each_witness(
    rules: Rules, sets: IntArray, holding: IntArray, rows: IntArray
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield rows with every choice of their voters that obeys the rules, witnesses last.

    `holding` are the voters with a replica, shape (sets, |V ∩ R|).
    """
    if not rules.witnesses:
        good = rules.obeyed("voters", holding[rows])
        yield from ((row, tuple(holding[row].tolist())) for row in rows[good].tolist())
        return
    for row in rows.tolist():
        free = rules.witness_sites(sets[row].tolist()).tolist()
        more = np.array(list(itertools.combinations(free, rules.witnesses)), dtype=np.intp)
        if not len(more):
            continue
        voters = np.concatenate([np.tile(holding[row], (len(more), 1)), more], axis=1)
        if rules.must_witness is not None:
            must = np.nonzero(rules.must_witness)[0]
            voters = voters[np.isin(voters, must).sum(axis=1) == len(must)]
        yield from ((row, tuple(v)) for v in voters[rules.obeyed("voters", voters)].tolist())

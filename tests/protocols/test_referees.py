"""Waits of leaders as rows of ``milp`` and ``cp-sat``; waits of others are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from placement import Problem, UnsupportedError
from placement.evaluation.waits.wait_latency import wait_latency
from placement.evaluation.waits.wait_rows import leader_waits, no_rows
from placement.support.status import Status
from tests.protocols.test_sets import questions
from tests.protocols.worlds import world

REFEREES = ("milp", "cp-sat")


def led(seed: int) -> Problem | None:
    """Return a random question with waits or constants, none of a nearest replica or a client."""
    problem = questions(seed)
    taken = problem.demand.has_waits and no_rows(problem) is None
    return problem if taken else None


@given(seed=st.integers(0, 10**6))
def test_the_rows_of_a_radius_hold_when_the_wait_ends_within_it(seed: int) -> None:
    problem = led(seed)
    if problem is None:
        return
    demand, rules = problem.demand, problem.rules
    rng = np.random.default_rng(seed)
    holders = np.nonzero(rules.may_hold)[0]
    voters = rng.choice(np.nonzero(rules.may_vote)[0], rules.voters, replace=False)
    others = np.setdiff1d(holders, voters)
    more = rng.choice(others, rules.replicas_max - rules.voters, replace=False)
    replicas = np.union1d(voters, more)
    leader = int(voters[0])
    for (j, k), wait in leader_waits(demand, rules, leader).items():
        at = np.array([leader])
        long = wait_latency(
            demand.waits[j], demand.client_rtt[k], demand.site_rtt[k], at,
            np.sort(voters)[np.newaxis], replicas[np.newaxis], at[np.newaxis], rules.quorum,
        )[0, 0]  # fmt: skip
        met = [
            all(
                sum(a for r, a in row.voters.items() if r in voters)
                + sum(b for r, b in row.replicas.items() if r in replicas)
                >= row.least
                for row in rows
            )
            for rows in wait.rows
        ]
        assert met == sorted(met)  # once met, met at every longer radius
        first = next((t for t, good in zip(wait.radii, met, strict=True) if good), np.inf)
        assert first == long


@pytest.mark.parametrize("method", REFEREES)
def test_a_wait_that_nobody_can_answer_has_no_plan(method: str) -> None:
    alone = placement.with_waits(
        world(1, 6), {"single_group": ["leader: 3 of voters outside region"]}
    )
    problem = Problem(alone, replicas=3, voters=3)
    assert placement.solve(problem, method="exhaustive").status is Status.INFEASIBLE
    assert placement.solve(problem, method=method).status is Status.INFEASIBLE


@pytest.mark.parametrize("method", REFEREES)
@pytest.mark.parametrize(
    ("protocol", "who"), [("epaxos", "the nearest replica waits"), ("abd", "the client waits")]
)
def test_waits_of_others_are_refused_with_a_way_out(method: str, protocol: str, who: str) -> None:
    problem = Problem(world(2, 6), replicas=3, voters=3, protocol=f"{protocol}:multi=2")
    with pytest.raises(UnsupportedError, match=f"{who}.*'exact'"):
        placement.solve(problem, method=method)

"""Many databases at once against one problem per database."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heuristics.overtime.fleet_tiers import Fleet, Leaders, tier1, tier2, tier2_voters
from placement import STANDARD_OPERATIONS, Diversity, InputError, Instance, Plan, Problem, solve
from placement.model.constraints import GroupRule
from tests.effort import examples
from tests.strategies import instances

DECAYS = [1.0, 1.5, 4.0, math.inf]
CAPS = [
    (),
    (Diversity("region"),),
    (Diversity("zone", cap=1), Diversity("continent", cap=2)),
    (Diversity("provider", cap=2),),
]


def operations_of(instance: Instance) -> np.ndarray:
    return np.array([operation.coefficients for operation in instance.operations])


@st.composite
def fleets(draw: st.DrawFn) -> tuple[Instance, Fleet, np.ndarray, np.ndarray]:
    """An instance, a fleet on its sites, and per database how many vote and a set that does."""
    instance = draw(instances(max_sites=7, max_intervals=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    databases, sites = draw(st.integers(1, 6)), len(instance.sites)
    counts = rng.permuted(np.repeat(instance.counts[np.newaxis], databases, axis=0), axis=2)
    if draw(st.booleans()):  # some intervals of some databases are idle
        counts = counts * (rng.random((databases, counts.shape[1], 1, 1)) < 0.7)
    replicas = rng.random((databases, sites)) < 0.6
    replicas[np.arange(databases), rng.integers(0, sites, databases)] = True
    voters = np.zeros_like(replicas)
    sizes = rng.integers(1, replicas.sum(axis=1) + 1)
    for database, size in enumerate(sizes):
        held = np.nonzero(replicas[database])[0]
        voters[database, rng.choice(held, size, replace=False)] = True
    fleet = Fleet(instance.client_rtt, instance.site_rtt, counts, operations_of(instance), replicas)
    return instance, fleet, sizes, voters


def names(instance: Instance, mask: np.ndarray) -> list[str]:
    return [instance.sites[s] for s in np.nonzero(mask)[0]]


def check(
    result: Leaders, fleet: Fleet, database: int, interval: int, decay: float, answer: Plan | None
) -> None:
    """One entry of the result against the plan of the same problem; None: nothing was issued."""
    leader = int(result.leader[database, interval])
    score = float(result.score[database, interval])
    if answer is None:
        assert (leader, score) == (-1, 0.0) or (leader == -1 and math.isinf(score))
        return
    if not answer.found:
        assert leader == -1
        assert math.isinf(score)
        return
    assert answer.problem.instance.sites[leader] == answer.leader
    assert score == pytest.approx(answer.score, rel=1e-12, abs=1e-300)
    overhead = result.overhead()[database, interval]
    assert overhead[leader] == 0.0
    assert np.nanmin(overhead) >= -1e-9


def question(instance: Instance, fleet: Fleet, database: int, interval: int, decay: float) -> Any:
    """The instance as it was known after an interval; None when nothing had been issued."""
    counts = fleet.counts[database, : interval + 1]
    if not (counts if math.isfinite(decay) else counts[-1]).any():
        return None
    return instance.replace(counts=counts, intervals=())


@given(fleets(), st.sampled_from(DECAYS), st.booleans())
def test_tier_1_is_method_leader_per_database(
    drawn: tuple[Instance, Fleet, np.ndarray, np.ndarray], decay: float, flexible: bool
) -> None:
    instance, fleet, sizes, voters = drawn
    quorum = np.maximum(1, sizes // 2) if flexible else None
    result = tier1(fleet, voters, quorum=quorum, decay=decay)
    overhead = result.overhead()
    for database in range(len(sizes)):
        assert np.array_equal(np.isfinite(result.scores[database, 0]), voters[database])
        for interval in range(fleet.counts.shape[1]):
            known = question(instance, fleet, database, interval, decay)
            plan = None
            if known is not None:
                problem = Problem(
                    known,
                    replicas=names(instance, fleet.replicas[database]),
                    voters=names(instance, voters[database]),
                    quorum=None if quorum is None else int(quorum[database]),
                    decay=decay,
                )
                plan = solve(problem, "leader")
                if plan.score > 0:
                    for row in plan.leaders:
                        mine = overhead[database, interval, instance.sites.index(row.leader)]
                        assert mine == pytest.approx(row.overhead, rel=1e-9, abs=1e-9)
            check(result, fleet, database, interval, decay, plan)


def check_tier2(
    drawn: tuple[Instance, Fleet, np.ndarray, np.ndarray],
    decay: float,
    caps: tuple[Diversity, ...],
) -> None:
    instance, fleet, sizes, _ = drawn
    rules = groups(instance, caps)
    result = tier2(fleet, sizes, rules=rules, decay=decay)
    votes = tier2_voters(fleet, result.leader[:, -1], sizes, rules=rules)
    for database, size in enumerate(sizes.tolist()):
        for interval in range(fleet.counts.shape[1]):
            known = question(instance, fleet, database, interval, decay)
            plan = None
            if known is not None:
                held = names(instance, fleet.replicas[database])
                problem = Problem(known, replicas=held, voters=size, diversity=caps, decay=decay)
                plan = solve(problem, "tier2")
            check(result, fleet, database, interval, decay, plan)
        if plan is not None:  # of the last interval
            assert set(names(instance, votes[database])) == set(plan.voters)


@given(fleets(), st.sampled_from(DECAYS), st.sampled_from(CAPS))
def test_tier_2_is_method_tier2_per_database(
    drawn: tuple[Instance, Fleet, np.ndarray, np.ndarray],
    decay: float,
    caps: tuple[Diversity, ...],
) -> None:
    check_tier2(drawn, decay, caps)


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(fleets(), st.sampled_from(DECAYS), st.sampled_from(CAPS))
def test_tier_2_is_method_tier2_per_database_on_thousands(
    drawn: tuple[Instance, Fleet, np.ndarray, np.ndarray],
    decay: float,
    caps: tuple[Diversity, ...],
) -> None:
    check_tier2(drawn, decay, caps)


def groups(instance: Instance, caps: tuple[Diversity, ...]) -> tuple[GroupRule, ...]:
    return Problem(instance, replicas=1, voters=1, diversity=caps).rules.groups


def small(**changes: Any) -> Fleet:
    """Two databases, two intervals, one client at each of three sites at 0, 10 and 30 ms."""
    at = np.array([0.0, 10.0, 30.0])
    between = np.abs(at[:, None] - at)
    counts = np.zeros((2, 2, 3, 5))
    counts[0, 0, 0, 2] = 3  # strong reads at the first site, then at the last
    counts[0, 1, 2, 2] = 2
    fields: dict[str, Any] = {
        "client_rtt": between,
        "site_rtt": between,
        "counts": counts,
        "coefficients": np.array([o.coefficients for o in STANDARD_OPERATIONS]),
        "replicas": np.array([[True, True, True], [True, False, True]]),
    }
    return Fleet(**{**fields, **changes})


def test_by_hand() -> None:
    """Strong reads only, all three sites vote.

    Interval 1 scores 3·(0, 10, 30), interval 2 alone 2·(30, 20, 0). With τ = 1 they add to
    (60, 70, 90), so that a stays; with τ = 3 to (60, 50, 30), and c takes over.
    """
    everyone = small().replicas
    plain = tier1(small(), everyone)
    assert plain.leader.tolist() == [[0, 0], [-1, -1]]  # the second database is idle
    assert plain.scores[0].tolist() == [[0, 30, 90], [60, 70, 90]]
    assert plain.score[1].tolist() == [0, 0]
    decayed = tier1(small(), everyone, decay=3)
    assert decayed.leader[0].tolist() == [0, 2]
    assert decayed.scores[0, 1].tolist() == [60, 50, 30]
    overhead = decayed.overhead()
    np.testing.assert_allclose(overhead[0, 1], [100, 200 / 3, 0])
    assert overhead[0, 0].tolist() == [0, math.inf, math.inf]  # the best costs nothing
    assert math.isnan(overhead[1, 0, 1])  # no replica there
    oracle = tier1(small(), everyone, decay=math.inf)
    assert oracle.scores[0, 1].tolist() == [60, 40, 0]


def test_candidates_and_infeasible_databases() -> None:
    only_b = np.array([[False, True, False]] * 2)
    assert tier2(small(), 1, may_lead=only_b).leader.tolist() == [[1, 1], [-1, -1]]
    too_many = tier2(small(), [3, 3])
    assert too_many.leader[0].tolist() == [0, 0]
    assert too_many.leader[1].tolist() == [-1, -1]  # two replicas can't give three voters
    assert np.isinf(too_many.score[1]).all()
    assert not tier2_voters(small(), [-1, -1], 3).any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"counts": np.full((2, 2, 3, 5), np.nan)}, "counts: out of range"),
        ({"counts": -np.ones((2, 2, 3, 5))}, "counts: out of range"),
        ({"client_rtt": np.full((3, 3), np.inf)}, "client_rtt: out of range"),
        ({"client_rtt": [[1.0], [2.0, 3.0]]}, "client_rtt: not a table of numbers"),
        ({"client_rtt": np.ones((2, 3))}, "client_rtt: wrong shape"),
        ({"site_rtt": np.ones((3, 3))}, "site_rtt: a site has a non-zero RTT to itself"),
        ({"counts": np.ones((2, 3, 5))}, "counts: wrong shape"),
        ({"counts": np.ones((3, 2, 3, 5))}, "counts: wrong shape"),
        ({"coefficients": np.ones((5, 3))}, "coefficients: wrong shape"),
        ({"replicas": np.ones((2, 3))}, "replicas: wrong shape"),
        ({"replicas": np.zeros((2, 3), dtype=bool)}, "replicas: a database without replicas"),
    ],
)
def test_bad_fleets(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        small(**changes)


def test_bad_questions() -> None:
    everyone = small().replicas
    nobody = np.zeros_like(everyone)
    with pytest.raises(InputError, match="voters: a database without voters: got 0"):
        tier1(small(), nobody)
    with pytest.raises(InputError, match="voters: database 1 holds no replica there: got 1"):
        tier1(small(), np.ones_like(everyone))
    with pytest.raises(InputError, match="quorum: a quorum that its voters can't give: got 3"):
        tier1(small(), everyone, quorum=[1, 3])
    with pytest.raises(InputError, match="voters: out of range: got 0"):
        tier2(small(), [1, 0])
    with pytest.raises(InputError, match="decay: out of range"):
        tier2(small(), 1, decay=0.5)
    instance = Instance(
        sites=["a", "b", "c"],
        clients=["k"],
        client_rtt=np.ones((1, 3)),
        site_rtt=1 - np.eye(3),
        counts=[[1, 0, 0, 0, 0]],
        domains={"country": ["x", "x", "y"], "provider": ["p", "q", "q"]},
    )
    for bad in (
        (Diversity("country"), Diversity("provider")),
        (Diversity("country", min_domains=2),),
        (Diversity("country", role="replicas"),),
    ):
        with pytest.raises(InputError, match="rules: not caps for voters on nested levels"):
            tier2(small(), 1, rules=groups(instance, bad))
    country = groups(instance, (Diversity("country"),))
    with pytest.raises(InputError, match="leader: no voters obey the rules under this leader"):
        tier2_voters(small(), [0, -1], 3, rules=country)

"""Replays to test: generated ones, two towns, databases on `world27`; and their price."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

import placement
from placement import Instance, Problem
from placement.evaluation.score import score
from placement.model.constraints import majority
from placement.model.demand import aggregate
from placement.overtime.replay import NOBODY, STRATEGIES, Deployments, Trace
from placement.overtime.replay.results import Replay
from tests.strategies import instances

WITHOUT_SHARES = tuple(name for name in STRATEGIES if name != "given")
"""The strategies of a replay whose leaders have no given distribution."""


@st.composite
def cases(draw, *, varying=None, max_sites=6, decays=(1.0, 1.5, 2.0, math.inf)):
    """Draw a problem, a trace of two databases (one of them idle now and then), deployments."""
    vary = draw(st.booleans(), label="varying RTTs") if varying is None else varying
    world = draw(instances(max_sites=max_sites, max_intervals=5, varying_rtt=vary))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    counts = world.counts
    if len(counts) == 1:
        counts = np.concatenate([counts, counts[::-1] * 2])
        world = world.replace(counts=counts, intervals=())
    other = rng.permuted(counts, axis=1)
    other[rng.random(len(other)) < 0.3] = 0
    trace = Trace(("a", "b"), world.intervals, np.stack([counts, other]))
    sites = len(world.sites)
    replicas = int(rng.integers(1, sites + 1))
    voters = int(rng.integers(1, replicas + 1))
    held = np.zeros((2, sites), dtype=bool)
    votes = held.copy()
    wishes = np.full(2, NOBODY)
    for database in range(2):
        chosen = rng.permutation(sites)[:replicas]
        held[database, chosen] = True
        votes[database, chosen[:voters]] = True
        if rng.random() < 0.5:
            wishes[database] = chosen[0]
    decay = draw(st.sampled_from(decays), label="decay")
    if not (counts[-1].any() or math.isfinite(decay)):
        decay = 2.0
    quorum = None if rng.random() < 0.5 else int(rng.integers(1, voters + 1))
    problem = Problem(world, replicas=replicas, voters=voters, quorum=quorum, decay=decay)
    return problem, trace, Deployments(held, votes, wishes)


def paid(problem: Problem, counts, interval: int, leader, voters, replicas) -> float:
    """One configuration in one interval, by the evaluator."""
    if not counts.any():
        return 0.0
    demand = aggregate(problem.instance.at_interval(interval, counts))
    needed = problem.rules.quorum if problem.quorum is not None else majority(len(voters))
    return score(demand, int(leader), list(voters), list(replicas), needed)


def check_scores(problem: Problem, trace: Trace, result: Replay) -> None:
    """Every score is the evaluator's score of the configuration named beside it."""
    for outcome in result.outcomes:
        for database in range(len(trace)):
            for column in range(len(result.intervals)):
                code = int(outcome.voters[database, column])
                value = float(outcome.score[database, column])
                if code < 0:
                    assert math.isnan(value)
                    assert outcome.strategy in ("closest-to-writes", "preferred", "smallest-quorum")
                    continue
                voters = result.sets[code]
                replicas = result.sets[int(outcome.replicas[database, column])]
                assert set(voters) <= set(replicas)
                counts = trace.counts[database, column + 1]
                leader = int(outcome.leader[database, column])
                leaders = [leader] if leader != NOBODY else list(voters)
                assert (leader == NOBODY) == (outcome.strategy == "average")
                assert set(leaders) <= set(voters)
                wanted = np.mean(
                    [paid(problem, counts, column + 1, ell, voters, replicas) for ell in leaders]
                )
                assert value == pytest.approx(wanted, rel=1e-9, abs=1e-9)
            held = [set(result.sets[code]) for code in outcome.replicas[database] if code >= 0]
            if len(held) == len(result.intervals):
                copied = sum(len(after - before) for before, after in pairwise(held))
                assert result.copies(outcome.tier, outcome.strategy)[database] == copied


def two_towns(counts, **asked: object) -> tuple[Problem, Trace, Deployments]:
    """Sites west and east 100 ms apart, a client in each at 1 ms; strong reads and writes."""
    operations = (placement.STANDARD_OPERATIONS[2], placement.STANDARD_OPERATIONS[3])
    near = np.array([[1.0, 100.0], [100.0, 1.0]])
    world = Instance(
        sites=("west", "east"),
        clients=("w", "e"),
        client_rtt=near,
        site_rtt=np.array([[0.0, 100.0], [100.0, 0.0]]),
        counts=counts,
        operations=operations,
    )
    problem = Problem(world, replicas=2, voters=2, **asked)
    both = Deployments.same(world, 1, ("west", "east"), ("west", "east"))
    return problem, Trace.of_instance(world), both


READS_MOVE = np.array(
    [
        [[10, 2], [0, 0]],  # west
        [[0, 0], [16, 0]],  # east
        [[0, 0], [1, 0]],
        [[0, 0], [0, 0]],  # nothing
        [[1, 0], [0, 0]],
    ]
)


def world27(databases: int = 7) -> tuple[Problem, Trace, Deployments]:
    world = placement.load("world27")
    rng = np.random.default_rng(5)
    counts = rng.poisson(20.0, (databases, 6, len(world.clients), 5)).astype(float)
    counts[1, :, :, 3:] = 0
    problem = Problem(world, replicas=5, voters=3, decay=2.0)
    held = np.zeros((databases, 27), dtype=bool)
    votes = held.copy()
    for row in range(databases):
        chosen = rng.permutation(27)[: 4 + row % 3]
        held[row, chosen], votes[row, chosen[: 3 - row % 2]] = True, True
    names = tuple(f"db{i}" for i in range(databases))
    trace = Trace(names, tuple("abcdef"), counts)
    return problem, trace, Deployments(held, votes, np.full(databases, NOBODY))

"""Wrong types and sizes: constructors name the field, and never fail in a bare way."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from heuristics.online.dynamic.copy_choices import run_votes
from heuristics.online.reads import LeaseHolder, UniformQuorum
from heuristics.online.selection import (
    C3,
    DynamicSnitch,
    EarliestCompletion,
    LeastOutstanding,
    LeastResponseTime,
    LimiterRules,
    Oracle,
    RandomChoice,
    RoundRobin,
    TwoChoices,
    WeightedResponseTime,
    run,
)
from placement.errors import InputError
from placement.online import dynamic, reads, selection, spawn_streams
from placement.online.dynamic import store_demand, vote_simulator
from placement.online.dynamic.copy_protocol import ProtocolSettings
from placement.online.dynamic.store_demand import random_ring
from placement.online.reads.elections import ElectionSettings

WRONG = [
    None,
    "x",
    "",
    b"x",
    True,
    math.nan,
    math.inf,
    -math.inf,
    -1,
    0,
    1.5,
    1j,
    10**400,
    -(10**400),
    Fraction(10**400),
    [],
    [1, 2, 3],
    [[1], [2, 3]],
    {},
    {"a": 1},
    object(),
    np.array("x"),
    np.array([None]),
    np.zeros((2, 2)),
    np.array([1e400, math.nan]),
]
"""What a field may get; where one of them is right for a field, it is accepted."""

STREAMS = ("ring", "demand")


def good():
    """Call and good arguments of everything that users build, by name."""
    cluster = selection.ServerCluster(4, 2, 2, 3, requests=5)
    path = selection.draw(cluster, 1)
    fields = {field.name: getattr(path, field.name) for field in dataclasses.fields(path)}
    problem = reads.ReadProblem(np.ones((3, 3)), np.ones(3), 0)
    machines, asked = reads.RaftCluster(nodes=3), reads.ReadWorkload(clients=2)
    geography = dynamic.six_sites()
    world = dynamic.hot_set_world(geography, 20, spawn_streams(1, STREAMS), nodes_per_site=2)
    traffic = store_demand.RequestWorkload(seconds=1.0, rate=10.0)
    voting = vote_simulator.VoteSettings(k=2)
    replication = world.problem(2)
    mixtures = [{(0,): 1.0}] * 3
    built = [
        C3(),
        Oracle(),
        EarliestCompletion(),
        LeastOutstanding(),
        RoundRobin(),
        RandomChoice(),
        TwoChoices(),
        LeastResponseTime(),
        WeightedResponseTime(),
        DynamicSnitch(),
        LimiterRules(),
        cluster,
        machines,
        asked,
        problem,
        reads.ReadGoal.least_load(),
        ElectionSettings(),
        ProtocolSettings(),
        reads.Backoff(),
        UniformQuorum(0.2),
        geography,
        world,
        world.ring,
        replication,
        traffic,
        voting,
    ]
    calls = {".".join([*type(p).__module__.split(".")[2:], type(p).__name__]): p for p in built}
    assert len(calls) == len(built)
    table = {
        name: (type(p), {f.name: getattr(p, f.name) for f in dataclasses.fields(p) if f.init})
        for name, p in calls.items()
    }
    return table | {
        "ServerSamplePath": (selection.ServerSamplePath, fields),
        "draw": (selection.draw, {"cluster": cluster, "seed": 1}),
        "run": (run, {"sample": path, "policy": C3()}),
        "cut": (
            selection.cut,
            {"sample": path.on_grid(), "servers": (path.cluster.groups[path.group[0]][0],)}
            | {"first": 1, "count": 2},
        ),
        "first": (path.first, {"count": 2}),
        "on_grid": (path.on_grid, {"ticks_per_ms": 128}),
        "strategy": (reads.ReadStrategy.of, {"problem": problem, "mixtures": mixtures}),
        "simulate reads": (
            reads.simulate,
            {
                "cluster": machines,
                "workload": asked,
                "rule": LeaseHolder(),
                "operations": 4,
                "seed": 1,
                "warm_up": 0.0,
                "strong": False,
            },
        ),
        "hot_set_world": (
            lambda **given: dynamic.hot_set_world(**{"streams": spawn_streams(1, STREAMS)} | given),
            {"geography": geography, "keys": 20, "correlation": 0.5, "exponent": 0.9}
            | {"generators_per_site": 2, "nodes_per_site": 2, "static_copies": 2},
        ),
        "random_ring": (
            lambda **given: random_ring(np.random.default_rng(1), **given),
            {"sites": 2, "nodes_per_site": 3},
        ),
        "within": (
            dynamic.Geography.within,
            {"sites": ("a", "b"), "rtt": np.ones((2, 2)), "limit": 9.0},
        ),
        "simulate dynamic": (
            vote_simulator.simulate,
            {"world": world, "workload": traffic, "settings": voting, "seed": 1},
        ),
        "run_votes": (run_votes, {"problem": replication, "grace": 1, "rounds": 2}),
    }


GOOD = good()


def outcome(call, arguments):
    """Return "taken", "refused" with the field named, or what went wrong."""
    try:
        call(**arguments)
    except InputError as error:
        return "refused" if error.field else f"no field: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "taken"


@pytest.mark.parametrize("name", GOOD)
def test_wrong_values_are_input_errors(name):
    call, arguments = GOOD[name]
    assert outcome(call, arguments) == "taken"
    for field in arguments:
        found = {}
        for value in WRONG:
            said = outcome(call, {**arguments, field: value})
            found.setdefault(said, f"{name}({field}={value!r:.60})")
        assert set(found) <= {"taken", "refused"}, found
        assert "refused" in found, f"{name}: {field} takes anything"


def test_a_list_for_k_names_the_field():
    with pytest.raises(InputError, match="k: not a number: got \\[1, 2, 3\\]"):
        vote_simulator.VoteSettings(k=[1, 2, 3])

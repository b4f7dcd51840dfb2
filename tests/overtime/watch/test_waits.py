"""Watches of operations with waits, with a leader and without: against all configurations."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from formulations.waits.set_search import compiled_available
from placement import Configuration, InputError, Instance, Problem
from placement.cli import main
from placement.errors import UnsupportedError
from placement.feasibility.feasible_plans import violations
from placement.io import save_instance
from placement.overtime.decayed_counts import Decay
from placement.overtime.moves import Hysteresis, MovePrices
from placement.overtime.watch import WatchSettings
from placement.overtime.watch.default_prices import default_prices
from placement.overtime.watch.recommend import advise, initial_state
from placement.plan import objective_value
from tests.effort import seeds
from tests.overtime.watch.worlds import Run, csv_text, drop
from tests.protocols.worlds import world

pytestmark = pytest.mark.skipif(not compiled_available(), reason="the kernel was not built")

LED = ("leases:interference=0.2", "semi-sync:level=region", "flexiraft:level=region", "crdb-global")
LEADERLESS = ("epaxos:slow=0.1,multi=2", "mencius:multi=2", "abd:multi=2", "hermes:multi=2")


def asked(seed: int) -> WatchSettings:
    """Draw a question, prices and a rule; every other question needs no leader."""
    rng = np.random.default_rng([seed, 41])
    size = int(rng.integers(3, 5))
    leaderless = seed % 2 == 0
    protocol = str(rng.choice(LEADERLESS if leaderless else LED))
    voters = size if leaderless else int(rng.integers(2, size + 1))
    problem = Problem(
        world(seed, sites=6, clients=4 + seed % 4, ties=bool(seed % 3)),
        replicas=size, voters=voters, protocol=protocol,
    )  # fmt: skip
    prices = MovePrices(
        leader=0.0 if leaderless else float(rng.integers(0, 9)),
        voter=float(rng.integers(0, 5)),
        add=float(rng.choice([0.0, 6.0, 20.0, np.inf], p=[0.3, 0.3, 0.3, 0.1])),
        remove=float(rng.integers(0, 3)),
    )
    rule = Hysteresis(float(rng.choice([1.0, 4.0])), confirm=1)
    return WatchSettings(problem, Decay(1.3), rule, prices)


def demand(instance: Instance, intervals: int, seed: int) -> np.ndarray:
    """Counts that differ much from interval to interval, some of them 0."""
    rng = np.random.default_rng([seed, 42])
    shape = (intervals, *instance.counts.shape[1:])
    counts = rng.integers(0, 30, shape) * (rng.random(shape) < 0.5)
    counts[:, 0] += 1
    return np.asarray(counts, dtype=float)


def all_configurations(problem: Problem) -> list[Configuration]:
    """Return every configuration that obeys the rules; one leader where none is needed."""
    rules, found = problem.rules, []
    for replicas in itertools.combinations(range(len(problem.instance.sites)), rules.replicas_max):
        for voters in itertools.combinations(replicas, rules.voters):
            for leader in voters[:1] if problem.demand.leaderless else voters:
                one = Configuration.of(leader, voters, replicas)
                if not violations(problem, one):
                    found.append(one)
    return found


def price_by_hand(where: WatchSettings, before: Configuration, after: Configuration) -> float:
    prices = where.prices
    total = 0.0
    if not where.problem.demand.leaderless and before.leader != after.leader:
        total += prices.leader
    for price, one, other in (
        (prices.voter, before.voters, after.voters),
        (prices.voter, after.voters, before.voters),
        (prices.add, after.replicas, before.replicas),
        (prices.remove, before.replicas, after.replicas),
    ):
        number = len(set(one) - set(other))
        total += price * number if number else 0.0
    return total


@pytest.mark.parametrize("seed", seeds(12, 150))
def test_advice_is_the_best_of_all_configurations(seed: int) -> None:
    where = asked(seed)
    every, state = all_configurations(where.problem), initial_state(where)
    counts, horizon = demand(where.instance, 9, seed), where.rule.horizon
    for i, table in enumerate(counts):
        before = state.current
        state, advice = advise(where, state, str(i), table)
        weights = 1.3 ** np.arange(-i, 1.0)
        rates = np.tensordot(weights, counts[: i + 1], 1) / weights.sum()
        now = where.question(rates)
        value = {one: objective_value(now, one) / rates.sum() for one in every}
        assert advice.document["proven"] is True
        current = state.current
        assert current is not None
        mine = objective_value(now, current) / rates.sum()
        if before is None:
            assert mine == pytest.approx(min(value.values()), rel=1e-12)
            continue
        least = min(horizon * value[c] + price_by_hand(where, before, c) for c in every)
        paid = horizon * mine + price_by_hand(where, before, current)
        assert paid == pytest.approx(least, rel=1e-9), (seed, i)
        if where.leaderless:
            assert advice.document["leader"] is None
            assert not [step for step in advice.document["steps"] if step["step"] == "move-leader"]
            assert {each.kind for each in advice.candidates} <= {"keep", "replicas"}
        if advice.action == "move":
            last = advice.document["steps"][-1]
            names = where.instance.sites
            assert set(last["replicas"]) == {names[r] for r in current.replicas}
            assert set(last["voters"]) == {names[v] for v in current.voters}


@pytest.mark.parametrize("seed", range(4))
def test_a_restart_between_intervals_changes_nothing(seed: int, tmp_path: Path) -> None:
    where = asked(seed)
    counts = demand(where.instance, 6, seed)
    for i, table in enumerate(counts):
        drop(tmp_path / "in", f"{i}.csv", csv_text(where.instance, [i], table[np.newaxis]))
    with Run(where, tmp_path / "in", tmp_path / "whole.state") as run:
        whole = run.look().shown
    assert len(whole) == 6
    again: list[object] = []
    for i in range(6):
        text = csv_text(where.instance, [i], counts[i][np.newaxis])
        drop(tmp_path / "slow", f"{i}.csv", text)
        with Run(where, tmp_path / "slow", tmp_path / "parts.state") as run:
            again += run.look().shown
    assert again == whole


def test_a_price_of_another_leader_is_refused_where_there_is_none() -> None:
    where = asked(0)
    with pytest.raises(InputError, match="no operation needs a leader"):
        WatchSettings(where.problem, where.decay, where.rule, MovePrices(leader=1.0))
    assert default_prices(where.problem).leader == 0.0


@pytest.mark.parametrize(
    "more",
    [
        {"voters": 3, "witnesses": 1},
        {"voters": 3, "vote_layout": (2, 2, 1)},
        {"voters": 3, "protocol": "leases:holders=2"},
    ],
)
def test_other_roles_are_refused(more: dict[str, object]) -> None:
    problem = Problem(world(1, sites=6), replicas=4, **more)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="a watch"):
        WatchSettings(problem, Decay(2.0), Hysteresis(4.0), MovePrices())


def test_the_verb_takes_protocols(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    instance = world(3, sites=6)
    save_instance(instance, tmp_path / "mine")
    counts = demand(instance, 4, 3)
    for i, table in enumerate(counts):
        drop(tmp_path / "in", f"{i}.csv", csv_text(instance, [i], table[np.newaxis]))
    call = ["watch", str(tmp_path / "mine"), str(tmp_path / "in"), "--settle", "0"]
    call += ["--replicas", "3", "--state", str(tmp_path / "state"), "--add-price", "2"]
    assert main([*call, "--protocol", "epaxos:multi=2", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 4
    assert all(line["leader"] is None and len(line["replicas"]) == 3 for line in lines)
    assert main(["watch", *call[1:], "--protocol", "epaxos:multi=2", "--log"]) == 0
    assert "replicas s" in capsys.readouterr().out
    call[call.index("--state") + 1] = str(tmp_path / "other")
    assert main([*call, "--wait", "single_group=leader: all of replicas", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(line["leader"] in line["voters"] for line in lines)
    call[call.index("--state") + 1] = str(tmp_path / "third")
    assert main([*call, "--protocol", "epaxos:multi=2", "--leader-price", "3"]) == 1
    assert "no operation needs a leader" in capsys.readouterr().err

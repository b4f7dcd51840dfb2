"""Advice of a watch: against the evaluator, at the extremes of its rule, in silence."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placement
from placement import Configuration, Contingency, Instance, Options, Plan, Problem, Termination
from placement.errors import InputError
from placement.evaluation.breakdown import objective_values
from placement.evaluation.objective import score_of
from placement.io import save_instance
from placement.measures.question import percentile_question
from placement.methods.registry import load_method
from placement.overtime.decayed_counts import Decay
from placement.overtime.moves import Hysteresis, MovePrices, changes
from placement.overtime.watch.recommend import WatchSettings, advise, default_prices, initial_state
from placement.overtime.watch.state_store import read_log
from placement.plan import objective_value
from placement.tail import Distributions
from placement.testing import every_configuration
from tests.overtime.watch.worlds import Run, csv_text, demand, drop, reference, settings, world


def asked_of(kind: str, **changes_: Any) -> WatchSettings:
    """Settings with an objective, on the world of the other tests."""
    instance = world()
    if kind == "worst":
        goal: Any = Contingency()
    else:
        goal = percentile_question(
            float(kind), Distributions.parametric(instance, variation=0.3, width=5, bins=200)
        )
    return settings(problem=Problem(instance, replicas=4, voters=3, objective=goal), **changes_)


@pytest.mark.parametrize("kind", ["mean", "90", "worst"])
def test_recommendations_hold_up_to_the_evaluator(kind: str) -> None:
    """Gain, price and rule, each computed anew by brute force over every configuration.

    Nothing proves the least sum of value and price of another objective; the descent reaches it.
    """
    mean = kind == "mean"
    other = MovePrices(leader=2.0, voter=1.0, add=2.0, remove=0.5)
    asked = settings(3) if mean else asked_of(kind, prices=other, rule=Hysteresis(6.0))
    counts, decay, horizon = demand(20) if mean else demand(10)[:5], 1.3, asked.rule.horizon
    every = [
        one
        for one in every_configuration(asked.problem)
        if math.isfinite(objective_value(asked.problem, one))
    ]
    state, moved = initial_state(asked), 0
    for i, table in enumerate(counts):
        before = state.current
        state, advice = advise(asked, state, str(i), table)
        weights = decay ** np.arange(-i, 1.0)
        rates = np.tensordot(weights, counts[: i + 1], 1) / weights.sum()
        now = asked.problem.replace(
            instance=asked.instance.replace(counts=rates, intervals=()), decay=1.0
        )
        goal = now.objective
        found = objective_values(now, every).tolist()
        value = {one: goal.in_ms(now, x) for one, x in zip(every, found, strict=True)}
        assert advice.document["operations"] == pytest.approx(rates.sum())
        assert mean or advice.document["objective"] == goal.describe()
        for each in advice.candidates:
            here = goal.in_ms(now, objective_value(now, each.configuration))
            assert each.value == pytest.approx(here, rel=1e-12)
        least = min(each.value for each in advice.candidates)
        assert not mean or least == pytest.approx(min(value.values()), rel=1e-12)
        if before is None:
            assert advice.action == "start"
            assert advice.candidates[0].value == pytest.approx(min(value.values()))
            continue
        held = [c for c in every if c.replicas == before.replicas]
        same = [c for c in held if set(c.voters) == set(before.voters)]
        for change, among in (("leader", same), ("roles", held), ("replicas", every)):
            best = min(value[c] for c in among)
            shown = [each.value for each in advice.candidates if each.kind in ("keep", change)]
            wider = [least] if change == "replicas" else [*shown, least]
            assert not mean or min(wider) <= best * (1 + 1e-12)
        worth = [
            horizon * (advice.candidates[0].value - each.value) - each.price
            for each in advice.candidates
        ]
        assert [each.price for each in advice.candidates] == [
            asked.prices.of(changes(before, each.configuration)) for each in advice.candidates
        ]
        most = max(
            horizon * (advice.candidates[0].value - value[c]) - asked.prices.of(changes(before, c))
            for c in every
        )
        assert max(worth) == pytest.approx(most, abs=1e-9)
        assert not mean or advice.document["proven"] is True
        if advice.action == "move":
            moved += 1
            assert worth[advice.chosen] == pytest.approx(max(worth))
            assert worth[advice.chosen] > 0
            assert advice.streak == asked.rule.confirm
            last = advice.document["steps"][-1]
            assert set(last["replicas"]) == set(advice.document["replicas"])
            assert set(last["voters"]) == set(advice.document["voters"])
            assert last["leader"] == advice.document["leader"]
        else:
            assert max(worth) <= 1e-9 or advice.streak < asked.rule.confirm
    assert moved


def five_sites() -> tuple[Instance, np.ndarray]:
    """Four fifths of the reads beside b, the rest beside c: 6, 1 and 0.5 ms at ade, abe and abc."""
    instance = Instance(
        sites=tuple("abcde"),
        clients=("at b", "at c"),
        client_rtt=[[6.75, 0.5, 6.75, 6.75, 6.75], [6.0, 6.0, 0.5, 6.0, 3.0]],
        site_rtt=5.0 * (1.0 - np.eye(5)),
        counts=np.ones((2, 5)),
    )
    counts = np.zeros((2, 5))
    counts[:, 0] = 80.0, 20.0  # weak reads
    return instance, counts


def test_what_is_not_proven_is_not_called_proven() -> None:
    instance, counts = five_sites()
    asked = settings(
        problem=Problem(instance, replicas=3, voters=1, leader="a"),
        prices=MovePrices(add=30.0),
        rule=Hysteresis(8.0),
        method="kq",
        start=Configuration.of(0, [0], [0, 3, 4]),
    )
    _, advice = advise(asked, initial_state(asked), "1", counts)
    assert advice.document["proven"] is False
    assert "(not proven)" in " ".join(advice.reasons)
    assert advice.document["then_ms"] == pytest.approx(1.0)  # found by local search


def test_an_interrupted_search_is_no_recommendation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method answers Ctrl-C with the best so far; a watch must not go on from there."""
    counts, folder = demand(4), tmp_path / "in"
    for i, table in enumerate(counts):
        drop(folder, f"{i}.csv", csv_text(world(), [i], table[None]))
    true, calls = load_method("exhaustive"), []

    def call(problem: Problem, options: Options) -> Plan:
        calls.append(problem)
        plan = true.call(problem, options)
        return plan.replace(termination=Termination.INTERRUPTED) if len(calls) == 5 else plan

    asked = settings(2, method="exhaustive")
    with monkeypatch.context() as patch, Run(asked, folder, tmp_path / "s.db") as run:
        patch.setattr(
            "placement.overtime.watch.recommend.load_method", lambda _: replace(true, call=call)
        )
        with pytest.raises(KeyboardInterrupt):
            run.look()
    assert 0 < len(run.shown) < 4
    with Run(asked, folder, tmp_path / "s.db") as run:
        run.look()
    assert read_log(tmp_path / "s.db")[0] == reference(2, counts, method="exhaustive")


def test_extremes_of_the_rule() -> None:
    counts = demand(16)
    never = reference(3, counts, rule=Hysteresis(0.0))
    assert {d["action"] for d in never} == {"start", "keep"}
    forbidden = reference(3, counts, prices=MovePrices(*[math.inf] * 4))
    assert {d["action"] for d in forbidden} == {"start", "keep"}
    assert "forbidden" in " ".join(forbidden[5]["reasons"])
    # for ever and from the last interval alone: the best of the interval before, each time
    eager = reference(3, counts, rule=Hysteresis(math.inf), decay=Decay(math.inf))
    for document in eager[1:]:
        assert document["then_ms"] == min(c["mean_ms"] for c in document["candidates"])
    json.dumps(eager, allow_nan=False)


def test_a_start_that_breaks_the_rules_is_left(tmp_path: Path) -> None:
    start = Configuration.of(0, [0, 1, 2], [0, 1, 2, 3])  # two voters of three in country x
    found = reference(3, demand(2), start=start, rule=Hysteresis(0.0), prices=MovePrices(9.0))
    assert found[0]["action"] == "move"
    assert "breaks the constraints" in found[0]["reasons"][0]


def test_quiet_intervals(tmp_path: Path) -> None:
    counts = np.concatenate([np.zeros((2, 6, 5)), demand(3), np.zeros((2, 6, 5))])
    found = reference(2, counts)
    assert [d["action"] for d in found[:3]] == ["wait", "wait", "start"]
    assert found[0]["leader"] is None
    assert found[0]["reasons"] == ["Nothing was issued yet: there is nothing to go by."]
    assert found[-1]["operations"] > 0


def test_the_smallest_world(tmp_path: Path) -> None:
    alone = Instance(
        sites=("s",), clients=("k",), client_rtt=[[0.0]], site_rtt=[[0.0]], counts=np.ones((1, 5))
    )
    asked = settings(problem=Problem(alone, replicas=1, voters=1))
    (tmp_path / "in").mkdir()
    with Run(asked, tmp_path / "in", tmp_path / "s.db") as run:
        run.look()
        assert (run.shown, run.reports) == ([], [])
        text = "interval,client,operation,count\n"
        for i in range(3):
            drop(tmp_path / "in", f"{i}.csv", f"{text}{i},k,single_group,5\n")
        run.look()
        assert [document["action"] for document in run.shown] == ["start", "keep", "keep"]
        assert [document["then_ms"] for document in run.shown] == [0.0, 0.0, 0.0]


def test_the_prices_are_two_standard_deviations() -> None:
    instance = placement.load("world27")
    problem = Problem(instance, replicas=5, voters=3)
    best = placement.solve(
        problem.replace(instance=instance.replace(counts=instance.counts.sum(axis=0), intervals=()))
    ).configuration
    assert best is not None
    means = []
    for counts in instance.counts:
        alone = problem.replace(instance=instance.replace(counts=counts, intervals=()))
        means.append(score_of(alone, best) / counts.sum())
    prices, twice = default_prices(problem), 2 * float(np.std(means))
    assert np.allclose([prices.leader, prices.voter, prices.add], [twice, twice / 2, twice])
    assert prices.remove == 0


def test_one_interval_says_nothing_about_variability() -> None:
    instance = placement.load("world27")
    one = instance.replace(counts=instance.counts[:1], intervals=())
    assert default_prices(Problem(one, replicas=5, voters=3)) == MovePrices()


def test_the_command_watches_a_percentile(command, tmp_path):
    instance = world()
    folder, arriving = tmp_path / "world", tmp_path / "arriving"
    save_instance(instance, folder)
    counts = demand(10)
    for i, table in enumerate(counts[:3]):
        drop(arriving, f"{i}.csv", csv_text(instance, [i], table[np.newaxis]))
    arguments = (
        "watch", folder, arriving, "--state", tmp_path / "state", "--replicas", 4, "--voters", 3,
        "--percentile", 90, "--spread", 0.3, "--bin-width", 2, "--settle", 0,
    )  # fmt: skip
    outcome = command(*arguments, code=0)
    lines = [line for line in outcome.out.splitlines() if " leader " in line and "ms" in line]
    assert lines[0].endswith("ms minimise p90")
    log = command("watch", folder, arriving, "--state", tmp_path / "state", "--log", "--json",
                  "--replicas", 4, "--voters", 3)  # fmt: skip
    documents = [json.loads(line) for line in log.out.splitlines()]
    assert [one["objective"] for one in documents] == ["minimise p90"] * 3
    # Another percentile is another question, and another state file.
    other = list(arguments)
    other[other.index(90)] = 99
    refused = command(*other, code=1)
    assert "the state file has other settings" in refused.err


def test_a_present_configuration_beyond_the_horizon_is_left():
    """The value of the present configuration is infinite: numbers of the document stay JSON."""
    asked = asked_of("90")
    far = Distributions.parametric(asked.instance, variation=0.3, width=2, bins=40)
    asked = dataclasses.replace(
        asked, problem=asked.problem.replace(objective=percentile_question(90, far)), start=None
    )
    counts = np.zeros((6, 5))
    counts[0, 2] = 5.0  # everything is issued at one end
    worst = max(
        every_configuration(asked.problem),
        key=lambda one: objective_value(asked.question(counts), one),
    )
    assert math.isinf(objective_value(asked.question(counts), worst))
    state = dataclasses.replace(initial_state(asked), current=worst)
    state, advice = advise(asked, state, "0", counts)
    assert advice.action == "move"
    assert advice.document["now_ms"] is None
    json.dumps(advice.document, allow_nan=False)


def test_money_is_refused_still():
    with pytest.raises(InputError, match="supports the prices of moves, not the cost of replicas"):
        settings(problem=priced())


def priced() -> Problem:
    from placement import Prices

    instance = world().replace(prices=Prices([1.0] * 6))
    return Problem(instance, replicas=4, voters=3, cost_weight=1.0)

"""A watch of a percentile or of the worst loss, against every configuration by the evaluator.

Nothing proves the least sum of value and price there; in these cases the descent reaches it.
"""

import dataclasses
import json
import math

import numpy as np
import pytest

from placement import Contingency, Problem
from placement.errors import InputError
from placement.evaluation.breakdown import objective_values
from placement.io import save_instance
from placement.measures.question import percentile_question
from placement.overtime.moves import Hysteresis, MovePrices, changes
from placement.overtime.watch.recommend import advise, initial_state
from placement.plan import objective_value
from placement.tail import Distributions
from placement.testing import every_configuration
from tests.cli.command import runner
from tests.overtime.watch.worlds import csv_text, demand, drop, settings, world


def asked_of(kind, **changes_):
    """Settings with an objective, on the world of the other tests."""
    instance = world()
    if kind == "worst":
        goal = Contingency()
    else:
        goal = percentile_question(
            float(kind), Distributions.parametric(instance, variation=0.3, width=5, bins=200)
        )
    return settings(problem=Problem(instance, replicas=4, voters=3, objective=goal), **changes_)


@pytest.mark.parametrize("kind", ["90", "worst"])
def test_recommendations_hold_up_to_the_evaluator(kind):
    prices = MovePrices(leader=2.0, voter=1.0, add=2.0, remove=0.5)
    asked = asked_of(kind, prices=prices, rule=Hysteresis(6.0))
    counts, decay = demand(10), 1.3
    every = [
        one
        for one in every_configuration(asked.problem)
        if kind != "worst" or math.isfinite(objective_value(asked.problem, one))
    ]
    state, moved = initial_state(asked), 0
    for i, table in enumerate(counts[:5]):
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
        for each in advice.candidates:
            here = goal.in_ms(now, objective_value(now, each.configuration))
            assert each.value == pytest.approx(here, rel=1e-12)
        assert advice.document["objective"] == goal.describe()
        if before is None:
            assert advice.action == "start"
            assert advice.candidates[0].value == pytest.approx(min(value.values()))
            continue
        total = {one: 6.0 * value[one] + prices.of(changes(before, one)) for one in every}
        taken = advice.candidates[advice.chosen]
        assert 6.0 * taken.value + taken.price == pytest.approx(min(total.values()), rel=1e-9)
        moved += advice.action == "move"
    assert moved


def test_the_command_watches_a_percentile(capsys, tmp_path):
    instance = world()
    folder, arriving = tmp_path / "world", tmp_path / "arriving"
    save_instance(instance, folder)
    counts = demand(10)
    for i, table in enumerate(counts[:3]):
        drop(arriving, f"{i}.csv", csv_text(instance, [i], table[np.newaxis]))
    command = runner(capsys)
    arguments = (
        "watch", folder, arriving, "--state", tmp_path / "state", "--replicas", 4, "--voters", 3,
        "--percentile", 90, "--spread", 0.3, "--bin-width", 2, "--settle", 0,
    )  # fmt: skip
    outcome = command(*arguments)
    assert outcome.code == 0, outcome.err
    lines = [line for line in outcome.out.splitlines() if " leader " in line and "ms" in line]
    assert lines[0].endswith("ms minimise p90")
    log = command("watch", folder, arriving, "--state", tmp_path / "state", "--log", "--json",
                  "--replicas", 4, "--voters", 3)  # fmt: skip
    documents = [json.loads(line) for line in log.out.splitlines()]
    assert [one["objective"] for one in documents] == ["minimise p90"] * 3
    # Another percentile is another question, and another state file.
    other = list(arguments)
    other[other.index(90)] = 99
    refused = command(*other)
    assert refused.code == 1
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

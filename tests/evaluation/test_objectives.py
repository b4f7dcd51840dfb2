"""Values of many configurations are those of each, bit for bit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import placement
from placement import Configuration, Problem
from placement.plan import objective_value, objective_values
from tests.strategies import ALL, problems


@given(problems(kinds=ALL, max_sites=6), st.data())
def test_many_values_are_those_of_each(problem: Problem, data: st.DataObject) -> None:
    """Of several sizes and numbers of voters, more or fewer than the problem asks for."""
    sites = range(len(problem.instance.sites))
    chosen = []
    for _ in range(data.draw(st.integers(0, 6))):
        replicas = data.draw(st.lists(st.sampled_from(sites), min_size=1, unique=True))
        voters = replicas[: data.draw(st.integers(1, len(replicas)))]
        chosen.append(Configuration.of(data.draw(st.sampled_from(voters)), voters, replicas))
    together = objective_values(problem, chosen)
    assert together.tolist() == [objective_value(problem, one) for one in chosen]


def test_other_objectives_value_each() -> None:
    """The effect of the loss of a site is no sum over clients."""
    problem = Problem(
        placement.load("world27", mix="oltp"),
        replicas=3,
        voters=3,
        objective=placement.Contingency(),
    )
    chosen = [Configuration.of(0, (0, 1, 2), (0, 1, 2)), Configuration.of(4, (4, 9, 7), (4, 7, 9))]
    values = objective_values(problem, chosen)
    assert values.tolist() == [objective_value(problem, one) for one in chosen]
    plain = Problem(problem.instance, replicas=3, voters=3)
    mean = objective_value(plain, chosen[0]) / plain.demand.operations
    assert values[0] > mean  # the mean latency would be another value

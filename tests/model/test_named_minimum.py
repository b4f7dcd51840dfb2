"""A least number of replicas or voters in a named domain: the rule, its errors, its answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from placement import Diversity, Problem, solve
from placement.errors import InputError
from placement.io.plan_file import load_plan, save_plan
from placement.testing.small_worlds import random_instance


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"domain": "EU"}, "least"),
        ({"least": 1}, "domain"),
        ({"domain": "EU", "least": 0}, "least"),
        ({"domain": "EU", "least": 1, "cap": 2}, "cap"),
        ({"domain": "EU", "least": 1, "min_domains": 2}, "min_domains"),
        ({"domain": "", "least": 1}, "domain"),
    ],
)
def test_refuses_what_is_no_rule(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as error:
        Diversity("continent", **given)
    assert field in str(error.value)


def test_names_the_domains_that_there_are() -> None:
    rule = Diversity("continent", "replicas", domain="Atlantis", least=1)
    with pytest.raises(InputError, match=r"Atlantis.*continent-0, continent-1"):
        solve(Problem(random_instance(0), replicas=3, voters=3, diversity=rule), "exhaustive")


def test_a_plan_file_keeps_the_rule(tmp_path: Path) -> None:
    rule = Diversity("continent", "replicas", domain="continent-1", least=1)
    plan = solve(Problem(random_instance(0), replicas=3, voters=1, diversity=rule), "exhaustive")
    save_plan(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json").problem.diversity == (rule,)


def test_levels_joined_by_a_plus_are_a_level():
    domains = {"provider": (*"aabba", "c"), "continent": (*"xxxyyy",)}
    joint = ("a+x", "a+x", "b+x", "b+y", "a+y", "c+y")
    instance = random_instance(0, sites=6).replace(domains={**domains, "both": joint})
    assert instance.labels("provider+continent") == joint
    one, two = (
        solve(
            Problem(instance, replicas=4, voters=3, diversity=[Diversity(name, "replicas", cap=1)])
        )
        for name in ("provider+continent", "both")
    )
    assert one.configuration == two.configuration
    assert len({joint[instance.sites.index(name)] for name in one.replicas}) == 4
    with pytest.raises(InputError, match="did you mean 'continent'"):
        instance.labels("provider+continnent")

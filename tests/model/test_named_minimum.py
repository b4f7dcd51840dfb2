"""A least number of replicas or voters in a named domain: the rule, its errors, its answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placement import Diversity, Problem, solve
from placement.errors import InputError
from placement.io.plan_file import load_plan, save_plan
from placement.testing.small_worlds import optimum, random_instance
from tests.effort import seeds

METHODS = ("exhaustive", "milp", "cp-sat", "exact")


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


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_every_exact_method_finds_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = random_instance(seed, ties=bool(seed % 2))
    rules = [
        Diversity(
            str(rng.choice(("region", "continent"))),
            "voters" if rng.random() < 0.5 else "replicas",
            domain=None,
            min_domains=2,
        ),
        Diversity("region", "replicas", domain=f"region-{rng.integers(3)}", least=1),
        Diversity(
            "continent", domain=f"continent-{rng.integers(2)}", least=int(rng.integers(1, 3))
        ),
    ]
    problem = Problem(instance, replicas=4, voters=3, diversity=rules[: 1 + int(rng.integers(3))])
    best = optimum(problem)
    for method in METHODS:
        plan = solve(problem, method)
        assert plan.objective == pytest.approx(best, rel=1e-9), method

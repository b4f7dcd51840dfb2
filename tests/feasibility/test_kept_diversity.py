"""The diversity of a present deployment as rules: by hand, and what survives, by enumeration."""

import pytest

import placement
from placement import Diversity, Problem
from placement.errors import InputError
from placement.feasibility.feasible_plans import violations
from placement.feasibility.kept_diversity import kept_diversity
from placement.io import load_plan, save_instance, save_plan
from placement.testing import every_configuration, random_instance
from tests.cli.command import runner


def world(last="w"):
    domains = {
        "country": ("x", "x", "y", "y", "z", last),
        "continent": ("1", "1", "1", "1", "2", "2"),
    }
    return random_instance(4, sites=6, clients=4).replace(domains=domains)


def test_the_rules_by_hand():
    instance = world(last=None)
    sites = instance.sites
    rules = kept_diversity(instance, [sites[0], sites[1], sites[2]], [*sites[:3], sites[5]])
    assert set(rules) == {
        Diversity("country", "voters", cap=2),
        Diversity("country", "replicas", min_domains=3),
        Diversity("continent", "replicas", min_domains=2),
    }
    assert kept_diversity(instance, sites[:3], sites[:3], ["continent"]) == ()
    # A site without a domain fails alone.
    assert Diversity("country", "voters", cap=1) in kept_diversity(
        instance, [sites[0], sites[2], sites[5]], sites
    )
    with pytest.raises(InputError, match="unknown failure-domain level"):
        kept_diversity(instance, sites[:3], sites[:3], ["county"])
    with pytest.raises(InputError, match="unknown site"):
        kept_diversity(instance, ["nowhere"], sites)


def test_a_loss_that_leaves_a_quorum_today_leaves_one_afterwards():
    instance = world()
    problem = Problem(instance, replicas=4, voters=3)

    def survived(configuration):
        stops = set()
        for level in ("country", "continent"):
            labels = instance.labels(level)
            for label in {label for label in labels if label is not None}:
                left = [v for v in configuration.voters if labels[v] != label]
                if len(left) < 2:
                    stops.add(level)
        return {"country", "continent"} - stops

    for today in list(every_configuration(problem))[::37]:
        names = [[instance.sites[s] for s in part] for part in (today.voters, today.replicas)]
        kept = problem.replace(diversity=kept_diversity(instance, *names))
        assert not violations(kept, today)
        for other in list(every_configuration(kept))[::11]:
            assert survived(today) <= survived(other)
            for level in ("country", "continent"):
                labels = instance.labels(level)

                def domains(one, labels=labels):
                    return len({labels[s] or s for s in one.replicas})

                assert domains(other) >= domains(today)


def test_the_option_keeps_the_diversity_of_a_plan(capsys, tmp_path):
    instance = world()
    save_instance(instance, tmp_path / "world")
    today = placement.solve(Problem(instance, replicas=4, voters=3, survive="country"))
    save_plan(today, tmp_path / "today.json")
    out = tmp_path / "new.json"
    command = runner(capsys)
    outcome = command(
        "solve", tmp_path / "world", "--replicas", 5, "--voters", 3, "--keep-diversity",
        tmp_path / "today.json", "-o", out,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert load_plan(out).problem.diversity == kept_diversity(
        instance, today.voters, today.replicas
    )
    best = min(
        placement.plan.objective_value(load_plan(out).problem, one)
        for one in every_configuration(load_plan(out).problem)
    )
    assert load_plan(out).objective == pytest.approx(best)
    other = command(
        "solve", "world27", "--replicas", 5, "--voters", 3, "--keep-diversity",
        tmp_path / "today.json",
    )  # fmt: skip
    assert other.code == 1
    assert "unknown site" in other.err

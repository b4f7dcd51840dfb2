"""Plans for a percentile as files: what comes back, what is refused, what is shown and checked."""

import dataclasses
import json

import numpy as np
import pytest

import placement
from placement.errors import InputError, UnsupportedError
from placement.io import load_plan, save_instance, save_plan
from placement.io.leader_plan_document import Reference
from placement.measures.question import MeasureQuestion, percentile_question
from placement.report import report_html
from placement.tail import Distributions
from placement.testing import random_instance
from tests.cli.command import runner
from tests.tail.worlds import drawn


@pytest.fixture
def command(capsys):
    return runner(capsys)


def question(kind, percent=95):
    instance = random_instance(4, sites=5, clients=3)
    if kind == "family":
        given = Distributions.parametric(instance, variation=0.2, bins=700)
    elif kind == "percentiles":
        middle = instance.client_rtt[..., np.newaxis], instance.site_rtt[..., np.newaxis]
        factors = np.array([0.9, 1.0, 1.3, 1.9])
        given = Distributions.from_percentiles(
            instance, (10, 50, 90, 99), middle[0] * factors, middle[1] * factors, bins=1500
        )
    else:
        given = drawn(instance, 4)
    return placement.Problem(
        instance,
        replicas=list(instance.sites[:4]),
        voters=3,
        objective=percentile_question(percent, given),
    )


@pytest.mark.parametrize("kind", ["family", "percentiles", "histograms"])
def test_comes_back_to_the_last_bit(kind, tmp_path):
    plan = placement.solve(question(kind), "exact")
    path = save_plan(plan, tmp_path / "p.json")
    written = json.loads(path.read_text())
    assert written["problem"]["objective"]["distributions"][0]["form"] == kind
    assert written["objective"] == plan.objective
    assert {row["percent"] for row in written["tail"]["percentiles"]} >= {50, 95, 99}
    back = load_plan(path)
    assert (back.objective, back.status, back.notes) == (plan.objective, plan.status, plan.notes)
    (old,), (new,) = (one.problem.objective.distributions for one in (plan, back))
    for table in ("client_site", "site_site"):
        assert np.array_equal(getattr(old, table), getattr(new, table))
    assert (old.width, old.bins) == (new.width, new.bins)
    again = save_plan(back, tmp_path / "q.json")
    assert again.read_bytes() == path.read_bytes()


def test_a_family_of_other_rtts_is_written_bin_by_bin(tmp_path):
    """Distributions belong to names; the RTTs behind them may have changed since."""
    problem = question("family")
    world = problem.instance
    moved = problem.replace(instance=world.replace(client_rtt=world.client_rtt + 5))
    plan = placement.solve(moved, "exact")
    path = save_plan(plan, tmp_path / "p.json")
    form = json.loads(path.read_text())["problem"]["objective"]["distributions"][0]["form"]
    assert form == "histograms"
    assert load_plan(path).objective == plan.objective


def test_what_was_changed_since_is_not_believed(tmp_path):
    path = save_plan(placement.solve(question("family"), "exact"), tmp_path / "p.json")
    document = json.loads(path.read_text())

    def changed(change):
        other = json.loads(path.read_text())
        change(other, other["problem"]["objective"])
        (tmp_path / "q.json").write_text(json.dumps(other))
        return tmp_path / "q.json"

    def set_value(other, _):
        other["objective"] = document["objective"] - 1

    def spread(_, objective):
        objective["distributions"][0]["variation"] = 0.4

    for change in (set_value, spread):
        with pytest.raises(InputError, match="objective: not the value of this configuration"):
            load_plan(changed(change))
    for key, value, message in (
        ("form", "guess", "unknown form"),
        ("family", "cauchy", "unknown family"),
        ("bins", 0, "out of range"),
        ("width", -1, "bin width"),
    ):

        def put(_, objective, key=key, value=value):
            objective["distributions"][0][key] = value

        with pytest.raises(InputError, match=message):
            load_plan(changed(put))
    with pytest.raises(InputError, match="p0"):
        load_plan(changed(lambda _, objective: objective.update(minimise="p0")))


@pytest.mark.parametrize(
    "pair",
    [None, [0], [0, [2.0]], [58, [0.1, 0.1, 0.1]], [True, [1.0]], [0, [-0.5, 1.5]], ["a", []]],
)
def test_broken_histograms_are_refused(pair, tmp_path):
    path = save_plan(placement.solve(question("histograms"), "exact"), tmp_path / "p.json")
    document = json.loads(path.read_text())
    document["problem"]["objective"]["distributions"][0]["client_site"][1][2] = pair
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"not a histogram|no distribution at"):
        load_plan(path)


def test_a_subclass_may_mean_something_else(tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Other(MeasureQuestion):
        pass

    problem = question("family")
    other = Other(problem.objective.distributions)
    plan = placement.solve(problem.replace(objective=other), "exact")
    with pytest.raises(UnsupportedError, match="cannot hold"):
        save_plan(plan, tmp_path / "p.json")


def test_show_check_and_report(command, tmp_path):
    problem = question("family", percent=99)
    plan = placement.solve(problem, "exact")
    save_instance(problem.instance, tmp_path / "world")
    path = save_plan(plan, tmp_path / "p.json", reference=Reference(str(tmp_path / "world")))
    shown = command("show", path)
    assert shown.code == 0
    assert f"{plan.objective:g} ms" in shown.out
    checked = command("check", path)
    assert checked.code == 0
    document = command("check", path, "--json").document
    assert document["proved"] is True
    page = report_html(path)
    assert "Latency of all operations" in page
    assert "p99" in page
    assert command("report", path, "-o", tmp_path / "p.html").code == 0


def test_a_plan_beyond_the_horizon_is_kept_as_what_it_is(tmp_path):
    instance = random_instance(2)
    short = Distributions.parametric(instance, variation=0.5, bins=40)
    problem = placement.Problem(
        instance,
        replicas=list(instance.sites[:3]),
        voters=3,
        objective=percentile_question(99, short),
    )
    sites = instance.sites[:3]
    plan = placement.evaluate(problem, leader=sites[0], voters=sites, replicas=sites)
    back = load_plan(save_plan(plan, tmp_path / "p.json"))
    assert back.status == "violating"
    assert "beyond the horizon" in str(back)
    assert "beyond the horizon" in report_html(tmp_path / "p.json")


def test_a_fine_grid_is_shown_as_fine():
    instance = random_instance(4, sites=4, clients=3, scale=0.01)
    fine = Distributions.parametric(instance, variation=0.1, width=0.002, bins=3000)
    problem = placement.Problem(instance, replicas=list(instance.sites), voters=3)
    plan = placement.solve(problem.replace(objective=percentile_question(99, fine)), "exact")
    assert f"p99          {plan.objective:.3f} ms" in str(plan)

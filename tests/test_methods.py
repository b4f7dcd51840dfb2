"""The registry, its entry points and `run`: what reaches a method, and what the user."""

from __future__ import annotations

import dataclasses
import json
import pickle
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import placement
from placement import Contingency, Termination
from placement.errors import InputError, SolverError, UnsupportedError
from placement.feasibility.feasible_plans import repaired, violations
from placement.methods.options import Options, Setting
from placement.methods.registry import Method, load_method, prove, run
from placement.model.changed_instance import at_sites
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.support.entry_points import EntryPoint, Group, entry_points
from placement.support.status import Status
from placement.testing import ConformanceError, check_method, random_instance, worlds
from tests.cli.command import output_of


@pytest.fixture(scope="module")
def problem():
    return placement.Problem(random_instance(3), replicas=4, voters=3)


def liar(change):
    honest = load_method("exhaustive")
    return dataclasses.replace(honest, call=lambda p, o: change(p, honest.call(p, o)))


def test_unknown_method_suggests_the_closest():
    with pytest.raises(InputError, match="did you mean 'exhaustive'"):
        load_method("exhaustiv")


def test_tier_methods_refuse_with_the_way_out(problem):
    with pytest.raises(UnsupportedError, match="give replicas by name"):
        placement.solve(problem, method="tier2")
    with pytest.raises(UnsupportedError, match="give replicas and voters by name"):
        placement.solve(problem, method="leader")


def test_settings_are_checked(problem):
    with pytest.raises(InputError, match="limit: bad setting: got 'many', expected int"):
        placement.solve(problem, method="exhaustive", settings={"limit": "many"})
    with pytest.raises(InputError, match="no such setting: got 'limitt', expected one of"):
        placement.solve(problem, method="exhaustive", settings={"limitt": 5})
    assert Setting(0.5, "share", minimum=0).check("share", "0.25") == 0.25
    assert Setting(True, "flag").check("flag", "false") is False
    with pytest.raises(InputError, match="one of a, b"):
        Setting("a", "kind", choices=("a", "b")).check("kind", "c")


@pytest.mark.parametrize(
    ("field", "value"),
    [("time_limit", -1), ("gap_limit", -0.1), ("seed", -1), ("threads", 0), ("seed", 1.5)],
)
def test_options_are_checked(field, value):
    with pytest.raises(InputError, match=field):
        Options(**{field: value})


def test_a_plan_that_breaks_the_problem_never_reaches_the_user(problem):
    def lose_a_voter(p, plan):
        c = plan.configuration
        return plan.replace(configuration=dataclasses.replace(c, voters=c.voters[:2]))

    with pytest.raises(SolverError, match="2 voters instead of 3"):
        run(liar(lose_a_voter), problem, Options())


def test_a_bound_above_the_score_is_an_error(problem):
    best = placement.solve(problem, method="exhaustive")
    with pytest.raises(SolverError, match="claims the bound"):
        Plan.of(problem, best.configuration, method="liar", bound=best.score * 1.01)


STARTING = ("exact", "exhaustive", "local-search", "cp-sat", "milp")


@pytest.mark.parametrize("method", STARTING)
def test_the_plan_of_a_similar_problem_is_repaired(problem, method):
    best = placement.solve(problem, method="exhaustive")
    other = placement.solve(problem.replace(replicas=5), method="exhaustive")
    plan = placement.solve(problem, method=method, start=other)
    assert plan.objective == pytest.approx(best.objective, rel=1e-9)
    (note,) = [note for note in plan.notes if "the start" in note]
    assert "5 replicas instead of 4" in note
    assert "it was repaired" in note


def test_a_repaired_start_keeps_what_the_constraints_allow(problem):
    other = placement.solve(problem.replace(replicas=5), method="exhaustive").configuration
    found = repaired(problem, other)
    assert not violations(problem, found)
    assert found.leader == other.leader
    assert set(found.replicas) <= set(other.replicas)
    lost = problem.instance.sites[other.leader]
    elsewhere = problem.replace(forbidden=[lost])
    found = repaired(elsewhere, other)
    assert not violations(elsewhere, found)
    assert set(found.replicas) == set(other.replicas) - {other.leader}
    assert found.leader == other.voters[1]


def test_a_start_is_ignored_with_a_note_where_no_repair_is_found(problem):
    far = problem.replace(objective=Contingency("site", "bounded", limit=1e-6))
    assert repaired(far, Configuration.of(0, [0, 1, 2], [0, 1, 2, 3])) is None
    heard = []
    method = Method(
        "none",
        lambda p, options: heard.append(options.start) or Plan.of(p, None, method="none"),
        "Finds nothing.",
        exact=False,
        objectives=("measures",),
    )
    plan = run(method, far, Options(start=Configuration.of(0, [0], [0])))
    assert heard == [None]
    assert "it was ignored" in plan.notes[0]


def test_the_sites_of_a_start_are_matched_by_name(problem):
    instance = problem.instance
    order = np.arange(len(instance.sites))[::-1]
    turned = at_sites(instance, order)
    before = placement.solve(problem, method="exhaustive")
    method = dataclasses.replace(
        load_method("exhaustive"), call=lambda p, options: Plan.of(p, options.start, method="x")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("placement.methods.registry.load_method", lambda name: method)
        plan = placement.solve(problem.replace(instance=turned), start=before)
    assert plan.leader == before.leader
    assert set(plan.voters) == set(before.voters)
    assert set(plan.replicas) == set(before.replicas)
    assert plan.score == pytest.approx(before.score, rel=1e-12)


@pytest.mark.parametrize("start", ["x", 3, (0, 1), Configuration(99, (99,), (99,))])
def test_a_start_that_is_none_is_refused(problem, start):
    with pytest.raises(InputError, match="start: "):
        placement.solve(problem, method="exhaustive", start=start)


def test_optimal_is_said_only_with_a_bound(problem):
    best = placement.solve(problem, method="exhaustive")
    assert best.status is Status.OPTIMAL
    assert Plan.of(problem, best.configuration, method="m").status is Status.FEASIBLE
    almost = Plan.of(problem, best.configuration, method="m", bound=best.score * (1 - 1e-8))
    assert almost.status is Status.FEASIBLE
    assert almost.gap == pytest.approx(1e-8, rel=1e-6)


@pytest.mark.parametrize(
    ("defect", "message"),
    [
        (lambda p, plan: Plan.of(p, plan.configuration, method="x"), "exact, but says feasible"),
        (
            lambda p, plan: plan.replace(bound=plan.bound * 1.001) if plan.found else plan,
            "above the optimum",
        ),
        (
            lambda p, plan: Plan.infeasible(p, method="x", reasons=("no",)),
            "says infeasible, but a plan exists",
        ),
        (lambda p, plan: plan if plan.found else plan.replace(reasons=()), "without a reason"),
    ],
)
def test_the_conformance_suite_finds_liars(defect, message):
    with pytest.raises(ConformanceError, match=message):
        check_method(liar(defect))


def test_the_conformance_suite_finds_a_second_rate_optimum():
    """A method that says optimal at the second best configuration is caught."""
    from placement.testing import every_configuration

    def second_best(p, o):
        from placement.plan import objective_value

        ranked = sorted(every_configuration(p), key=lambda c: objective_value(p, c))
        if not ranked:
            return Plan.infeasible(p, method="x", reasons=("none at all",))
        chosen = ranked[min(1, len(ranked) - 1)]
        return Plan.of(p, chosen, method="x", bound=objective_value(p, chosen))

    with pytest.raises(ConformanceError, match=r"above the optimum|says optimal"):
        check_method(Method(name="x", call=second_best, summary="second best", exact=True))


def test_worlds_are_of_every_kind():
    kinds = [world.problem for world in worlds(0)]
    assert any(len(p.instance.sites) == 1 for p in kinds)
    assert any(p.demand.scenarios > 1 for p in kinds)
    assert any(not p.rules.nested_voter_caps for p in kinds)
    assert any(not p.rules.nested_replica_caps for p in kinds)
    assert any(p.rules.budget is not None for p in kinds)
    assert any(p.rules.replicas_min < p.rules.replicas_max for p in kinds)


def test_a_certificate_that_is_a_function_is_asked_once_and_only_when_read(problem):
    asked = []

    def certificate():
        asked.append(1)
        return {"bound": 1.5}

    plan = Plan.of(problem, None, method="made up", certificate=certificate)
    again = plan.replace(seconds=2.0)
    assert not asked
    assert again.certificate == {"bound": 1.5}
    assert again.certificate is again.certificate
    assert len(asked) == 1
    assert pickle.loads(pickle.dumps(plan)).certificate == {"bound": 1.5}
    assert plan.replace(certificate=None).certificate is None
    assert Plan.of(problem, None, method="made up").certificate is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.certificate = {}


def test_numbers_of_a_plan_stay_with_its_configuration_and_go_with_it(problem):
    best = placement.solve(problem)
    assert best.client_rows is best.replace(seconds=9.0).client_rows
    feasible = placement.testing.every_configuration(problem)
    worse = next(c for c in feasible if c.replicas != best.configuration.replicas)
    other = best.replace(configuration=worse, bound=0.0)
    alone = placement.plan.evaluate(problem, worse)
    assert other.score == other.objective == alone.score != best.score
    assert other.client_rows == alone.client_rows != best.client_rows
    easier = problem.replace(instance=problem.instance.replace(counts=2 * problem.instance.counts))
    assert best.replace(problem=easier).score == pytest.approx(2 * best.score, rel=1e-12)


def test_problems_on_an_instance_share_its_demand_and_no_other(problem):
    instance = problem.instance
    assert placement.Problem(instance, replicas=2, voters=1).demand is problem.demand
    assert placement.Problem(instance, replicas=2, voters=1, decay=2).demand is not problem.demand
    twin = pickle.loads(pickle.dumps(instance))
    assert placement.Problem(twin, replicas=2, voters=1).demand is not problem.demand
    doubled = placement.Problem(
        instance.replace(counts=2 * instance.counts), replicas=2, voters=1
    ).demand
    assert doubled.operations == 2 * problem.demand.operations


METHOD = '''
"""A toy method of a third party: the first feasible configuration."""

from placement.feasibility.feasible_plans import find_feasible
from placement.methods.options import Setting
from placement.methods.registry import Method
from placement.plan import Plan


def solve(problem, options):
    found = find_feasible(problem)
    if found is None:
        return Plan.infeasible(problem, method="toy", reasons=("the complete search found none",))
    return Plan.of(problem, found, method="toy", notes=(f"colour {options.settings['colour']}",))


METHOD = Method(
    name="toy",
    call=solve,
    summary="the first feasible configuration",
    exact=False,
    settings={"colour": Setting("blue", "of no consequence")},
)
'''

NAME, VERSION = "toy_placement_method", "0.1"


def wheel(folder):
    """Write the distribution as a wheel: what a build backend would make of its sources."""
    info = f"{NAME}-{VERSION}.dist-info"
    files = {
        f"{NAME}.py": METHOD,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[placement.methods]\ntoy = {NAME}:METHOD\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    path = folder / f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


SCRIPT = """
import json, sys
import placement
from placement.testing import check_method, random_instance

problem = placement.Problem(random_instance(1), replicas=3, voters=3)
plan = placement.solve(problem, method="toy", settings={"colour": "red"})
check_method("toy")
json.dump(
    {
        "listed": "toy" in placement.available(),
        "status": str(plan.status),
        "notes": list(plan.notes),
        "no worse": plan.score >= placement.solve(problem, method="exhaustive").score,
    },
    sys.stdout,
)
"""


def test_a_separate_distribution_registers_a_method(tmp_path):
    target = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
         "--disable-pip-version-check", "--target", str(target), str(wheel(tmp_path))],
        check=True,
        capture_output=True,
        timeout=300,
    )  # fmt: skip
    script = f"import sys; sys.path.insert(0, {str(target)!r})\n" + SCRIPT
    answer = json.loads(output_of(script))
    assert answer == {
        "listed": True,
        "status": "feasible",
        "notes": ["colour red"],
        "no worse": True,
    }


TEXT = """# a comment
[other.group]
toy = other:NAME

[toy.methods]
toy = toy_module:METHOD
toy.percentile = toy_module.part : solve.inner [extra]
; another comment
plain = toy_module
"""


def distribution(folder: Path, name: str, text: str) -> None:
    info = folder / name
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "group", ["placement.methods", "placement.verbs", "placement.objectives", "console_scripts"]
)
def test_agrees_with_the_standard_library(group):
    expected = {entry.name: entry.value for entry in metadata.entry_points(group=group)}
    found = {name: e.value for name, e in entry_points(group).items()}
    assert found == expected | {name: v for name, v in found.items() if "heuristics.rules." in v}


def test_sections_comments_and_extras(tmp_path, monkeypatch):
    distribution(tmp_path, "toy-1.0.dist-info", TEXT)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "missing")])
    # Another test may have imported the backport. Its finder reads "; another comment" as an entry.
    finders = [one for one in sys.meta_path if type(one).__module__ != "importlib_metadata"]
    monkeypatch.setattr(sys, "meta_path", finders)
    assert {name: entry.value for name, entry in entry_points("toy.methods").items()} == {
        "toy": "toy_module:METHOD",
        "toy.percentile": "toy_module.part : solve.inner [extra]",
        "plain": "toy_module",
    }
    assert entry_points("toy") == {}


def test_the_first_of_two_installations_counts(tmp_path, monkeypatch):
    distribution(tmp_path / "a", "Some.Thing-1.0.dist-info", "[g]\nx = first\n")
    distribution(tmp_path / "b", "some_thing-2.0.egg-info", "[g]\nx = second\n")
    distribution(tmp_path / "b", "other-2.0.dist-info", "[g]\ny = third\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "a"), str(tmp_path / "b")])
    found = {name: entry.value for name, entry in entry_points("g").items()}
    assert found == {"x": "first", "y": "third"}


def test_a_zip_file_is_left_to_the_standard_library(tmp_path, monkeypatch):
    path = tmp_path / "toy.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\n")
        archive.writestr("toy-1.0.dist-info/entry_points.txt", "[g]\nx = first:X\n")
    monkeypatch.setattr(sys, "path", [str(path)])
    assert {name: entry.value for name, entry in entry_points("g").items()} == {"x": "first:X"}


def test_load():
    assert EntryPoint("a", "os.path").load() is sys.modules["os.path"]
    assert EntryPoint("a", "pathlib : Path.home [extra]").load() == Path.home
    with pytest.raises(ImportError):
        EntryPoint("a", "no_such_module_anywhere:X").load()
    with pytest.raises(AttributeError):
        EntryPoint("a", "pathlib:NoSuchName").load()


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    """A group of whole numbers: a good one, one of another kind, two that cannot be imported."""
    distribution(
        tmp_path,
        "toy-1.0.dist-info",
        "[g]\nmost = sys:maxsize\nmost.part = sys:maxsize\nname = sys:platform\n"
        "lost = no_such_module_anywhere:X\nempty = sys:no_such_name\n",
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return Group("g", "number", lambda found: found if isinstance(found, int) else None, "an int")


def test_a_group_loads_an_object_by_name(numbers):
    assert numbers.load("most") == numbers.load("most.part") == sys.maxsize
    assert numbers.names() == ("empty", "lost", "most", "name")


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("mosst", InputError, ("unknown number", "empty, lost, most, name", "did you mean 'most'")),
        ("name", UnsupportedError, ("number 'name' (sys:platform) is a str, not an int",)),
        ("lost", UnsupportedError, ("number 'lost'", "cannot be imported", "no_such_module")),
        ("empty", UnsupportedError, ("number 'empty'", "cannot be imported", "no_such_name")),
    ],
)
def test_a_group_says_why_an_object_cannot_be_loaded(numbers, name, kind, words):
    with pytest.raises(kind) as caught:
        numbers.load(name)
    assert all(word in str(caught.value) for word in words), caught.value


def test_ctrl_c_in_a_proof_is_no_failure_of_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = placement.Problem(random_instance(0), replicas=3, voters=3)
    stopped = Plan.of(problem, None, method="exact", termination=Termination.INTERRUPTED)
    monkeypatch.setattr("placement.methods.registry.run", lambda *_: stopped)
    with pytest.raises(KeyboardInterrupt):
        prove(problem)

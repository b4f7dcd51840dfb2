"""Rules and tables of a question: replicas, named minimums, voters, pandas by name."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from placement import Configuration, Diversity, Instance, Prices, Problem, solve
from placement.errors import InputError, UnsupportedError
from placement.feasibility.feasible_plans import violations
from placement.io.plan_file import load_plan, save_plan
from placement.io.problem_document import problem_document
from placement.model.constraints import GroupRule, SiteRule
from placement.quorumstore import QuorumProblem
from placement.testing import random_instance
from tests import reference
from tests.cli.command import Run
from tests.expected import refused
from tests.strategies import problems


def fresh(problem, replicas):
    given = {field.name: getattr(problem, field.name) for field in dataclasses.fields(problem)}
    return Problem(**{**given, "replicas": replicas})


def outcome(make):
    """Rules as plain values, or the message of the refusal."""
    try:
        rules = make().rules
    except InputError as error:
        return str(error)
    values = {field.name: getattr(rules, field.name) for field in dataclasses.fields(rules)}
    groups = [(g.role, g.level, g.labels.tolist(), g.names, g.cap, g.why) for g in rules.groups]
    masks = {k: v.tolist() for k, v in values.items() if isinstance(v, np.ndarray)}
    nested = (rules.nested_voter_caps, rules.nested_replica_caps)
    return {**values, **masks, "groups": groups, "nested": nested}


numbers = st.one_of(
    st.integers(0, 9), st.tuples(st.integers(1, 6), st.integers(1, 9)), st.just(range(2, 5))
)


@given(problems(max_sites=7), st.lists(numbers, min_size=1, max_size=3))
def test_replacing_the_number_is_asking_anew(problem, steps):
    for replicas in steps:
        assert outcome(lambda n=replicas: problem.replace(replicas=n)) == outcome(
            lambda n=replicas: fresh(problem, n)
        )
        try:  # and on from there
            problem = problem.replace(replicas=replicas)
        except InputError:
            continue


def test_between_names_and_numbers():
    instance = random_instance(1, sites=6)
    by_name = Problem(instance, replicas=instance.sites[:4], voters=3)
    by_number = by_name.replace(replicas=5)
    assert by_number.rules.may_hold.all()
    assert by_number.replace(replicas=list(instance.sites[1:4])).rules.replicas_max == 3
    for wrong in (True, 2.5, "s0"):
        with pytest.raises(InputError):
            by_number.replace(replicas=wrong)
    assert by_number.replace(replicas=4.0).rules.replicas_max == 4


def test_what_pins_fill_needs_no_label():
    """A site without a label binds no rule where no replica may be."""
    instance = random_instance(2, sites=4).replace(domains={"zone": ("x", "y", "z", None)})
    base = {"voters": 3, "pinned": instance.sites[:3], "diversity": Diversity("zone", cap=1)}
    full = Problem(instance, replicas=3, **base)
    with pytest.raises(InputError, match="has no zone"):
        full.replace(replicas=4)
    with pytest.raises(InputError, match="has no zone"):
        Problem(instance, replicas=4, **base)
    assert full.replace(replicas=(3, 3)).rules.groups


def test_masks_are_shared_and_cannot_be_written():
    problem = Problem(random_instance(3, sites=5), replicas=3, voters=2)
    other = problem.replace(replicas=4)
    assert other.rules.may_hold is problem.rules.may_hold
    with pytest.raises(ValueError, match="read-only"):
        other.rules.may_hold[0] = False


def test_a_problem_with_more_fields_keeps_them():
    @dataclasses.dataclass(frozen=True, eq=False)
    class Labelled(Problem):
        label: str = ""

    problem = Labelled(random_instance(4, sites=5), replicas=3, voters=2, label="mine")
    other = problem.replace(replicas=4)
    assert isinstance(other, Labelled)
    assert (other.label, other.rules.replicas_max) == ("mine", 4)
    assert other.__getstate__()["label"] == "mine"


def test_a_plan_has_the_attributes_it_has():
    problem = Problem(random_instance(5, sites=4), replicas=3, voters=2)
    plan = placement.solve(problem)
    changed = plan.replace(seconds=2.0)
    assert (changed.seconds, changed.score, changed.replicas) == (2.0, plan.score, plan.replicas)
    assert changed.certificate == plan.certificate
    bigger = placement.solve(problem.replace(replicas=4))
    moved = plan.replace(problem=bigger.problem, configuration=bigger.configuration)
    assert moved.objective == bigger.objective
    with pytest.raises(TypeError, match="no second"):
        plan.replace(second=2.0)


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
    with refused(field):
        Diversity("continent", **given)


def test_names_the_domains_that_there_are() -> None:
    rule = Diversity("continent", "replicas", domain="Atlantis", least=1)
    with pytest.raises(InputError, match=r"Atlantis.*continent-0, continent-1"):
        solve(Problem(random_instance(0), replicas=3, voters=3, diversity=rule), "exhaustive")


def test_a_plan_file_keeps_the_rule(tmp_path: Path) -> None:
    rule = Diversity("continent", "replicas", domain="continent-1", least=1)
    plan = solve(Problem(random_instance(0), replicas=3, voters=1, diversity=rule), "exhaustive")
    save_plan(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json").problem.diversity == (rule,)


class NoNeighbours(SiteRule):
    """Rule of Python alone, which stands for two on site indices: no site and the next one."""

    def words(self):
        return "no neighbours"

    def groups(self, instance, bound, why=""):
        sites = np.arange(len(instance.sites))
        numbers, names = ((sites + shift) // 2 for shift in (0, 1)), tuple(map(str, sites))
        return tuple(GroupRule("pair", self.role, n, names, 1, None, self.words()) for n in numbers)


@pytest.mark.parametrize("method", ["exact", "exhaustive", "milp", "cp-sat", "local-search"])
def test_a_rule_of_several_on_site_indices(method):
    free = Problem(random_instance(0, sites=7), replicas=3, voters=2)
    problem = free.replace(diversity=NoNeighbours("site", "replicas"))
    apart = (one for one in reference.configurations(free) if np.diff(one[2]).min() > 1)
    best = min(reference.objective(free, *one) for one in apart)
    assert reference.solve(free)[0] < solve(problem, method).score == pytest.approx(best)


def test_a_rule_of_several_on_site_indices_is_one_in_words():
    rule = NoNeighbours("site", "replicas")
    problem = Problem(random_instance(0, sites=7), replicas=5, voters=2, diversity=rule)
    assert str(problem).count("no neighbours") == len(solve(problem).reasons) == 1
    broken = violations(problem, Configuration(0, (0, 1), (0, 1, 2, 3, 4)))
    assert broken == ("no neighbours does not hold",)
    with pytest.raises(UnsupportedError, match="no neighbours"):
        problem_document(problem)


def test_levels_joined_by_a_plus_are_a_level():
    domains = {"provider": (*"aabba", "c"), "continent": (*"xxxyyy",)}
    joint = ("a+x", "a+x", "b+x", "b+y", "a+y", "c+y")
    instance = random_instance(0, sites=6).replace(domains={**domains, "both": joint})
    assert instance.labels("provider+continent") == joint
    rules = (Diversity(name, "replicas", cap=1) for name in ("provider+continent", "both"))
    one, two = (solve(Problem(instance, replicas=4, voters=3, diversity=rule)) for rule in rules)
    assert one.configuration == two.configuration
    assert len({joint[instance.sites.index(name)] for name in one.replicas}) == 4
    with pytest.raises(InputError, match="did you mean 'continent'"):
        instance.labels("provider+continnent")


WORLD = placement.load("world27")
FIRST = WORLD.sites[:3]


@pytest.mark.parametrize(
    ("asked", "stated"),
    [
        ({"replicas": 5}, {"voters": 5}),
        ({"replicas": list(FIRST)}, {"voters": FIRST}),
        ({"replicas": 3, "witnesses": 1}, {"voters": 4}),
        ({"replicas": 3, "witnesses": [WORLD.sites[5]]}, {"voters": 4}),
        ({"replicas": FIRST, "witnesses": 1}, {"voters": 4}),
        ({"replicas": FIRST, "witnesses": [WORLD.sites[5]]}, {"voters": (*FIRST, WORLD.sites[5])}),
        ({"replicas": 4, "protocol": "mencius"}, {"voters": 4}),
    ],
)
def test_every_replica_votes_unless_voters_are_given(
    asked: dict[str, Any], stated: dict[str, Any]
) -> None:
    world = WORLD if "protocol" not in asked else placement.datasets.load("world27", mix="ycsb-a")
    problem = placement.Problem(world, **asked)
    assert problem.voters == stated["voters"]
    plan, same = solve(problem), solve(placement.Problem(world, **asked, **stated))
    assert plan.status == "optimal"
    assert plan.configuration == same.configuration


@pytest.mark.parametrize("replicas", [range(3, 6), (3, 5), 2.5, None, True])
def test_a_range_needs_voters_and_impossible_replicas_are_named_first(replicas: object) -> None:
    a_range = isinstance(replicas, range | tuple)
    with pytest.raises(InputError, match="voters: a range of" if a_range else "^replicas: "):
        placement.Problem(WORLD, replicas=replicas)  # type: ignore[arg-type]


def test_the_command_line_needs_no_voters(command: Run) -> None:
    asked = ("solve", "world27", "--replicas", "4", "--json")
    default, stated = command(*asked).document, command(*asked, "--voters", "4").document
    assert default["leader"] == stated["leader"]
    assert sorted(default["replicas"]) == sorted(default["voters"]) == sorted(stated["voters"])
    assert default["problem"]["voters"] == 4


def test_a_sweep_needs_numbers_of_voters(command: Run) -> None:
    answer = command("compare", "sizes", "world27", "--replicas", "3..5", code=1)
    assert "--voters: no numbers of voters" in answer.err


SITES, CLIENTS = ("a", "b"), ("x", "y", "z")
KINDS = ("weak_read", "bounded_read", "strong_read", "single_group", "multi_group")
CLIENT_RTT = np.array([[10.0, 90.0], [80.0, 20.0], [30.0, 60.0]])
SITE_RTT = np.array([[0.0, 70.0], [75.0, 0.0]])
COUNTS = np.arange(15.0).reshape(3, 5)
BY_NAME = Instance(SITES, CLIENTS, CLIENT_RTT, SITE_RTT, COUNTS)


def frame(values: np.ndarray, rows: tuple[str, ...], columns: tuple[str, ...]) -> pd.DataFrame:
    """Rows and columns in another order than the instance has."""
    return pd.DataFrame(values, list(rows), list(columns)).iloc[::-1, ::-1]


def test_counts_go_by_name() -> None:
    counts = frame(COUNTS, CLIENTS, KINDS)
    assert BY_NAME.replace(counts=counts) == BY_NAME
    leaders = {
        placement.solve(Problem(world, replicas=1, voters=1)).leader
        for world in (BY_NAME, BY_NAME.replace(counts=counts))
    }
    assert len(leaders) == 1


def test_every_table_of_an_instance_goes_by_name() -> None:
    prices = Prices(np.array([1.0, 2.0]), np.array([[0.0, 3.0], [4.0, 0.0]]))
    places = np.array([[1.0, 2.0], [3.0, 4.0]])
    level = {"country": ("A", None)}
    arrays = BY_NAME.replace(prices=prices, site_coordinates=places, domains=level)
    tables = Instance(
        SITES,
        CLIENTS,
        frame(CLIENT_RTT, CLIENTS, SITES),
        frame(SITE_RTT, SITES, SITES),
        frame(COUNTS, CLIENTS, KINDS),
        prices=Prices(
            pd.Series([2.0, 1.0], ["b", "a"]), frame(np.asarray(prices.transfer), SITES, SITES)
        ),
        site_coordinates=frame(places, SITES, ("lat", "lon")),
        domains={"country": pd.Series([None, "A"], ["b", "a"])},
    )
    assert tables == arrays
    np.testing.assert_array_equal(tables.site_coordinates, places)
    assert dict(tables.domains) == level


def test_intervals_go_by_name() -> None:
    counts = np.stack([COUNTS, COUNTS + 100])
    world = BY_NAME.replace(counts=counts, intervals=("old", "new"))
    blocks = {"new": frame(counts[1], CLIENTS, KINDS), "old": frame(counts[0], CLIENTS, KINDS)}
    assert world.replace(counts=pd.concat(blocks)) == world
    rtt = np.stack([SITE_RTT, SITE_RTT * 2])
    blocks = {"new": frame(rtt[1], SITES, SITES), "old": frame(rtt[0], SITES, SITES)}
    assert world.replace(site_rtt=pd.concat(blocks)) == world.replace(site_rtt=rtt)
    assert Instance(SITES, CLIENTS, CLIENT_RTT, SITE_RTT, pd.concat(
        {"old": frame(counts[0], CLIENTS, KINDS), "new": frame(counts[1], CLIENTS, KINDS)}
    )) == world  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": pd.DataFrame(COUNTS)}, "counts: not a name: got 0"),
        ({"counts": frame(COUNTS, ("x", "y", "w"), KINDS)}, "1 of 3 clients missing: got 'z'"),
        ({"counts": frame(COUNTS, CLIENTS, KINDS).rename(columns={"weak_read": "reads"})},
         "1 of 5 operations missing: got 'weak_read'"),
        ({"counts": pd.DataFrame(np.ones((4, 5)), [*CLIENTS, "w"], list(KINDS))},
         "unknown client: got 'w'"),
        ({"site_rtt": frame(SITE_RTT, SITES, ("a", "c"))}, "site_rtt: 1 of 2 sites missing"),
        ({"client_rtt": pd.Series([1.0, 2.0, 3.0], list(CLIENTS))}, "a table with other axes"),
        ({"domains": {"country": pd.Series(["A", "B"])}}, "not a name: got 0"),
        ({"prices": Prices(pd.Series([1.0, 2.0], ["a", "z"]))}, "1 of 2 sites missing: got 'b'"),
        ({"counts": pd.concat({"1": frame(COUNTS, CLIENTS, KINDS)} | {
            "2": frame(COUNTS, CLIENTS, KINDS)})}, "as many labels as intervals"),
    ],
)  # fmt: skip
def test_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BY_NAME.replace(**change)


def test_other_constructors_too() -> None:
    table = frame(SITE_RTT, SITES, SITES)
    arrays, frames = (QuorumProblem(rtt, [1, 1], [1, 1], sites=SITES) for rtt in (SITE_RTT, table))
    np.testing.assert_array_equal(arrays.rtt, frames.rtt)

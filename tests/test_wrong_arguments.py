"""Wrong arguments of the public Python API, and the checks that find them.

Every parameter of every public callable gets every wrong value below, one at a time. What comes out
is a result or a :class:`placement.PlacementError`; an object, bytes and a number of 401 digits are
values of no parameter, so that they must be refused with the field.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import placement
from placement import datasets, quorumstore, workloads
from placement.analysis import sensitivity
from placement.analysis import sensitivity as next_best_plans
from placement.errors import InputError, shown
from placement.methods.registry import available, load_method
from placement.overtime.decayed_counts import Decay
from placement.overtime.moves import Hysteresis, MovePrices
from placement.support import checks
from placement.tail import Distributions
from placement.tail.objective import Percentile
from placement.testing import random_instance

WRONG = {
    "none": lambda: None,
    "text": lambda: "x",
    "bytes": lambda: b"x",
    "fraction": lambda: 1.5,
    "negative": lambda: -1,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "huge": lambda: 10**400,
    "huge fraction": lambda: Fraction(10**400),
    "unprintable": lambda: 10**5000,
    "NaN of NumPy": lambda: np.float64("nan"),
    "short NaN of NumPy": lambda: np.float32("nan"),
    "inf of NumPy": lambda: np.float64("inf"),
    "no duration of NumPy": lambda: np.timedelta64("NaT"),
    "complex": lambda: 1j,
    "true": lambda: True,
    "list": list,
    "mapping": dict,
    "object": object,
    "numbers": lambda: [1.5, None],
    "mixed names": lambda: ["x", 3],
    "generator": lambda: (letter for letter in "ab"),
    "array": lambda: np.zeros((2, 3, 4, 5)),
    "text in an array": lambda: np.array("x"),
    "none in an array": lambda: np.array([None]),
    "scalar array": lambda: np.array(3),
    "frame": lambda: pd.DataFrame({"x": ["y"]}),
    "series": lambda: pd.Series([1.5, np.nan]),
    "mapping of objects": lambda: {"x": object(), 3: None},
}
NEVER = ("object", "bytes", "huge", "unprintable")

INSTANCE = random_instance(0, sites=4, clients=3, prices=True)
PROBLEM = placement.Problem(INSTANCE, replicas=3, voters=3)
PLAN = placement.solve(PROBLEM)
SITES, CLIENTS = INSTANCE.sites, INSTANCE.clients
KEY = quorumstore.QuorumProblem(
    [[0, 20, 90], [20, 0, 80], [90, 80, 0]], reads=[80, 15, 5], writes=[1, 0, 0]
)
SAME = random_instance(0, sites=3, clients=3)
SAME = SAME.replace(clients=SAME.sites)
WORLD = workloads.Clients.from_cities(datasets.cities()[:6])
DAY = workloads.Timeline(datetime(2026, 3, 2, tzinfo=UTC), intervals=4)
TENANT = workloads.standard_database(WORLD)
FRAMES = INSTANCE.to_frames()


def of_class(kind, **good):
    return (kind.__name__, kind, good)


def grid(function, **more):
    """Of sweep or pareto, whose other arguments are those of solve."""
    return (
        function.__name__,
        function,
        {"question": PROBLEM, "replicas": [3], "voters": 3, "method": "exact", "time_limit": None,
         "gap_limit": 0.0, "seed": 0, "threads": 1, "progress": None, "settings": None, **more},
    )  # fmt: skip


CASES = [
    ("load", placement.load, {"source": "world27", "mix": None, "seed": 0}),
    (
        "evaluate", placement.evaluate,
        {"problem": PROBLEM, "leader": PLAN.leader, "voters": PLAN.voters,
         "replicas": PLAN.replicas},
    ),
    (
        "solve", placement.solve,
        {"problem": PROBLEM, "method": "exact", "time_limit": None, "gap_limit": 0.0, "seed": 0,
         "threads": 1, "start": None, "progress": None, "settings": None},
    ),
    grid(placement.sweep),
    grid(placement.pareto, points=2),
    (
        "next_replicas", placement.next_replicas,
        {"plan": PLAN, "instance": INSTANCE},
    ),
    (
        "scale_demand", placement.scale_demand,
        {"instance": INSTANCE, "factors": {INSTANCE.clients[0]: 2.0}},
    ),
    (
        "with_waits", placement.with_waits,
        {"instance": INSTANCE,
         "waits": {INSTANCE.operations[0].name: "leader: quorum of voters"}},
    ),
    ("without_sites", placement.without_sites,
     {"instance": INSTANCE, "sites": [INSTANCE.sites[0]]}),
    (
        "compare", placement.compare,
        {"problem": PROBLEM, "methods": ["exact"], "time_limit": None, "gap_limit": 0.0,
         "seed": 0, "threads": 1, "progress": None, "settings": None},
    ),
    (
        "compare_protocols", placement.compare_protocols,
        {"problem": PROBLEM, "protocols": ["raft"], "same_sites": False, "method": "exact",
         "time_limit": None, "gap_limit": 0.0, "seed": 0, "threads": 1, "progress": None},
    ),
    ("check_certificate", placement.check_certificate, {"plan": PLAN}),
    of_class(
        placement.Options, time_limit=None, gap_limit=0.0, seed=0, threads=1, start=None,
        progress=None, settings={},
    ),
    of_class(placement.Setting, default=3, meaning="a number", choices=(), minimum=None),
    of_class(placement.Operation, name="read", near=1, relay=0, direct=0, quorum=0),
    of_class(placement.Diversity, level="site", role="voters", cap=1, min_domains=None),
    of_class(
        placement.Contingency, level="site", goal="worst", together=1, limit=None,
        probability=None, leader_may_move=False, clients_move=False,
    ),
    ("Contingency bounded", placement.Contingency, {"goal": "bounded", "limit": 3.0}),
    ("Contingency weighted", placement.Contingency, {"goal": "weighted", "probability": 0.1}),
    of_class(
        placement.Configuration, leader=0, voters=(0, 1), replicas=(0, 1, 2),
    ),
    ("Configuration.of", placement.Configuration.of,
     {"leader": 0, "voters": [0, 1], "replicas": [0, 1, 2]}),
    of_class(
        placement.Problem, instance=INSTANCE, replicas=3, voters=3, quorum=None, leader=None,
        leaders=None, pinned=(), pinned_voters=(), forbidden=(), non_voters=(), diversity=(),
        witnesses=0, survive=None, decay=1.0, budget=None, cost_weight=0.0,
        objective=PROBLEM.objective,
    ),
    ("Problem.replace", PROBLEM.replace, {"replicas": 3}),
    of_class(placement.Prices, storage=[1, 2, 3], transfer=None, written_gb=0, currency="USD"),
    of_class(
        placement.Instance, sites=SITES, clients=CLIENTS, client_rtt=INSTANCE.client_rtt,
        site_rtt=INSTANCE.site_rtt, counts=INSTANCE.counts, operations=INSTANCE.operations,
        domains={}, intervals=INSTANCE.intervals, site_coordinates=None, client_coordinates=None,
        prices=None, name="x", provenance=(),
    ),
    ("Instance.from_frames", placement.Instance.from_frames, {**FRAMES, "name": "x",
                                                              "provenance": ()}),
    ("Instance.labels", INSTANCE.labels, {"level": "site"}),
    ("Instance.site_indices", INSTANCE.site_indices, {"names": SITES}),
    ("Instance.client_index", INSTANCE.client_index, {"name": CLIENTS[0]}),
    of_class(Percentile, percent=99.0, distributions=Distributions.parametric(INSTANCE)),
    ("demand_range", sensitivity.demand_range,
     {"plan": PLAN, "client": PLAN.client_rows[0].client, "most": 2.0}),
    ("rtt_range", sensitivity.rtt_range,
     {"plan": PLAN, "source": CLIENTS[0], "site": SITES[0], "waiting": None, "most": 1.0}),
    ("safe_rtt_range", sensitivity.safe_rtt_range,
     {"plan": PLAN, "runner_up": None, "source": CLIENTS[0], "site": SITES[0], "waiting": None}),
    ("runner_ups", next_best_plans.next_best_plans, {"plan": PLAN, "count": 1}),
    ("datasets.load", datasets.load, {"name": "world27", "mix": None, "seed": 0}),
    ("datasets.arguments", datasets.arguments, {"name": "world27", "mix": None, "seed": 0}),
    ("datasets.describe", datasets.describe, {"name": "world27"}),
    ("datasets.regions", datasets.regions, {"provider": "aws"}),
    ("QuorumProblem", quorumstore.QuorumProblem,
     {"rtt": KEY.rtt, "reads": [1, 2, 3], "writes": [1, 2, 3], "sites": KEY.sites,
      "regions": KEY.regions, "rules": KEY.rules, "goal": KEY.goal, "name": "x"}),
    of_class(
        quorumstore.StoreRules, contingency=False, redirect=quorumstore.Redirect.HOP,
        read_fraction=0.9, write_fraction=0.9, max_replicas=5, replicas=None, read_quorum=None,
        write_quorum=None, failures=1, loss=quorumstore.LossScope.SITE, distinct_regions=False,
    ),
    of_class(
        quorumstore.Goal, target=quorumstore.Target.THRESHOLD, read_weight=1.0, write_weight=1.0,
        normal_weight=0.0, worst_weight=1.0,
    ),
    of_class(quorumstore.QuorumConfiguration, replicas=(0, 1, 2), read=2, write=2),
    ("quorumstore.evaluate", quorumstore.evaluate,
     {"problem": KEY, "replicas": KEY.sites, "read": 2, "write": 2}),
    ("site_requests", quorumstore.site_requests, {"instance": SAME}),
    of_class(Decay, factor=2.0),
    ("Decay.of_half_life", Decay.of_half_life, {"intervals": 3.0}),
    of_class(Hysteresis, horizon=3.0, confirm=1),
    of_class(MovePrices, leader=1.0, voter=0.0, add=0.0, remove=0.0),
    of_class(workloads.Timeline, start=DAY.start, intervals=4, minutes=30),
    ("Timeline.of_day", workloads.Timeline.of_day, {"day": date(2026, 3, 2), "intervals": 4}),
    of_class(workloads.AR1, lag1=0.5, sd=0.1),
    of_class(workloads.Consumer, ratio=3.5, peak=21.0, trough=4.5, weekend=1.05),
    of_class(workloads.Office, ratio=8.0, begin=9.0, end=17.0, weekend=0.55),
    ("mix_shares", workloads.mix_shares, {"name": "social"}),
    ("sample_mix", workloads.sample_mix, {"name": "social", "rng": np.random.default_rng(0)}),
    ("everywhere", workloads.everywhere, {"clients": WORLD}),
    ("regional", workloads.regional, {"clients": WORLD, "continent": WORLD.continents[0]}),
    ("national", workloads.national, {"clients": WORLD, "country": WORLD.countries[0]}),
    ("home_and_tail", workloads.home_and_tail, {"clients": WORLD, "home": 0}),
    ("two_poles", workloads.two_poles, {"clients": WORLD, "first": 0, "second": 1}),
    ("standard_database", workloads.standard_database, {"clients": WORLD, "mix": "social",
                                                        "rate": 10.0}),
    ("fleet", workloads.fleet,
     {"clients": WORLD, "databases": 2, "seed": 0, "timeline": None, "median_rate": 20.0,
      "sigma": 2.0, "nearest_sites": None}),
    ("generate", lambda **given: list(workloads.generate(**given)),
     {"databases": [TENANT], "clients": WORLD, "timeline": DAY, "seed": 0, "law": "poisson",
      "block": 16}),
    ("local_time", workloads.local_time,
     {"timeline": DAY, "timezones": WORLD.timezones, "countries": WORLD.countries}),
]  # fmt: skip

ANYTHING = {  # parameters that take any value, shown or stored as they are, and seeds of any size
    ("Setting", "default"), ("Setting", "meaning"), ("Setting", "choices"), ("Setting", "minimum"),
    ("draw", "seed"), ("ServerSamplePath", "seed"), ("simulate reads", "seed"),
    ("simulate dynamic", "seed"),
}  # fmt: skip


def faults(name, function, good):
    """Return what a callable does with wrong arguments that it should not do."""
    function(**good)  # the right ones are accepted
    wrong = []
    for parameter in good:
        for label, value in WRONG.items():
            given = value()
            try:
                function(**{**good, parameter: given})
            except placement.InputError as error:
                if not error.field:
                    wrong.append(f"{parameter}={shown(given)}: no field in {error}")
            except placement.PlacementError:
                pass
            except Exception as error:
                wrong.append(f"{parameter}={shown(given)[:40]}: {type(error).__name__}: {error}")
            else:
                if label in NEVER and (name, parameter) not in ANYTHING:
                    wrong.append(f"{parameter}={shown(given)[:40]}: accepted")
    return wrong


@pytest.mark.filterwarnings("ignore::placement.UnitsWarning")
@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_wrong_arguments_are_refused_with_the_field(case):
    assert faults(*case) == []


@pytest.mark.parametrize("method", available())
def test_wrong_values_of_settings_are_refused(method):
    for name, setting in load_method(method).settings.items():
        for label, value in WRONG.items():
            given = value()
            field = name
            try:
                setting.check(name, given)
                refused = False
            except placement.InputError as error:
                refused, field = True, error.field
            assert field == name
            assert refused or label not in NEVER or isinstance(setting.default, str), label


def test_every_public_callable_is_listed():
    listed = {function for _, function, _ in CASES}
    public = {name for name in placement.__all__ if inspect.isroutine(getattr(placement, name))}
    assert {getattr(placement, name) for name in public} <= listed | {placement.available}


WRONG_NUMBERS = [
    None, "x", "3", b"3", True, np.True_, [], {}, object(), 1j, np.array([1.0, 2.0]),
    float("nan"), float("inf"), 10**400, 10**5000, -1,
]  # fmt: skip


@pytest.mark.parametrize("value", WRONG_NUMBERS, ids=lambda value: shown(value)[:20])
def test_number_and_whole_refuse_with_field_and_value(value: object) -> None:
    for check in (checks.number, checks.whole):
        with pytest.raises(InputError) as caught:
            check(value, "limit")
        assert caught.value.field == "limit"
        assert caught.value.value is value
        assert "limit: " in str(caught.value)
        assert "expected a" in str(caught.value)


def test_number_accepts_every_kind_of_number() -> None:
    for value in (2, 2.0, np.int64(2), np.float32(2), Fraction(4, 2)):
        result = checks.number(value, "x")
        assert (result, type(result)) == (2.0, float)


def test_number_keeps_its_range() -> None:
    assert checks.number(-3, "x", minimum=-np.inf) == -3
    assert checks.number(1, "x", maximum=1) == 1
    with pytest.raises(InputError, match="expected a finite number > 0 and <= 1"):
        checks.number(0, "x", above=True, maximum=1)
    with pytest.raises(InputError, match=r"expected a finite number$"):
        checks.number(np.nan, "x", minimum=-np.inf)


def test_whole_accepts_integers_and_floats_without_a_fraction() -> None:
    for value in (3, 3.0, np.int16(3), np.float64(3)):
        result = checks.whole(value, "n")
        assert (result, type(result)) == (3, int)
    with pytest.raises(InputError, match=r"not a whole number: got 1.5, expected .* >= 1"):
        checks.whole(1.5, "n", minimum=1)
    with pytest.raises(
        InputError, match=r"out of range: got 1.*0, expected .* <= 9223372036854775807"
    ):
        checks.whole(10**30, "n")
    with pytest.raises(InputError, match="expected a whole number <= 2"):
        checks.whole(3, "n", minimum=None, maximum=2)
    assert checks.whole(-5, "n", minimum=None) == -5


@pytest.mark.parametrize("value", [None, 3, "abc", b"abc", {"a": 1}, object(), np.array(3)])
def test_elements_refuses_what_is_no_list(value: object) -> None:
    for check in (checks.elements, checks.unique_names):
        with pytest.raises(InputError, match="a list"):
            check(value, "sites")


def test_elements_reads_any_iterable_once() -> None:
    assert checks.elements((n for n in "ab"), "x") == ("a", "b")
    assert checks.unique_names(np.array(["a", "b"]), "x") == ("a", "b")


def call_text(value: object) -> object:
    return checks.text(value, "name", choices=["a"])


def call_mapping(value: object) -> object:
    return checks.mapping(value, "name")


def call_instances(value: object) -> object:
    return checks.instances_of(value, int, "name", "an integer")


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (call_text, "a", [None, 1, "", "b", b"a", []]),
        (call_mapping, {"a": 1}, [None, 1, "a", [("a", 1)], {1: 2}]),
        (call_instances, [1, 2], [None, 1, "a", ["a"], {1: 2}]),
        (lambda value: checks.flag(value, "name"), True, [None, 1, "true", []]),
        (lambda value: checks.function(value, "name"), len, [None, 1, "len"]),
    ],
)
def test_other_checks(check: Callable[[object], object], good: object, bad: list[object]) -> None:
    check(good)
    for value in bad:
        with pytest.raises(InputError) as caught:
            check(value)
        assert caught.value.field == "name"


AXES = [("client", ["a"]), ("site", ["b", "c"])]


@pytest.mark.parametrize(
    "value",
    [
        None, "x", 3, [], {}, object(), [[1, "x"]], [["1", "2"]], [[1, 10**400]], [[1, 10**5000]],
        [[1j, 2]], np.array([[1j, 2]]), [[1, None]], [[1, np.nan]], [[1, -1]], [[1, 9.0]],
        [[1, 2, 3]], np.zeros((1, 2, 1)), np.array([["2020-01-01"] * 2], dtype="datetime64[D]"),
        (x for x in "ab"),
    ],
    ids=lambda value: shown(value)[:20],
)  # fmt: skip
def test_nonnegative_refuses_with_the_field(value: object) -> None:
    with pytest.raises(InputError) as caught:
        checks.nonnegative(value, "client_rtt", AXES, maximum=8.0)
    assert caught.value.field == "client_rtt"


def test_nonnegative_names_the_element_above_the_maximum() -> None:
    with pytest.raises(InputError, match=r"out of range at client 'a', site 'c'.*>= 0 and <= 8"):
        checks.nonnegative([[1, 9]], "client_rtt", AXES, maximum=8.0)


def test_message_shows_none_and_at_most_200_characters() -> None:
    assert "got None" in str(InputError("missing", field="x", value=None))
    assert "got" not in str(InputError("missing", field="x"))
    message = str(InputError("wrong", value=["element"] * 1000, expected="less"))
    assert len(message) < 250
    assert "…, expected less" in message
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    for value in (10**5000, nested):
        assert "too large to print" in str(InputError("wrong", value=value))
    assert shown(np.zeros((2, 2))) == "array([[0., 0.], [0., 0.]])"


def test_error_keeps_its_value_through_pickle_and_place() -> None:
    absent = pickle.loads(pickle.dumps(InputError("missing", field="x"))).at("file")
    assert str(absent) == "file: x: missing"
    given = pickle.loads(pickle.dumps(InputError("missing", field="x", value=None))).at("file")
    assert str(given) == "file: x: missing: got None"

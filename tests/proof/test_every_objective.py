"""A cross-check over every constraint and objective: what is proven carries a proof that holds."""

import dataclasses
import math
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from placement import Contingency, Moves, Operation
from placement.errors import InputError, UnsupportedError
from placement.evaluation.breakdown import objective_value
from placement.feasibility.feasible_plans import violations
from placement.io import load_plan, save_plan
from placement.measures import After, Limit
from placement.measures.question import percentile_question
from placement.measures.values import MeasureData
from placement.methods.options import Options
from placement.methods.registry import available, load_method, run
from placement.model.configuration import Configuration
from placement.proof.certificate_check import check_certificate
from placement.report import report_html
from placement.support.status import Status
from placement.tail import Distributions
from placement.testing import World, check_question, every_configuration, optimum, random_instance
from tests.effort import examples, seeds
from tests.strategies import ALL, MONEY, problems
from tests.tail.worlds import drawn, drawn_by_interval

EXACT = load_method("exact")
PROVEN = (Status.OPTIMAL, Status.INFEASIBLE)


EXHAUSTIVE = load_method("exhaustive")
LEVELS = ("site", "site", "zone", "region", "continent", "provider")
KINDS = ("mean", "worst", "bounded", "weighted", "percentile", "percentile after losses")


def _percentile(draw, problem, *, after_losses):
    """A percentile, on drawn or parametric distributions; of each interval where RTTs vary."""
    instance, seed = problem.instance, draw(st.integers(0, 1000))
    varies = instance.client_rtt.ndim > 2 or instance.site_rtt.ndim > 2
    spread = (
        drawn_by_interval(instance, seed, bins=24)
        if varies
        else drawn(instance, seed, bins=30 if after_losses else 60)
        if draw(st.booleans())
        else Distributions.parametric(instance, variation=0.3, width=10, bins=60)
    )
    each = spread if varies else [spread]
    return percentile_question(draw(st.sampled_from([50, 90, 99])), *each)


@st.composite
def questions(draw):
    """A problem with any constraints, and one of the objectives."""
    kind = draw(st.sampled_from(KINDS))
    without = frozenset() if kind == "mean" else MONEY - {"budget"}
    about_losses = kind not in ("mean", "percentile")
    most = 5 if kind == "percentile after losses" else 7
    problem = draw(
        problems(kinds=ALL - without, max_sites=most, max_clients=5, writes=about_losses)
    )
    sites = len(problem.instance.sites)
    try:
        goal = None
        if "percentile" in kind:
            goal = _percentile(draw, problem, after_losses=about_losses)
        if about_losses:
            level = draw(st.sampled_from(LEVELS))
            together = draw(st.sampled_from([1, 1, 1, 2])) if sites > 1 and level == "site" else 1
            moves = draw(st.booleans())
            if goal is not None:
                after = After(level, together, leader_moves=moves)
                lost = dataclasses.replace(goal.aim, after=after)
                limit = Limit(lost, draw(st.floats(5, 900)))
                part = {"keep": (limit,)} if draw(st.booleans()) else {"aim": lost}
                goal = dataclasses.replace(goal, **part)
                return kind, problem.replace(objective=goal)
            goal = Contingency(
                level,
                kind,
                together=together,
                limit=draw(st.floats(5, 900)) if kind == "bounded" else None,
                probability=0.5 / sites**2 if kind == "weighted" else None,
                leader_may_move=moves,
                clients_move=draw(st.sampled_from([False, False, True])),
            )
        return kind, problem if goal is None else problem.replace(objective=goal)
    except InputError:
        return kind, problem


PROTOCOLS = (
    "leases", "leases:interference=0.5",
    "epaxos", "hermes", "mencius", "spanner", "semi-sync", "fast-paxos", "abd", "caesar",
    "crdb-global", "tidb", "follower-reads", "coordinated", "flexiraft", "atlas", "tempo", "pqr",
)  # fmt: skip


def _partly_late(problem, seed):
    """Distributions of which some pairs overflow, up to entirely, and the others do not."""
    instance, rng = problem.instance, np.random.default_rng(seed)
    whole = drawn(instance, 2 * seed, bins=40)

    def cut(table, own):
        late = rng.uniform(0, 1, table.shape[:2]) ** 3 * (rng.random(table.shape[:2]) < 0.4)
        if own:
            np.fill_diagonal(late, 0)
        return table * (1 - late)[..., np.newaxis]

    tables = cut(whole.client_site, own=False), cut(whole.site_site, own=True)
    return Distributions(*tables, 1.0, instance.sites, instance.clients)


def _drawn_moves(draw, problem):
    """A present configuration, prices of the moves from it, and limits on them."""
    names = problem.instance.sites
    held = draw(st.permutations(range(len(names))))[: draw(st.integers(1, len(names)))]
    voters = held[: draw(st.integers(1, len(held)))]
    prices = {
        what: draw(st.sampled_from([0.0, 0.0, 1.0, 20.0]))
        for what in ("add", "remove", "promote", "demote", "leader")
    }
    at_most = draw(st.none() | st.integers(0, 2 * len(names)))
    copied = draw(st.sampled_from([None, 0.0, 2.5, 5.0]))
    return {
        "current": {
            "leader": names[voters[0]],
            "voters": [names[v] for v in voters],
            "replicas": [names[r] for r in held],
        },
        "moves": Moves(**prices, at_most=at_most, copy_gb=copied, stored_gb=2.5),
    }


WAITS = (
    "leader: majority of voters", "leader: all of replicas", "leader: 2 of voters",
    "client: majority of voters", "client: 1 of voters + all of replicas", "near: 1 of voters",
)  # fmt: skip
PARTS = ("moves", "protocol", "witnesses", "overflow", "waits")


def _part(draw, problem, kind):
    """Return what one part changes in a question; the instance too where it belongs to that."""
    instance = problem.instance
    if kind == "moves":
        return _drawn_moves(draw, problem)
    if kind == "protocol":
        return {"protocol": draw(st.sampled_from(PROTOCOLS))}
    if kind == "witnesses":
        named = list(instance.sites[-1:])
        return {"witnesses": draw(st.sampled_from([1, 2, named]))}
    if kind == "waits":
        wait = draw(st.sampled_from(WAITS))
        trip = {"leader": {"direct": 1.0}, "near": {"near": 1.0}}.get(wait.partition(":")[0], {})
        asked = Operation("by hand", waits=(wait,), **trip)
        counts = np.concatenate([instance.counts, instance.counts[..., -1:] + 1], axis=-1)
        operations = (*instance.operations, asked)
        return {"instance": instance.replace(operations=operations, counts=counts)}
    assert kind == "overflow"
    if isinstance(problem.objective, MeasureData) and problem.demand.scenarios == 1:
        spread = _partly_late(problem, draw(st.integers(0, 1000)))
        return {"objective": dataclasses.replace(problem.objective, distributions=(spread,))}
    return {}


def _says_why(refusal):
    """Check that a question is refused with a field and a way out, a method with a reason."""
    assert str(refusal)
    assert not isinstance(refusal, InputError) or (refusal.field and refusal.expected)


@st.composite
def with_parts(draw):
    """A question with up to three of the parts that operations, voters and the present have."""
    _, problem = draw(questions())
    every_replica_votes = {"voters": placement.problem.ALL_REPLICAS, "quorum": None}
    if problem.rules.replicas_min < problem.rules.replicas_max or draw(st.booleans()):
        every_replica_votes = {}
    for kind in sorted(draw(st.sets(st.sampled_from(PARTS), max_size=3))):
        more = _part(draw, problem, kind)
        for changes in (more, {**every_replica_votes, **more}):
            try:
                problem = problem.replace(**changes)
                assert problem.rules is not None
                break
            except (InputError, UnsupportedError) as refusal:  # these do not go together
                _says_why(refusal)
    return problem


def _agrees(problem, plan, best, name):
    assert plan.status in PROVEN, name
    assert plan.found == math.isfinite(best), name
    if plan.found:
        assert plan.objective == pytest.approx(best, rel=2e-9), name
        assert not violations(problem, plan.configuration), name
        assert plan.objective == objective_value(problem, plan.configuration), name


def _survives_a_file(plan):
    """Check that the plan of a file asks and answers the same, and all that is shown of it."""
    with tempfile.TemporaryDirectory() as folder:
        again = load_plan(save_plan(plan, Path(folder, "plan.json")))
    assert again.configuration == plan.configuration
    assert again.problem.instance == plan.problem.instance
    assert again.problem.operations == plan.problem.operations
    assert str(again).splitlines()[0] == str(plan).splitlines()[0]
    if not plan.found:
        return
    assert objective_value(again.problem, plan.configuration) == plan.objective
    assert report_html(plan)
    for part, row in zip(plan.parts, plan.per_operation, strict=True):
        total = part.to_nearest + part.to_leader + part.waiting + part.constant
        assert not row.operations or total == pytest.approx(row.latency)


def _solved(name, problem):
    """Return the plan of a method; None: the method refuses the question, and says why."""
    method = load_method(name)
    if (why := method.refuses(problem)) is not None:
        assert str(why)
        return None
    try:
        return run(method, problem, Options())
    except UnsupportedError as refusal:
        _says_why(refusal)
        return None


def _check_every_method(problem, methods):
    """Check that every method that takes the question has the value of enumeration."""
    plans = {name: _solved(name, problem) for name in methods}
    plans = {name: plan for name, plan in plans.items() if plan is not None}
    if not plans:
        return
    best = optimum(problem)
    for name, plan in plans.items():
        _agrees(problem, plan, best, name)
    plan = plans.get("exact")
    if plan is None:
        return
    _survives_a_file(plan)
    if plan.certificate is None and any(
        "no certificate" in x for x in (*plan.notes, *plan.reasons)
    ):
        return
    checked = check_certificate(plan)
    assert checked.bound <= plan.objective * (1 + 1e-12) or not plan.found


@given(with_parts())
def test_what_is_proven_of_any_parts_is_proved_again(problem):
    """Protocols, witnesses, waits, moves, overflow: the value of enumeration."""
    _check_every_method(problem, ("exact", "sets"))


@pytest.mark.slow
@given(with_parts())
def test_programs_of_any_parts_find_what_enumeration_finds(problem):
    _check_every_method(problem, ("exact", "sets", "exhaustive", "milp", "cp-sat"))


@given(questions())
def test_what_is_proven_is_proved_again(question):
    _, problem = question
    plan = run(EXACT, problem, Options())
    assert plan.status in PROVEN
    checked = check_certificate(plan)
    if plan.found:
        assert plan.bound <= checked.bound * (1 + 1e-12) + 1e-300
        assert checked.bound <= plan.objective * (1 + 1e-12)
    else:
        assert checked.bound == math.inf
    if EXHAUSTIVE.refuses(problem) is None:
        every = run(EXHAUSTIVE, problem, Options())
        assert every.status is plan.status
        assert not plan.found or plan.objective == pytest.approx(every.objective, rel=2e-9)


@st.composite
def calls(draw):
    """A question, some with their sites by name, and the options of a call."""
    problem, options = draw(with_parts()), {}
    sites = problem.instance.sites
    possible = list(every_configuration(problem))
    if possible and draw(st.booleans()):
        one = draw(st.sampled_from(possible))
        named = {"replicas": [sites[site] for site in one.replicas]}
        if draw(st.booleans()):
            named["voters"] = [sites[site] for site in one.voters]
        try:
            problem = problem.replace(**named)
        except (InputError, UnsupportedError) as refusal:
            _says_why(refusal)
    kind = draw(st.sampled_from(("nothing", "time", "gap", "feasible", "any", "interrupt")))
    if kind == "time":
        options = {"time_limit": draw(st.sampled_from([0.0, 0.01, 0.1]))}
    elif kind == "gap":
        options = {"gap_limit": draw(st.sampled_from([0.01, 0.2]))}
    elif kind == "interrupt":
        options = {"progress": Interrupt(draw(st.integers(1, 3)))}
    elif kind == "feasible" and possible:
        options = {"start": draw(st.sampled_from(possible))}
    elif kind == "any":
        held = draw(st.permutations(range(len(sites))))[: draw(st.integers(1, len(sites)))]
        voters = held[: draw(st.integers(1, len(held)))]
        options = {"start": Configuration.of(voters[0], voters, held)}
    return problem, options


@dataclasses.dataclass
class Interrupt:
    """Ctrl-C at a report of a method; ``at`` is the number of reports until then."""

    at: int
    heard: int = 0

    def __call__(self, report):
        self.heard += 1
        if self.heard >= self.at:
            raise KeyboardInterrupt


@given(calls())
@settings(max_examples=examples(1000, 8))
def test_every_method_answers_truly_or_names_one_that_does(call):
    problem, options = call
    world = World("drawn", problem)
    for name in available():
        if "progress" in options:
            options = {"progress": dataclasses.replace(options["progress"], heard=0)}
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # of NumPy
            plan = check_question(name, world, Options(**options))
        if plan is None:
            continue
        hurried = options.keys() & {"time_limit", "gap_limit", "progress"}
        if load_method(name).exact and not hurried:
            assert plan.status in PROVEN, name
        start = options.get("start")
        if load_method(name).exact and start is not None and not violations(problem, start):
            assert plan.objective <= objective_value(problem, start), name


@pytest.mark.parametrize("goal", ["p99", "p75 after the loss of any site"])
@pytest.mark.parametrize("seed", seeds(2, 100))
def test_deadlines_beyond_the_horizon_of_a_trip_are_searched(seed, goal):
    """A plan without the trips that overflow has a percentile that is two trips long."""
    instance = random_instance(seed, sites=5, clients=2)
    problem = placement.Problem(instance, replicas=3, voters=3)
    problem = problem.replace(distributions=_partly_late(problem, seed), minimise=goal)
    plan = run(EXACT, problem, Options())
    _agrees(problem, plan, optimum(problem), "exact")
    assert check_certificate(plan).bound <= plan.objective or not plan.found


def test_a_replica_that_cannot_lead_is_no_better_plan():
    """Where no operation asks the leader one proof does for all, and they still must be allowed."""
    instance = random_instance(3, sites=2, clients=1)
    weak = Operation("weak", near=1.0)
    instance = instance.replace(operations=(weak,), counts=np.ones((1, 1, 1)))
    for leader in instance.sites:
        problem = placement.Problem(instance, replicas=1, voters=1, leaders=(leader,))
        plan = run(EXACT, problem, Options())
        assert check_certificate(plan).score == plan.objective

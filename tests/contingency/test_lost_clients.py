"""Losses said in measures, and clients of a lost site, which follow one definition."""

import itertools
import math

import numpy as np
import pytest

import placement
from placement import Contingency
from placement.errors import InputError
from placement.evaluation.losses import demand_after, failures, losses, score_after
from placement.evaluation.score import score
from placement.feasibility.feasible_plans import reasons_infeasible
from placement.io.plan_file import plan_document
from placement.model.configuration import Configuration
from placement.plan import evaluate
from placement.testing import every_configuration, random_instance
from tests.effort import examples, thinned


def world(seed, *, relay=True, metric=False, sites=5, clients=4):
    """Sites of which the first have clients; zones of two sites each."""
    rng = np.random.default_rng(seed)
    if metric:
        at = rng.uniform(0, 60, (sites, 2))
        site_rtt = np.linalg.norm(at[:, np.newaxis] - at[np.newaxis], axis=2)
    else:
        site_rtt = rng.uniform(1, 100, (sites, sites))
        np.fill_diagonal(site_rtt, 0)
    counts = rng.integers(0, 20, (clients, 5)).astype(float)
    counts[0] = (300, 0, 20, 9, 3)  # clients at site-0 ask most
    if not relay:
        counts[:, 1] = 0
    names = tuple(f"site-{i}" for i in range(sites))
    return placement.Instance(
        sites=names,
        clients=names[:clients],
        client_rtt=site_rtt[:clients] + 0.5,
        site_rtt=site_rtt,
        counts=counts,
        domains={"zone": tuple(f"zone-{i // 2}" for i in range(sites))},
    )


OPTIONS = [
    {"level": level, "together": together, "clients_move": moves, "leader_may_move": hands_over}
    for level, together, moves, hands_over in itertools.product(
        ("site", "zone"), (1, 2), (False, True), (False, True)
    )
]


def contingency(options, goal="worst", **values):
    others = {name: value for name, value in options.items() if name != "level"}
    return Contingency(options["level"], goal, **values, **others)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
def test_the_table_is_the_objective(options):
    for seed in range(examples(2)):
        problem = placement.Problem(world(seed), replicas=4, voters=3, quorum=1)
        for chosen in thinned(itertools.islice(every_configuration(problem), 0, None, 9), 3):
            table = failures(problem, chosen, **options)
            worst = max([table.normal, *(row.mean_latency for row in table.each)])
            asked = problem.replace(objective=contingency(options))
            assert asked.objective.value(asked, chosen) == pytest.approx(worst, rel=1e-12)
            plan = evaluate(asked, chosen)
            assert plan.failures == table  # what is shown is what was minimised
            if math.isinf(worst):
                continue
            document = plan_document(plan)
            assert document["headline"]["ms"] == pytest.approx(worst, rel=1e-12)
            shown = document["failures"]
            assert max(shown["normal_ms"], shown["worst_ms"]) == pytest.approx(worst, rel=1e-12)
            assert shown["clients_move"] is options["clients_move"]
            limit = worst * (1 + 1e-9)
            bounded = problem.replace(objective=contingency(options, "bounded", limit=limit))
            value = bounded.objective.value(bounded, chosen)
            assert value == pytest.approx(table.normal, rel=1e-12)
            tight = problem.replace(objective=contingency(options, "bounded", limit=worst * 0.999))
            assert math.isinf(tight.objective.value(tight, chosen))
            if any(options[name] for name in ("clients_move", "leader_may_move")):
                continue
            if options["together"] == 1:
                outages = Contingency(options["level"], "weighted", probability=0.02)
                weighted = problem.replace(objective=outages)
                # losses that the table leaves out are not noticed
                mean = (1 - 0.02 * len(table.each)) * table.normal
                mean += 0.02 * sum(row.mean_latency for row in table.each)
                value = weighted.objective.value(weighted, chosen)
                assert value == pytest.approx(mean, rel=1e-9)


def test_no_loss_improves_the_mean():
    """Without relayed operations, under one leader: clients stay, or RTTs are a metric."""
    for seed, moves in itertools.product(range(4), (False, True)):
        problem = placement.Problem(
            world(seed, relay=False, metric=moves), replicas=3, voters=3, quorum=1
        )
        for chosen in every_configuration(problem):
            for level in ("site", "zone"):
                for loss in losses(problem, level):
                    after = score_after(
                        problem, chosen, loss.sites, leader_may_move=True, clients_move=moves
                    )
                    for leader, value in after.items():
                        before = score(
                            problem.demand, leader, chosen.voters, chosen.replicas, 1
                        )  # fmt: skip
                        assert value >= before * (1 - 1e-12)


def test_what_may_improve_is_what_the_page_says():
    """Both conditions are needed: a relayed read, and a detour that beats the direct way."""
    relayed = placement.Instance(
        sites=("near", "far", "middle"),
        clients=("c",),
        client_rtt=[[1.0, 90.0, 2.0]],
        site_rtt=[[0.0, 90.0, 80.0], [90.0, 0.0, 5.0], [80.0, 5.0, 0.0]],
        counts=[[0, 1, 0, 0, 0]],
    )
    problem = placement.Problem(relayed, replicas=3, voters=3, quorum=1)
    chosen = Configuration(1, (0, 1, 2), (0, 1, 2))
    assert score_after(problem, chosen, [0]) == {1: pytest.approx(2 + 5)}  # 1 + 90 before
    detour = placement.Instance(
        sites=("home", "hub", "far"),
        clients=("home", "hub"),
        client_rtt=[[0.0, 5.0, 100.0], [5.0, 0.0, 10.0]],
        site_rtt=[[0.0, 5.0, 100.0], [5.0, 0.0, 10.0], [100.0, 10.0, 0.0]],
        counts=[[0, 0, 1, 0, 0], [0, 0, 0, 0, 0]],
    )
    problem = placement.Problem(detour, replicas=2, voters=2, quorum=1)
    chosen = Configuration(2, (1, 2), (1, 2))
    assert score_after(problem, chosen, [0]) == {2: 100.0}
    assert score_after(problem, chosen, [0], clients_move=True) == {2: 15.0}


def test_the_hop_by_hand():
    """Clients at a turn to b, 7.5 ms away, which is 7 ms from a and 30 ms from c."""
    instance = placement.Instance(
        sites=("a", "b", "c"),
        clients=("a", "b"),
        client_rtt=[[1.0, 7.5, 40.0], [7.5, 2.0, 30.0]],
        site_rtt=[[0.0, 7.0, 40.0], [7.0, 0.0, 30.0], [40.0, 30.0, 0.0]],
        counts=[[1, 0, 0, 0, 0], [1, 0, 0, 0, 0]],
    )
    problem = placement.Problem(instance, replicas=3, voters=3)
    assert demand_after(problem, frozenset([0])).client_rtt[0].tolist() == [
        [14.5, 7.5, 37.5],
        [7.5, 2.0, 30.0],
    ]
    both = demand_after(problem, frozenset([0, 1])).client_rtt[0]
    assert both.tolist() == [[80.0, 70.0, 40.0], [70.0, 60.0, 30.0]]
    assert demand_after(problem, frozenset([0, 1, 2])) is problem.demand


def test_a_loss_of_clients_only_is_noticed_when_they_move():
    problem = placement.Problem(world(3), replicas=2, voters=2, quorum=1)
    chosen = Configuration(3, (3, 4), (3, 4))
    assert [row.lost for row in failures(problem, chosen).each] == ["site-3", "site-4"]
    moving = failures(problem, chosen, clients_move=True)
    assert [row.lost for row in moving.each] == [f"site-{i}" for i in range(5)]


def test_no_loss_of_two_domains_where_there_is_one():
    instance = world(0).replace(domains={"zone": ("only",) * 5})
    with pytest.raises(
        InputError, match="no loss of 2 domains is possible: the level 'zone' has 1"
    ):
        placement.Problem(instance, replicas=3, voters=3, objective=Contingency("zone", together=2))


def test_goals_are_questions_of_measures():
    problem = placement.Problem(random_instance(2), replicas=4, voters=3)
    for goal, words in (
        (Contingency(), {"minimise": "mean after the loss of any site"}),
        (
            Contingency("region", "bounded", limit=80, leader_may_move=True),
            {"keep": "mean after the loss of any region, the leader may move <= 80 ms"},
        ),
        (
            Contingency("region", "weighted", probability=0.01),
            {"minimise": "mean over outages", "outages": {"any region": 0.01}},
        ),
    ):
        assert problem.replace(objective=goal).objective == problem.replace(**words).objective


def test_weighted_with_probability_zero_is_the_normal_optimum():
    problem = placement.Problem(random_instance(2), replicas=4, voters=3)
    weighted = problem.replace(objective=Contingency(goal="weighted", probability=0.0))
    mean = placement.solve(problem).mean_latency
    assert placement.solve(weighted).objective == pytest.approx(mean)


def test_quorums_that_can_spare_nobody_are_explained():
    problem = placement.Problem(random_instance(2), replicas=4, voters=2, objective=Contingency())
    (reason,) = reasons_infeasible(problem)
    assert reason.startswith("2 voters with quorum 2 can spare 0")
    pairs = problem.replace(voters=3, objective=Contingency(together=2))
    assert "needs 2 to be spared" in reasons_infeasible(pairs)[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"goal": "best"}, "goal: unknown goal"),
        ({"together": 3}, "together: out of range"),
        ({"goal": "bounded"}, "needs a limit"),
        ({"limit": 3.0}, "does not use a limit"),
        ({"goal": "weighted"}, "needs a probability"),
        ({"goal": "weighted", "probability": -0.1}, "probability: out of range"),
        ({"goal": "bounded", "limit": float("nan")}, "limit: out of range"),
    ],
)
def test_bad_objectives(arguments, message):
    with pytest.raises(InputError, match=message):
        Contingency(**arguments)


def test_probabilities_are_checked_against_the_instance():
    problem = placement.Problem(random_instance(2), replicas=4, voters=3)
    for probability, message in (
        ({"nowhere": 0.1}, "no such site or domain"),
        (0.5, "sum to more than 1"),
    ):
        goal = Contingency(goal="weighted", probability=probability)
        with pytest.raises(InputError, match=message):
            problem.replace(objective=goal)


def test_methods_that_cannot_take_it_refuse():
    problem = placement.Problem(random_instance(2), replicas=4, voters=3, objective=Contingency())
    tier2 = problem.replace(replicas=list(problem.instance.sites[:4]))
    with pytest.raises(placement.UnsupportedError, match="it takes no measures"):
        placement.solve(tier2, method="tier2")

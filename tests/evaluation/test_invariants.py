"""Changes of a problem that keep the score, and changes with a known effect on the score."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formulations.enumeration.exhaustive import METHOD as EXHAUSTIVE
from placement import Diversity, Instance, Operation, Options, Problem, Status
from placement.evaluation.score import score
from placement.methods.registry import run
from placement.model.demand import aggregate, decay_weights
from tests.evaluation.test_score import configurations
from tests.strategies import SIMPLE, instances, problems


def value(instance: Instance, chosen: tuple[Any, Any, Any], decay: float = 1.0) -> float:
    leader, voters, replicas = chosen
    return score(aggregate(instance, decay), leader, voters, replicas, len(voters) // 2 + 1)


@given(st.data(), instances(max_sites=8))
def test_order_of_clients_does_not_matter(data: st.DataObject, instance: Instance) -> None:
    chosen = data.draw(configurations(len(instance.sites)))
    order = list(data.draw(st.permutations(range(len(instance.clients)))))
    shuffled = instance.replace(
        clients=[instance.clients[c] for c in order],
        client_rtt=instance.client_rtt[order],
        counts=instance.counts[:, order],
    )
    assert value(shuffled, chosen) == pytest.approx(value(instance, chosen), rel=1e-13)


def distinct(instance: Instance) -> bool:
    """Return whether no client has two sites at the same RTT."""
    return all(len(set(row)) == len(row) for row in instance.client_rtt.tolist())


def reorder(instance: Instance, order: list[int]) -> Instance:
    return instance.replace(
        sites=[instance.sites[s] for s in order],
        client_rtt=instance.client_rtt[:, order],
        site_rtt=instance.site_rtt[np.ix_(order, order)],
        domains={k: [labels[s] for s in order] for k, labels in instance.domains.items()},
    )


@given(st.data(), instances(max_sites=8))
def test_order_of_sites_does_not_matter(data: st.DataObject, instance: Instance) -> None:
    assume(distinct(instance))
    leader, voters, replicas = data.draw(configurations(len(instance.sites)))
    order = list(data.draw(st.permutations(range(len(instance.sites)))))
    moved = (
        order.index(leader),
        [order.index(s) for s in voters],
        [order.index(s) for s in replicas],
    )
    found = value(reorder(instance, order), moved)
    assert found == value(instance, (leader, voters, replicas))


@given(st.data(), problems(kinds=SIMPLE | {"nested_caps", "min_domains"}, max_kinds=3))
def test_order_of_sites_does_not_change_the_optimum(data: st.DataObject, problem: Problem) -> None:
    assume(distinct(problem.instance))
    order = list(data.draw(st.permutations(range(len(problem.instance.sites)))))
    here = run(EXHAUSTIVE, problem, Options())
    there = run(EXHAUSTIVE, problem.replace(instance=reorder(problem.instance, order)), Options())
    assert here.status is there.status
    if here.found:
        assert there.score == pytest.approx(here.score, rel=1e-12)


@given(
    st.data(),
    instances(max_intervals=3),
    st.sampled_from([0.25, 8.0, 16.0]),
    st.sampled_from([0.5, 4.0]),
)
def test_scaling(data: st.DataObject, instance: Instance, time: float, load: float) -> None:
    """Powers of two scale every number exactly, so that the score scales to the last bit."""
    chosen = data.draw(configurations(len(instance.sites)))
    scaled = instance.replace(
        client_rtt=instance.client_rtt * time,
        site_rtt=instance.site_rtt * time,
        counts=instance.counts * load,
    )
    assert value(scaled, chosen) == value(instance, chosen) * time * load


@given(st.data(), instances(max_sites=8), st.floats(0, 1))
def test_a_client_may_be_split(data: st.DataObject, instance: Instance, share: float) -> None:
    chosen = data.draw(configurations(len(instance.sites)))
    split = instance.replace(
        clients=[*instance.clients, "the rest"],
        client_rtt=np.vstack([instance.client_rtt, instance.client_rtt[:1]]),
        counts=np.concatenate([instance.counts, (1 - share) * instance.counts[:, :1]], axis=1)
        * np.array([share] + [1.0] * len(instance.clients))[:, np.newaxis],
    )
    expected = value(instance, chosen)
    assert value(split, chosen) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@given(st.data(), instances(max_sites=8))
def test_an_operation_is_the_sum_of_its_round_trips(
    data: st.DataObject, instance: Instance
) -> None:
    chosen = data.draw(configurations(len(instance.sites)))
    parts, counts = [], []
    for o, operation in enumerate(instance.operations):
        for axis, weight in enumerate(operation.coefficients):
            row = [0.0] * 4
            row[axis] = 1.0
            parts.append(Operation(f"{operation.name} {axis}", *row))
            counts.append(instance.counts[:, :, o] * weight)
    apart = instance.replace(operations=parts, counts=np.stack(counts, axis=-1))
    assume(apart.counts.any())
    assert value(apart, chosen) == pytest.approx(value(instance, chosen), rel=1e-12, abs=1e-300)


@given(st.data(), instances(max_intervals=4), st.sampled_from([1.0, 1.25, 3.0, math.inf]))
def test_eq_2_by_recursion(data: st.DataObject, instance: Instance, decay: float) -> None:
    """agg_score(i) = agg_score(i − 1)/τ + score(i), interval by interval."""
    chosen = data.draw(configurations(len(instance.sites)))
    total = 0.0
    for counts in instance.counts:
        alone = value(instance.replace(counts=counts, intervals=()), chosen) if counts.any() else 0
        total = total / decay + alone
    assert value(instance, chosen, decay) == pytest.approx(total, rel=1e-12, abs=1e-300)


@given(st.data(), instances(max_intervals=3), st.sampled_from([1.0, 2.0, math.inf]))
def test_rtts_that_vary_only_in_name(data: st.DataObject, instance: Instance, decay: float) -> None:
    """The scenario form with equal matrices is the aggregate form."""
    chosen = data.draw(configurations(len(instance.sites)))
    periods = len(instance.intervals)
    varying = instance.replace(
        client_rtt=np.repeat(instance.client_rtt[np.newaxis], periods, axis=0),
        site_rtt=np.repeat(instance.site_rtt[np.newaxis], periods, axis=0),
    )
    expected = value(instance, chosen, decay)
    assert value(varying, chosen, decay) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@given(st.data(), instances(max_sites=7))
def test_a_voter_more_or_a_vote_less_is_never_slower(
    data: st.DataObject, instance: Instance
) -> None:
    """With the quorum held, more voters answer sooner; with the voters held, fewer votes do."""
    leader, voters, replicas = data.draw(configurations(len(instance.sites)))
    demand = aggregate(instance)
    votes = data.draw(st.integers(1, len(voters)))
    now = score(demand, leader, voters, replicas, votes)
    assert score(demand, leader, replicas, replicas, votes) <= now
    if votes > 1:
        assert score(demand, leader, voters, replicas, votes - 1) <= now


@given(st.data(), problems(max_sites=6, max_kinds=3))
def test_a_constraint_more_never_improves(data: st.DataObject, problem: Problem) -> None:
    sites = problem.instance.sites
    some = st.sets(st.sampled_from(sites), min_size=1, max_size=2).map(sorted)
    tighter: dict[str, Any] = data.draw(
        st.sampled_from(
            [
                {"diversity": (*problem.diversity, Diversity("region", cap=1))},
                {"diversity": (*problem.diversity, Diversity("provider", min_domains=2))},
                {"diversity": (*problem.diversity, Diversity("zone", "replicas", cap=1))},
                {"forbidden": sorted({*problem.forbidden, *data.draw(some)})},
                {"non_voters": sorted({*problem.non_voters, *data.draw(some)})},
                {"pinned": sorted({*problem.pinned, *data.draw(some)})},
                {"leaders": data.draw(some)},
            ]
        )
    )
    if problem.leaders is not None and "leaders" in tighter:
        tighter["leaders"] = sorted(set(tighter["leaders"]) & set(problem.leaders))
    before = run(EXHAUSTIVE, problem, Options())
    try:
        narrowed = problem.replace(**tighter)
    except ValueError:
        return  # contradicts another constraint outright
    after = run(EXHAUSTIVE, narrowed, Options())
    if before.status is Status.INFEASIBLE:
        assert after.status is Status.INFEASIBLE
    assert after.objective >= before.objective * (1 - 1e-12)


@pytest.mark.parametrize("decay", [0.99, 0.0, -1.0, math.nan, "fast"])
def test_a_decay_below_one_is_refused(decay: Any) -> None:
    with pytest.raises(ValueError, match=r"decay: .*: got .*, expected a number >= 1"):
        decay_weights(2, decay)

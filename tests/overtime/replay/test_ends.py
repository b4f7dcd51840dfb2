"""Blocks, interruptions, refusals, and the table that comes out."""

from __future__ import annotations

import numpy as np
import pytest

import placement
from placement.errors import InputError, UnsupportedError
from placement.model.constraints import Diversity
from placement.overtime.replay import Trace, replay
from tests.overtime.replay.cases import WITHOUT_SHARES, world27


def test_ctrl_c_keeps_what_is_done(monkeypatch):
    problem, trace, deployments = world27()

    def stop(at: int):
        def listen(progress):
            if progress.done == at:
                raise KeyboardInterrupt

        return listen

    whole = replay(problem, trace, deployments)
    some = replay(problem, trace, deployments, progress=stop(4))
    assert some.databases == trace.databases[:4]
    assert not some.complete
    assert whole.complete
    kept = some.outcome(2, "optimized").score
    np.testing.assert_array_equal(kept, whole.outcome(2, "optimized").score[:4])

    def at_once(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("placement.overtime.replay.run_replay.TabledReplay", at_once)
    with pytest.raises(KeyboardInterrupt):
        replay(problem, trace, deployments)


def test_ctrl_c_within_a_plan_ends_the_replay(monkeypatch):
    """Methods answer Ctrl-C with their best so far; the replay must not go on with that."""
    import placement.overtime.replay.deployments as module
    from placement.support.status import Termination

    problem, trace, deployments = world27(3)
    real, asked = module.run, []

    def interrupted(method, question, options):
        asked.append(1)
        plan = real(method, question, options)
        stop = len(asked) == 25  # one database takes a dozen plans
        return plan.replace(termination=Termination.INTERRUPTED) if stop else plan

    monkeypatch.setattr(module, "run", interrupted)
    result = replay(problem, trace, deployments, tiers=(3,))
    assert len(asked) == 25
    assert not result.complete
    assert 1 <= len(result.databases) < 3


def test_the_tidy_table():
    problem, trace, deployments = world27(3)
    table = replay(problem, trace, deployments, tiers=(1,)).to_frame()
    assert list(table.columns) == [
        "database", "interval", "tier", "strategy", "leader", "voters", "replicas",
        "operations", "score", "mean_latency", "overhead",
    ]  # fmt: skip
    assert len(table) == 3 * 5 * len(WITHOUT_SHARES)
    assert not table.duplicated(["database", "interval", "tier", "strategy"]).any()
    undefined = table[table["score"].isna()]
    assert set(undefined["strategy"]) == {"closest-to-writes", "preferred"}
    assert undefined["leader"].isna().all()
    assert undefined["voters"].isna().all()
    row = table[(table.strategy == "optimized") & (table.database == "db0")].iloc[0]
    assert row["interval"] == "b"
    assert row["leader"] in row["voters"].split("; ")
    assert row["mean_latency"] == pytest.approx(row["score"] / row["operations"])


def test_money_and_quorums_that_do_not_fit_are_refused():
    problem, trace, deployments = world27(2)
    sites = len(problem.instance.sites)
    prices = placement.Prices(np.ones(sites))
    rich = problem.replace(instance=problem.instance.replace(prices=prices), cost_weight=1.0)
    with pytest.raises(UnsupportedError, match="does not support budget and cost weight"):
        replay(rich, trace, deployments)
    with pytest.raises(InputError, match="fewer voters"):
        replay(problem.replace(quorum=3), trace, deployments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tiers": ()}, "no such tiers"),
        ({"tiers": (1, 4)}, "no such tiers"),
        ({"tiers": (1, 1)}, "no such tiers"),
        ({"strategies": ["best"]}, "unknown strategy"),
        ({"trace": Trace(("a",), ("1",), np.ones((1, 1, 60, 5)))}, "only learnt from"),
        ({"trace": Trace(("a",), ("1", "2"), np.ones((1, 2, 60, 5)))}, "other databases"),
        ({"trace": Trace(("a",), ("1", "2"), np.ones((1, 2, 2, 5)))}, "other clients"),
        ({"tiers": (3,), "method": "nonsense"}, "unknown method"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    problem, trace, deployments = world27(2)
    arguments = {"trace": trace, "deployments": deployments, **change}
    with pytest.raises(InputError, match=message):
        replay(problem, **arguments)


def test_methods_of_another_tier_are_refused():
    problem, trace, deployments = world27(2)
    with pytest.raises(UnsupportedError, match="cannot plan tier 3"):
        replay(problem, trace, deployments, tiers=(3,), method="leader")


def test_nobody_to_lead_is_named():
    problem, trace, deployments = world27(2)
    outside = [s for i, s in enumerate(problem.instance.sites) if not deployments.replicas[1, i]]
    with pytest.raises(InputError, match=r"no site may lead.*got 'db1'"):
        replay(problem.replace(leaders=outside), trace, deployments)
    crowded = problem.replace(diversity=[Diversity("continent", cap=1)], replicas=9, voters=9)
    with pytest.raises(InputError, match=r"database 'db0': problem: method 'exact' finds no"):
        replay(crowded, trace, deployments, tiers=(3,))

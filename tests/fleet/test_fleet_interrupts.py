"""Ctrl-C and the time limit at every moment of a search for a plan of a fleet."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from formulations.fleet import FleetSearch, pricing, rounding, solve_fleet
from formulations.fleet.column_pool import ColumnPool
from formulations.solvers import highs
from formulations.solvers.highs import Guard
from formulations.solvers.linear_program import LinearProgram
from formulations.solvers.statuses import StopReason
from placement import Problem, Termination
from placement.fleet import FleetMember, FleetPlan, FleetProblem, NoFleetPlan, SharedLimits
from placement.testing import random_instance
from tests.effort import seeds
from tests.fleet.test_fleet_search import drawn_fleet, optimum


def assert_sound(fleet: FleetProblem, why: Termination, best: float) -> FleetPlan | NoFleetPlan:
    """Search; assert that what is returned holds, and that it says why it ended."""
    found = solve_fleet(fleet, FleetSearch(gap=0.0))
    assert found.termination in (why, Termination.FINISHED)
    assert found.bound <= best * (1 + 1e-9) + 1e-9
    if isinstance(found, FleetPlan):
        assert not found.violations
        assert found.value >= best * (1 - 1e-9) - 1e-9
    else:
        assert not found.proven or best == math.inf
        assert found.reasons
    return found


def raising(error: type[BaseException], call: Callable[..., object], when: int) -> object:
    """Return a function that raises an error once, at a call of that number."""
    calls = 0

    def counted(*args: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls == when:
            raise error
        return call(*args, **named)

    return counted


def crowded() -> FleetProblem:
    """Return databases that all want the same site, which takes one of them."""
    base = random_instance(5, sites=5, clients=4)
    rng = np.random.default_rng(0)
    members = [
        FleetMember(
            f"db-{number}",
            Problem(base.replace(counts=base.counts * rng.uniform(0.5, 2, base.counts.shape)),
                    replicas=2, voters=1),
            storage_gb=float(rng.uniform(5, 10)),
        )
        for number in range(6)
    ]  # fmt: skip
    return FleetProblem(members, SharedLimits(storage_gb=np.full(5, 21.0)))


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("seed", seeds(1, 12))
def test_the_answer_holds_whenever_the_search_is_stopped(
    seed: int, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop comes at each call of pricing, of the master and of the integer program in turn."""
    fleet = crowded() if seed == 0 else drawn_fleet(seed + 40)
    best = optimum(fleet)
    why = Termination.TIME_LIMIT if error is TimeoutError else Termination.INTERRUPTED
    places: list[tuple[object, str]] = [
        (pricing, "price_member"),
        (rounding, "price_member"),
        (ColumnPool, "relax"),
        (ColumnPool, "choose"),
        (ColumnPool, "add"),
    ]
    ended = set()
    for owner, name in places:
        call = getattr(owner, name)
        for when in (1, 4, 12, 80) if seed == 0 else range(1, 200, 3):
            monkeypatch.setattr(owner, name, raising(error, call, when))
            found = assert_sound(fleet, why, best)
            ended.add((type(found), found.termination))
            if isinstance(found, NoFleetPlan) and math.isfinite(found.bound):
                assert found.prices is not None  # they prove the bound
            if found.termination is Termination.FINISHED:
                break  # fewer calls than that
        monkeypatch.setattr(owner, name, call)
    if seed == 0:
        assert ended == {
            (NoFleetPlan, why), (FleetPlan, why), (FleetPlan, Termination.FINISHED)
        }  # fmt: skip


def test_an_interrupted_integer_program_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS notes Ctrl-C and returns what it has; the search has to look at that."""

    def interrupted(program: LinearProgram, guard: Guard) -> highs.HighsResult:
        found = highs.run_highs(program, guard)
        return highs.HighsResult(
            found.verdict, StopReason.INTERRUPTED, found.values, found.objective, found.bound,
            found.nodes, found.iterations, found.seconds,
        )  # fmt: skip

    monkeypatch.setattr("formulations.fleet.column_pool.run_highs", interrupted)
    found = solve_fleet(crowded(), FleetSearch(gap=0.0))
    assert found.termination is Termination.INTERRUPTED
    assert math.isfinite(found.bound)


def test_no_time_is_no_plan_and_says_so() -> None:
    found = solve_fleet(crowded(), FleetSearch(seconds=0.0))
    assert isinstance(found, NoFleetPlan)
    assert not found.proven
    assert found.termination is Termination.TIME_LIMIT
    assert found.reasons == ("stopped (time limit) before every database was priced: no bound yet",)
    assert found.bound == -math.inf


def test_a_column_that_was_half_added_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between two lists of the pool leaves a column without its use."""
    calls = 0
    add = ColumnPool.add

    def half(self: ColumnPool, member: int, configuration: object) -> bool:
        nonlocal calls
        calls += 1
        if calls == 8:
            self.owner.append(member)
            raise KeyboardInterrupt
        return add(self, member, configuration)  # type: ignore[arg-type]

    monkeypatch.setattr(ColumnPool, "add", half)
    found = solve_fleet(crowded(), FleetSearch(gap=0.0))
    assert found.termination is Termination.INTERRUPTED


@pytest.mark.skipif(os.name != "posix", reason="signals of a group of processes")
@pytest.mark.parametrize(
    ("rounds", "processes"),
    [(1, 1), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((0, 2), (1, 2), (2, 2)))],
)
def test_ctrl_c_leaves_the_best_plan_so_far(rounds: int, processes: int, tmp_path: Path) -> None:
    """The whole group gets SIGINT, as from a terminal, after so many rounds of the search."""
    import placement

    sites = placement.load("world27").sites
    limits = tmp_path / "limits.csv"
    limits.write_text("\n".join(["site,storage_gb", *(f"{site},400" for site in sites)]))
    command = [
        sys.executable, "-m", "placement", "fleet", "world27", "--fleet", "150",
        "--replicas", "3", "--voters", "3", "--limits", str(limits), "--gap", "0",
        "--processes", str(processes), "--progress", "-o", str(tmp_path / "plan.json"),
    ]  # fmt: skip
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stderr is not None
        if rounds:
            for line in running.stderr:
                if line.startswith(f"round {rounds} "):
                    break
        else:
            time.sleep(0.5)  # wherever that is: before the first round or in it
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert "Traceback" not in err
    assert running.returncode in ((130,) if rounds else (130, -signal.SIGINT)), err
    if "stopped (interrupted)" in out and "Answer       nothing found" in out:
        assert ("no plan is below" in out) == ("no bound yet" not in out)
    elif (tmp_path / "plan.json").exists():
        document = json.loads((tmp_path / "plan.json").read_text())
        assert document["bound"] <= document["value"]

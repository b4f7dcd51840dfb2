"""Ctrl-C, the time limit or a kill at every moment of a search for a plan of a fleet."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import placement
from formulations.fleet import FleetSearch, pricing, rounding, solve_fleet, tuning
from formulations.fleet.column_pool import ColumnPool, Master
from formulations.fleet.pricing import BATCH, Checkpoint, ProcessWorkers, fleet_digest
from formulations.solvers import highs
from formulations.solvers.highs import Guard
from formulations.solvers.linear_program import LinearProgram
from formulations.solvers.statuses import StopReason
from placement import Problem, Termination
from placement.errors import InputError, SolverError
from placement.fleet import (
    FleetMember,
    FleetPlan,
    FleetProblem,
    NoFleetPlan,
    SharedLimits,
    SharedRows,
    synthetic_fleet,
)
from placement.fleet.fleet_tables import fleet_document
from placement.overtime.replay.generated_fleets import client_ground
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


@pytest.mark.parametrize("most", [0, 1000])
@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("seed", seeds(1, 12))
def test_the_answer_holds_whenever_the_search_is_stopped(
    seed: int, error: type[BaseException], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop comes at each call of pricing, of the master and of the integer program in turn."""
    monkeypatch.setattr(tuning, "TABLE_CONFIGURATIONS", most)
    fleet = crowded() if seed == 0 else drawn_fleet(seed + 40)
    best = optimum(fleet)
    why = Termination.TIME_LIMIT if error is TimeoutError else Termination.INTERRUPTED
    places: list[tuple[object, str]] = [
        (pricing, "price_members" if most else "price_member"),
        (rounding, "price_members" if most else "price_member"),
        (Master, "solve"),
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

    def half(self: ColumnPool, member: int, *more: object) -> bool:
        nonlocal calls
        calls += 1
        if calls == 8:
            self.owner.append(member)
            raise KeyboardInterrupt
        return add(self, member, *more)  # type: ignore[arg-type]

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
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
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


slow = pytest.mark.slow
GAP = 0.05

KILLED = """
import os, signal, sys
from importlib import import_module
from placement.cli.dispatch import main

where, name, calls, arguments = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
home, seen = import_module(where), 0
for part in name.split(".")[:-1]:
    home = getattr(home, part)
name = name.split(".")[-1]
original = getattr(home, name)

def killed(*args, **named):
    global seen
    seen += 1
    if seen == calls:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*args, **named)

setattr(home, name, killed)
sys.exit(main(arguments))
"""
"""The command line, killed at a call of a function."""

PHASES = {
    "before the first answer": ("formulations.fleet.pricing", "price_members", 1),
    "in the first pass": ("formulations.fleet.pricing", "price_members", 2),
    "as a file appears": ("pathlib", "Path.replace", 3),
    "behind the first pass": ("formulations.fleet.column_pool", "Master.solve", 1),
    "in a later pass": ("formulations.fleet.pricing", "price_members", 6),
    "in a later master": ("formulations.fleet.column_pool", "Master.solve", 4),
    "at a dive": ("formulations.fleet.rounding", "Rounding.dive", 1),
    "as what is split is placed": ("formulations.fleet.rounding", "Rounding.place_in_order", 1),
    "as the plan is written": ("placement.fleet.fleet_tables", "fleet_document", 1),
}


def drawn(databases: int) -> FleetProblem:
    instance = placement.load("world27")
    ground = client_ground(instance)
    return synthetic_fleet(
        instance, ground.clients, databases, seed=3, groups=databases, owner=ground.owner
    )


def content(plan: object) -> str:
    assert isinstance(plan, FleetPlan)
    return json.dumps(fleet_document(plan))


def command(tmp_path: Path, output: str) -> list[str]:
    """Return a call of ``placement fleet`` whose limits bind, and write its table of limits."""
    sites = placement.load("world27").sites
    limits = tmp_path / "limits.csv"
    rows = [f"{site},{500 + 10 * number}" for number, site in enumerate(sites)]
    limits.write_text("\n".join(["site,storage_gb", *rows]) + "\n")
    return [
        "fleet", "world27", "--fleet", "300", "--replicas", "3", "--voters", "3",
        "--limits", str(limits), "--gap", "0.002", "-o", str(tmp_path / output),
    ]  # fmt: skip


def run_killed(phase: tuple[str, str, int], arguments: list[str]) -> int:
    where, name, calls = phase
    script = [sys.executable, "-W", "ignore", "-c", KILLED, where, name, str(calls), *arguments]
    return subprocess.run(script, capture_output=True, timeout=300).returncode


@slow
@pytest.mark.parametrize("phase", PHASES.values(), ids=PHASES)
def test_a_killed_search_goes_on_to_the_same_bytes(
    phase: tuple[str, str, int], tmp_path: Path
) -> None:
    from placement.cli.dispatch import main

    kept = ["--checkpoint", str(tmp_path / "kept")]
    assert run_killed(phase, command(tmp_path, "plan.json") + kept) == -signal.SIGKILL
    assert not (tmp_path / "plan.json").exists()
    assert main(command(tmp_path, "plan.json") + kept) == 0
    assert main(command(tmp_path, "whole.json")) == 0
    assert (tmp_path / "plan.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert len(json.loads((tmp_path / "plan.json").read_text())["rounds"]) > 1


def test_answers_that_are_kept_are_not_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pricing, "BATCH", 4)
    fleet = crowded()
    search = FleetSearch(gap=0.0, checkpoint=tmp_path / "kept")
    whole = content(solve_fleet(fleet, search))

    def refuse(*_: object) -> None:
        raise AssertionError("priced again")

    priced = pricing.price_members
    monkeypatch.setattr(pricing, "price_members", refuse)
    assert content(solve_fleet(fleet, search)) == whole
    # without the last answers of a pass only these are missing
    last = max((tmp_path / "kept").glob("pass-0001-*.json"))
    last.unlink()
    with pytest.raises(AssertionError, match="priced again"):
        solve_fleet(fleet, search)
    monkeypatch.setattr(pricing, "price_members", priced)
    assert content(solve_fleet(fleet, search)) == whole
    assert content(solve_fleet(fleet, FleetSearch(gap=0.0))) == whole


def test_answers_at_other_prices_are_not_used(tmp_path: Path) -> None:
    fleet = drawn(20)
    kept = Checkpoint(tmp_path / "kept", fleet, {})
    prices = np.zeros(len(SharedRows(fleet).capacity))
    with pricing.Pricer(SharedRows(fleet), checkpoint=kept) as pricer:
        answers = list(pricer.price(prices))
    assert kept.load(0, 0, 20, prices) == answers
    assert kept.load(0, 0, 20, prices + 1e-300) == []
    assert kept.load(0, 0, 19, prices) == []
    assert kept.load(1, 0, 20, prices) == []


def test_the_checkpoint_of_another_search_is_refused(tmp_path: Path) -> None:
    fleet, other = drawn(20), drawn(21)
    assert fleet_digest(fleet) == fleet_digest(drawn(20)) != fleet_digest(other)
    solve_fleet(fleet, FleetSearch(gap=GAP, checkpoint=tmp_path / "kept"))
    with pytest.raises(InputError, match=r"search.json: fleet: .*of another fleet"):
        solve_fleet(other, FleetSearch(gap=GAP, checkpoint=tmp_path / "kept"))
    with pytest.raises(InputError, match=r"search.json: gap: .*of another search"):
        solve_fleet(fleet, FleetSearch(gap=GAP / 2, checkpoint=tmp_path / "kept"))
    broken = tmp_path / "kept" / "pass-0000-0000000.json"
    broken.write_text(broken.read_text()[:-5])
    with pytest.raises(InputError, match=r"pass-0000.*not a file of a checkpoint"):
        solve_fleet(fleet, FleetSearch(gap=GAP, checkpoint=tmp_path / "kept"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(InputError):
        solve_fleet(fleet, FleetSearch(gap=GAP, checkpoint=tmp_path / "mine"))
    assert [each.name for each in (tmp_path / "mine").iterdir()] == ["notes.txt"]


@slow
def test_a_process_that_dies_loses_nothing() -> None:
    fleet = drawn(3 * BATCH)
    killed: list[int] = []

    def kill() -> None:
        while not killed:
            time.sleep(0.2)
            alive = [one.pid for one in multiprocessing.active_children() if one.is_alive()]
            if len(alive) > 1 and alive[0] is not None:
                os.kill(alive[0], signal.SIGKILL)
                killed.append(alive[0])

    threading.Thread(target=kill, daemon=True).start()
    found = content(solve_fleet(fleet, FleetSearch(gap=GAP, processes=2)))
    assert killed
    assert found == content(solve_fleet(fleet, FleetSearch(gap=GAP)))


def test_a_process_that_still_starts_finds_its_sign_to_stop_after_the_search() -> None:
    workers = ProcessWorkers(drawn(20), 1)
    workers.submit(0, 20, np.zeros(3))
    sign = weakref.ref(workers._stop)
    workers.close()
    del workers
    assert sign() is not None


class Dying(ProcessWorkers):
    """Workers in name only: each batch is lost."""

    def submit(self, first: int, last: int, prices: object) -> object:  # type: ignore[override]
        raise self.lost[0]("gone")

    def restart(self) -> None:
        """Nothing helps."""


def test_a_batch_that_kills_its_worker_each_time_is_an_error() -> None:
    fleet = drawn(20)
    workers = Dying(fleet, 1)
    with pytest.raises(SolverError, match=r"lost 4 times while databases 1 to 20 were priced"):
        list(workers.run([(0, 20, np.zeros(3))]))
    workers.close()


# --- a Dask cluster -----------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Give the address of a scheduler on loopback and its two workers, real processes."""
    pytest.importorskip("distributed")
    module, file = [sys.executable, "-m"], tmp_path / "scheduler.json"
    started = [
        subprocess.Popen(
            [*module, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
             "--no-dashboard", "--scheduler-file", str(file)],
            stderr=subprocess.DEVNULL,
        )
    ]  # fmt: skip
    try:
        end = time.monotonic() + 120
        while not file.exists() or not file.read_text():
            assert time.monotonic() < end
            assert started[0].poll() is None
            time.sleep(0.1)
        started += [
            subprocess.Popen(
                [*module, "distributed.cli.dask_worker", "--scheduler-file", str(file),
                 "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1",
                 "--local-directory", str(tmp_path / f"worker-{number}")],
                stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
            for number in range(2)
        ]  # fmt: skip
        yield json.loads(file.read_text())["address"], started[1:]
    finally:
        for process in reversed(started):
            process.kill()
            process.wait(30)


@slow
@pytest.mark.parametrize("kill", [False, True])
def test_a_cluster_gives_the_same_bytes(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], kill: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, workers = cluster
    fleet = drawn(3 * BATCH)
    submit, calls = pricing.DaskWorkers.submit, []

    def counted(self: pricing.DaskWorkers, *asked: object) -> object:
        calls.append(asked)
        if kill and len(calls) == 5:
            workers[0].kill()
        return submit(self, *asked)  # type: ignore[arg-type]

    monkeypatch.setattr(pricing.DaskWorkers, "submit", counted)
    found = content(solve_fleet(fleet, FleetSearch(gap=GAP, dask=address)))
    assert len(calls) > 5
    assert (workers[0].poll() is not None) == kill
    assert found == content(solve_fleet(fleet, FleetSearch(gap=GAP)))


@slow
def test_no_scheduler_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(tuning, "CONNECT_SECONDS", 0.5)
    with pytest.raises(InputError, match="--dask: no scheduler answers"):
        solve_fleet(drawn(20), FleetSearch(dask="tcp://127.0.0.1:9"))


@pytest.mark.parametrize("address", ["", "nonsense", "tcp://", "http://host/", "host:port"])
def test_what_is_no_address_of_a_scheduler_is_refused(address: str) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="--dask: not an address"):
        solve_fleet(drawn(5), FleetSearch(dask=address))

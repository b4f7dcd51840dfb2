"""A day of demand against a real etcd: `placement watch` recommends, and its moves are carried out.

An hour of the day takes some seconds. At the end of each hour the counts of the demand are given to
``placement watch``. Where it recommends a move, the runbook of ``placement export`` is carried out
while the clients go on: learners are added and promoted, the leadership moves, members go.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import placement
from benchmarks.harness.result_files import Row
from benchmarks.live.etcd.clients import EtcdClients, Measured
from benchmarks.live.etcd.latency import busy_read, quorum_wait
from benchmarks.live.etcd.world import EtcdBench
from benchmarks.live.layouts import SITES, Layout
from benchmarks.live.live_world import LOCAL, PUT, live_instance, predicted
from placement import Instance
from placement.io.instance_folder import save_instance
from placement.support.checks import FloatArray

__all__ = ["day"]

CLIENTS = (
    "Central US", "West Europe", "Brazil South", "Southeast Asia", "Australia East", "Japan East",
    "Central India",
)  # fmt: skip
SHARES = {"put": 3, "read": 2, "local": 5}
WATCH = (
    "--replicas", "4", "--voters", "3", "--decay", "2", "--horizon", "6", "--leader-price", "2",
    "--voter-price", "4", "--add-price", "12",
)  # fmt: skip
_WORKERS = 4
_RATE = 40.0
"""Operations a second of all clients in the busiest hour."""


@dataclass(frozen=True, slots=True)
class _Move:
    """A recommendation that was carried out, with the times at which it began and ended."""

    begin: float
    end: float
    layout: Layout


def day(quick: bool) -> Iterator[Row]:
    """Yield a row per hour, and one of the whole day.

    Columns of an hour: hour, action, leader, voters, learners (after its move), moving (s),
    operations, mix (operations outside moves, by kind), failed, again (tried more than once),
    predicted and measured (mean ms of the operations outside moves), in the move, unmoved
    (predicted with the first configuration).
    """
    instance = live_instance(placement.load("azure"), SITES, CLIENTS)
    hours = _hours(instance)
    begin, length = (14, 4) if quick else (0, len(hours))
    hours = np.roll(hours, 1 - begin, axis=0)[: length + 1]  # the first is the hour before
    seconds = 8
    folder = Path(tempfile.mkdtemp(prefix="live-day-"))
    try:
        yield from _replay(instance, hours, seconds, _WatchProcess(instance, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _hours(instance: Instance) -> FloatArray:
    """Return operations by hour and client of the instance, from half hours of a bundled day."""
    world = placement.load("azure")
    rows = np.array([world.client_index(name) for name in instance.clients])
    halves = world.counts[:, rows, :].sum(axis=2)
    hours: FloatArray = halves[0::2] + halves[1::2]
    return hours


class _WatchProcess:
    """The command ``placement watch`` on a folder of intervals."""

    def __init__(self, instance: Instance, folder: Path) -> None:
        self.instance, self.folder = instance, folder
        self.intervals = folder / "intervals"
        self.intervals.mkdir()
        save_instance(instance, folder / "instance")

    def after(self, hour: int, counts: Sequence[float]) -> Mapping[str, object]:
        """Return the recommendation after an hour."""
        total = sum(SHARES.values())
        lines = ["interval,client," + ",".join(SHARES)]
        for client, count in zip(self.instance.clients, counts, strict=True):
            cells = ",".join(f"{count * share / total:.3f}" for share in SHARES.values())
            lines.append(f"{hour},{client},{cells}")
        part = self.intervals / f".{hour:02d}.csv"
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")
        part.rename(self.intervals / f"{hour:02d}.csv")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "placement", "watch", self.folder / "instance"),
                *(self.intervals, "--state", self.folder / "watch.db", "--settle", "0", "--json"),
                *WATCH,
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        found: Mapping[str, object] = answers[-1]
        assert int(str(found["interval"])) == hour
        return found


def _layout(said: Mapping[str, object]) -> Layout:
    """Return the configuration to run after a recommendation, its leader first."""
    voters, replicas = said["voters"], said["replicas"]
    assert isinstance(voters, list)
    assert isinstance(replicas, list)
    learners = tuple(site for site in replicas if site not in voters)
    return Layout("watched", tuple(voters), learners, (str(said["leader"]),))


def _replay(
    instance: Instance, hours: FloatArray, seconds: float, watch: _WatchProcess
) -> Iterator[Row]:
    first = _layout(watch.after(0, hours[0].tolist()))
    with EtcdBench(instance) as bench:
        bench.start(first, first.leaders[0])
        mix = {
            client: [
                f"{kind}:{share}:{'near' if kind == 'local' else 'leader'}"
                for kind, share in SHARES.items()
            ]
            for client in instance.clients
        }
        clients = bench.clients(
            mix, workers=_WORKERS, pause="2s", patience="20s", attempt="2s", find="500ms"
        )
        begins: list[float] = []
        moves = [_Move(0.0, 0.0, first)]
        actions = []
        for hour, counts in enumerate(hours[1:]):
            _set_rates(clients, instance, counts, hours.sum(axis=1).max())
            begins.append(time.time())
            if hour:  # as soon as the hour before is over
                said = watch.after(hour, hours[hour].tolist())
                actions.append(str(said["action"]))
                if said["action"] == "move":
                    moves.append(_move(bench, clients, _layout(said)))
            else:
                actions.append("start")
            time.sleep(max(0.0, begins[-1] + seconds - time.time()))
        ended = time.time()
        clients.end()
        found, missing = clients.finish(120)
    kept = [one for one in found if begins[0] + 3 < one.start < ended]
    for hour, begin in enumerate(begins):
        end = begins[hour + 1] if hour + 1 < len(begins) else ended
        mine = [one for one in kept if begin <= one.start < end]
        yield _row(instance, hour, actions[hour], mine, moves, begin, end)
    yield {
        "operations": len(kept),
        "failed": sum(not one.done for one in kept),
        "again": sum(one.attempts > 1 for one in kept),
        "writes missing": missing,
        "moves": len(moves) - 1,
        "seconds of an hour": seconds,
        "longest ms": max(one.ms for one in kept),
    }


def _set_rates(clients: EtcdClients, instance: Instance, counts: FloatArray, most: float) -> None:
    """Let the clients of each place work as often as the hour's demand there."""
    for client, count in zip(instance.clients, counts, strict=True):
        rate = max(_RATE * float(count) / float(most), 0.2)
        clients.rest(client, max(1000 * _WORKERS / rate - 120, 1))


def _move(bench: EtcdBench, clients: EtcdClients, layout: Layout) -> _Move:
    """Carry out the runbook to a configuration while clients run."""
    begin = time.time()
    assert bench.cluster is not None
    come = [bench.cluster.url(site) for site in layout.replicas]
    clients.know(sorted({*bench.cluster.urls, *come}))
    bench.reach(layout.deployment(layout.leaders[0]))
    clients.know(come)
    return _Move(begin, time.time(), layout)


def _row(
    instance: Instance,
    hour: int,
    action: str,
    found: Sequence[Measured],
    moves: Sequence[_Move],
    begin: float,
    end: float,
) -> Row:
    """Return the row of an hour; the prediction has the operations that were really issued."""
    before = [move for move in moves if move.end <= begin][-1]
    mine = [move for move in moves if begin < move.end <= end]
    now = mine[-1] if mine else before
    rate = sum(one.operation == "read" for one in found) / (end - begin) / 1000
    tables = {id(move.layout): _model(instance, move.layout, rate) for move in moves}

    def expected(one: Measured, move: _Move) -> float:
        return tables[id(move.layout)][one.client, one.operation]

    moving = [one for one in found if any(m.begin - 0.5 <= one.start < m.end + 1 for m in mine)]
    known = set(map(id, moving))
    calm = [one for one in found if id(one) not in known]
    model = [expected(one, now if one.start >= now.end else before) for one in calm]
    return {
        "hour": hour,
        "action": action,
        "leader": now.layout.leaders[0],
        "voters": list(now.layout.voters),
        "learners": list(now.layout.learners),
        "moving": round(sum(m.end - m.begin for m in mine), 1),
        "operations": len(found),
        "mix": {kind: sum(one.operation == kind for one in calm) for kind in SHARES},
        "failed": sum(not one.done for one in found),
        "again": sum(one.attempts > 1 for one in found),
        "predicted": _mean(model),
        "measured": _mean([one.ms for one in calm]),
        "in the move": _mean([one.ms for one in moving]),
        "unmoved": _mean([expected(one, moves[0]) for one in calm]),
    }


def _model(instance: Instance, layout: Layout, rate: float) -> dict[tuple[str, str], float]:
    """Return the model's latencies where linearizable reads come at a rate, per ms."""
    leader = layout.leaders[0]
    read = busy_read(rate, quorum_wait(instance, layout, leader), "read")
    now = instance.replace(operations=(PUT, read, LOCAL))
    return predicted(now, leader, layout.voters, layout.replicas)


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 2) if values else None

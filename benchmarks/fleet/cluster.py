"""Fleets on a cluster: recorded batch times, and the bookkeeping of a master and its workers.

    python -m benchmarks run fleet.cluster [--sizes 12000 24000] [--simulate 10000 1000000]

*Recorded.* Fleets of different databases at 48 sites are planned in one process. The CPU time of
every batch of 250 databases is recorded, and of all that a master does: the linear programs of the
sample and of the blocks, new columns, bounds, and the plan at the end. Answers are pickled by the
workers and unpickled by the master, as they would be on the wire.

*Simulated.* A larger fleet has as many rounds, and batches that take the recorded times of the
same round. The master sends each worker a batch, keeps the next ones ready, and takes in one answer
after another; it alone computes between two rounds. So workers wait for the slowest of a round and
for the master, as they would. The time of the master for an answer is the recorded one.

*Extrapolated.* A million databases are not planned here. The time of the master between two rounds
is taken to grow in proportion to the number of databases: it solves a program of fixed size for the
sample, and one for each 2,500 databases. The plan at the end takes a fixed time for the largest
databases and a time for each database: a line through the recorded fleets, which stands in the
results.
The sample that gives the first prices has a thousand databases, however many there are.

Writes benchmarks/results/fleet_cluster.json.
"""

from __future__ import annotations

import argparse
import heapq
import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

import placement
from benchmarks.harness.machine import describe
from benchmarks.harness.result_files import RESULTS, save_json
from benchmarks.harness.study import Study
from formulations.fleet.column_generation import FleetSearch, solve_with_pricer
from formulations.fleet.price_member import PricedMember, price_member
from formulations.fleet.pricing import Pricer
from formulations.fleet.pricing_workers import BATCH, batches_of
from placement.fleet import FleetPlan, SharedRows, synthetic_fleet
from placement.overtime.replay.generated_fleets import client_ground
from placement.support.checks import FloatArray

__all__ = ["STUDY", "Pass", "Record", "Simulated", "plan_line", "record", "simulate"]

FILE = RESULTS / "fleet_cluster.json"

_SITES = "azure"
"""Bundled data set with 48 sites."""


@dataclass
class Pass:
    """Times of one pass over the databases, CPU seconds.

    Attributes
    ----------
    batches
        Of the workers, a number for each batch.
    answer
        Of the master for the answers of a batch, on average.
    before
        Of the master between the last pass and this one.
    sample
        Whether the pass was over the sample that gives the first prices.
    """

    batches: list[float] = field(default_factory=list)
    answer: float = 0.0
    before: float = 0.0
    sample: bool = False


@dataclass(frozen=True)
class Record:
    """Recorded search.

    Attributes
    ----------
    databases
        How many.
    passes
        In order.
    after
        CPU seconds of the master after the last pass: the plan.
    gap
        Of the plan.
    """

    databases: int
    passes: list[Pass]
    after: float
    gap: float


@dataclass
class _Recorder:
    """Passes recorded so far, and the CPU time at the end of the last."""

    ended: float
    passes: list[Pass] = field(default_factory=list)


class _RecordingPricer(Pricer):
    """Pricer in this process that records its batches."""

    def __init__(self, rows: SharedRows, recorder: _Recorder, *, sample: bool = False) -> None:
        super().__init__(rows)
        self.recorder, self.sample = recorder, sample

    def for_rows(self, rows: SharedRows) -> _RecordingPricer:
        """Return a pricer of a sample with the same recorder."""
        return _RecordingPricer(rows, self.recorder, sample=True)

    def price(self, prices: FloatArray) -> Iterator[PricedMember]:
        """Yield the answers in order, each batch through pickle."""
        began = time.process_time()
        one = Pass(before=began - self.recorder.ended, sample=self.sample)
        members = self._rows.fleet.members
        batches = batches_of(len(members))
        of_batch = np.broadcast_to(prices, (len(batches), len(self._rows.capacity)))
        for (first, last), own in zip(batches, of_batch, strict=True):
            start = time.process_time()
            batch = [price_member(self._rows, member, own) for member in members[first:last]]
            sent = pickle.dumps(batch)
            worked = time.process_time()
            one.batches.append(worked - start)
            answer: list[PricedMember] = pickle.loads(sent)
            yield from answer  # the search makes columns of them
            one.answer += time.process_time() - worked
        one.answer /= len(one.batches)
        self.recorder.passes.append(one)
        self.recorder.ended = time.process_time()


def record(databases: int, *, seed: int = 1, gap: float = 1e-3) -> Record:
    """Plan a fleet of different databases in one process, and record where the time goes."""
    instance = placement.load(_SITES)
    ground = client_ground(instance)
    fleet = synthetic_fleet(instance, ground.clients, databases, seed=seed, owner=ground.owner)
    recorder = _Recorder(time.process_time())
    rows = SharedRows(fleet)
    plan = solve_with_pricer(rows, _RecordingPricer(rows, recorder), FleetSearch(gap=gap))
    after = time.process_time() - recorder.ended
    if not isinstance(plan, FleetPlan):
        raise RuntimeError(f"no plan of {databases:,} databases: {plan.reasons}")
    return Record(databases, recorder.passes, after, plan.gap)


@dataclass(frozen=True)
class Simulated:
    """Result of a simulated search.

    Attributes
    ----------
    wall
        Seconds from start to end.
    workers
        CPU seconds of all workers.
    master
        CPU seconds of the master.
    """

    wall: float
    workers: float
    master: float

    @property
    def share(self) -> float:
        """Part of the master in all CPU time."""
        return self.master / (self.master + self.workers)


def simulate(
    recorded: Record,
    databases: int,
    workers: int,
    after: float | None = None,
) -> Simulated:
    """Run the batches of a larger fleet through the bookkeeping of a master and its workers.

    Parameters
    ----------
    recorded
        The search whose passes, batch times and master times are taken.
    databases
        Of the larger fleet.
    workers
        Number of workers; the master has a separate core.
    after
        Seconds of the plan at the end; None: in proportion to the databases.

    Notes
    -----
    A worker takes the next batch as soon as it is free; the master takes in one answer after the
    other. O(passes · batches · log workers).
    """
    scale = databases / recorded.databases
    now = busy = worked = 0.0
    for one in recorded.passes:
        between = one.before * (1.0 if one.sample else scale)
        times = np.array(one.batches)
        if not one.sample:
            times = np.resize(times, -(-databases // BATCH))  # the recorded ones again and again
        now += between
        for arrival in _arrivals(now, times.tolist(), workers):
            now = max(now, arrival) + one.answer
        busy += between + one.answer * len(times)
        worked += float(times.sum())
    last = recorded.after * scale if after is None else after
    return Simulated(now + last, worked, busy + last)


def _arrivals(start: float, times: Sequence[float], workers: int) -> list[float]:
    """Return when the answers of batches arrive, in order, if free workers take the next one."""
    free = [start] * workers
    found = []
    for seconds in times:
        found.append(free[0] + seconds)
        heapq.heapreplace(free, free[0] + seconds)
    return sorted(found)


def plan_line(records: Sequence[Record]) -> tuple[float, float]:
    """Fit fixed seconds, and seconds for each database, of the plan at the end."""
    sizes, seconds = [each.databases for each in records], [each.after for each in records]
    if len(records) < 2:
        return 0.0, seconds[0] / sizes[0]
    slope, fixed = np.polyfit(sizes, seconds, 1)
    if slope <= 0 or fixed <= 0:  # too much noise for a line: in proportion to the largest
        return 0.0, seconds[-1] / sizes[-1]
    return float(fixed), float(slope)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=[12_000, 24_000], metavar="N",
        help="databases of the recorded fleets (default 12000 24000)",
    )  # fmt: skip
    parser.add_argument(
        "--simulate", nargs="+", type=int, default=[10_000, 100_000, 1_000_000], metavar="N",
        help="databases of the simulated fleets (default 10000 100000 1000000)",
    )  # fmt: skip


def _run_study(asked: argparse.Namespace) -> int:
    """Record, then simulate 2, 4 and 8 workers."""
    records = [record(databases) for databases in sorted(asked.sizes)]
    fixed, slope = plan_line(records)
    rows = []
    for databases in asked.simulate:
        for workers in (2, 4, 8):
            after = fixed + slope * databases
            found = simulate(records[-1], databases, workers, after=after)
            rows.append(
                {
                    "databases": databases,
                    "workers": workers,
                    "wall seconds": round(found.wall, 1),
                    "worker CPU seconds": round(found.workers, 1),
                    "master CPU seconds": round(found.master, 1),
                    "master %": round(100 * found.share, 2),
                    "ms per database": round(1e3 * (found.workers + found.master) / databases, 3),
                }
            )
    document = {
        "recorded": [_row(each) for each in records],
        "plan at the end, seconds": {"fixed": round(fixed, 2), "each database": round(slope, 6)},
        "simulated": rows,
        "machine": describe(),
    }
    save_json(FILE, document)
    for row in rows:
        print(row)
    return 0


def _row(each: Record) -> dict[str, object]:
    """Return the sums of a record, and the times of its passes."""
    work = sum(sum(one.batches) for one in each.passes)
    return {
        "databases": each.databases,
        "gap %": round(100 * each.gap, 4),
        "pricing seconds": round(work, 2),
        "plan seconds": round(each.after, 2),
        "passes": [
            {
                "sample": one.sample,
                "master before": round(one.before, 4),
                "master per batch": round(one.answer, 5),
                "batches": [round(seconds, 4) for seconds in one.batches],
            }
            for one in each.passes
        ],
    }


STUDY = Study(__doc__, _add_arguments, _run_study, results=("fleet_cluster.json",))

"""Speed of the foundation: exhaustive search, tiers 1 and 2 for a fleet, start-up.

    python -m benchmarks run foundation [--runs 7] [--seed 0]

Prints a table and writes benchmarks/results/foundation.json. Every answer that is timed is also
checked: exhaustive search against the evaluator on every replica set (vectorised differently) where
that is affordable and against the exact engine elsewhere, the fleet against one solved problem per
sampled database.
"""

from __future__ import annotations

import argparse
import itertools
import math
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

import placement
from benchmarks.harness import machine
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import (
    read_json,
    save_json,
)
from benchmarks.harness.study import Study
from benchmarks.harness.timing import Timing, command, repeat
from formulations.exact.method import METHOD as EXACT
from placement import STANDARD_OPERATIONS, Diversity, Instance, Options, Plan, Problem
from placement.evaluation.score import first_best, score_many
from placement.methods.registry import run
from placement.overtime.decayed_counts import Decay, decayed_counts
from placement.overtime.replay import NOBODY, Deployments, Trace, interval_scores
from placement.support.checks import FloatArray

__all__ = ["STUDY", "TimedCall", "measure"]

RESULTS = ROOT / "benchmarks" / "results" / "foundation.json"
DATABASES, INTERVALS, SITES = 1000, 48, 60


@dataclass(frozen=True, slots=True)
class TimedCall:
    """Line of the table: the timed call, its size, its times, and their target.

    `target` is in seconds, None without a target.
    """

    what: str
    size: str
    timing: Timing
    target: float | None
    note: str = ""


def measure(runs: int, seed: int) -> Iterator[TimedCall]:
    """Yield the rows of the table as they are measured."""
    yield from _exhaustive(runs, seed)
    yield from _fleet(runs, seed)
    yield from _start_up(max(runs, 10))


def _exhaustive(runs: int, seed: int) -> Iterator[TimedCall]:
    spread = placement.load("world27")
    home = _clients_at_sites(spread, seed)
    cases: list[tuple[str, Instance, dict[str, object], float | None]] = [
        ("clients = sites", home, {"replicas": 5, "voters": 3}, 0.2),
        ("clients = sites", home, {"replicas": 7, "voters": 3}, 2.0),
        ("60 clients", spread, {"replicas": 5, "voters": 3}, 0.2),
        ("60 clients", spread, {"replicas": 7, "voters": 3}, 2.0),
        ("60 clients", spread, {"replicas": 7, "voters": 5, "survive": "country"}, None),
        (
            "60 clients, crossing levels",
            spread,
            {
                "replicas": 5,
                "voters": 3,
                "diversity": [Diversity("provider", cap=1), Diversity("continent", cap=1)],
            },
            None,
        ),
    ]
    for label, instance, asked, target in cases:
        problem = Problem(instance, **asked)  # type: ignore[arg-type]  # one table of cases
        plans: list[Plan] = []
        timing = repeat(_solver(problem, plans), runs)
        sets = math.comb(len(instance.sites), problem.rules.replicas_max)
        words = f"|R| = {asked['replicas']}, |V| = {asked['voters']}"
        words += f", survive {asked['survive']}" if "survive" in asked else ""
        yield TimedCall(
            f"exhaustive, 27 sites, {label}",
            f"{words}: {sets:,} sets",
            timing,
            target,
            _verify(problem, plans[-1]),
        )


def _solver(problem: Problem, plans: list[Plan]) -> Callable[[], None]:
    def call() -> None:
        plans.append(placement.solve(problem, "exhaustive"))

    return call


def _verify(problem: Problem, plan: Plan) -> str:
    """Check an optimum by other means; SystemExit when they disagree."""
    rules = problem.rules
    if rules.replicas_max <= 5 and not rules.groups:
        least = math.inf
        sets = itertools.combinations(range(len(rules.may_hold)), rules.replicas_max)
        while block := list(itertools.islice(sets, 20_000)):
            rows = np.array(block)
            for leader in rows.T:  # all replicas vote: the wait of the best voters
                values = score_many(problem.demand, leader, rows, rows, rules.quorum)
                least = min(least, float(values.min()))
        said = "every set scored by the evaluator"
    else:
        least = run(EXACT, problem, Options()).objective
        said = "method exact"
    if not math.isclose(least, plan.objective, rel_tol=1e-9):
        raise SystemExit(f"{problem!r}: {plan.objective!r} by exhaustive, {least!r} by {said}")
    return f"optimum confirmed by {said}"


def _clients_at_sites(instance: Instance, seed: int) -> Instance:
    """Return the sites with a client in each, 1 ms away; log-normal demand of five operations."""
    rng = np.random.default_rng(seed)
    size = len(instance.sites)
    volume = rng.lognormal(6, 1.2, (size, 1)) * rng.dirichlet(np.ones(5), size)
    return instance.replace(
        clients=instance.sites,
        client_coordinates=instance.site_coordinates,
        client_rtt=instance.site_rtt + np.eye(size),
        counts=volume,
        operations=STANDARD_OPERATIONS,
        intervals=(),
    )


def _fleet(runs: int, seed: int) -> Iterator[TimedCall]:
    rng = np.random.default_rng(seed)
    instance, counts = _fleet_world(rng)
    size = f"{DATABASES:,} databases × {INTERVALS} intervals × {SITES} sites"
    everywhere = np.ones((DATABASES, SITES), dtype=bool)
    mixed = np.zeros_like(everywhere)
    for row in mixed:
        row[rng.choice(SITES, rng.integers(5, SITES + 1), replace=False)] = True
    voters = rng.choice([3, 5], DATABASES)
    caps = (Diversity("country", cap=1), Diversity("continent", cap=2))
    trace = Trace(tuple(map(str, range(DATABASES))), tuple(map(str, range(INTERVALS))), counts)
    for label, replicas in (("60 replicas each", everywhere), ("5 to 60 replicas", mixed)):
        some = replicas & (replicas.cumsum(axis=1) <= voters[:, None])  # tier 2: their number
        for tier, votes, words, rule in (
            (1, replicas, "", ()),
            (2, some, "", ()),
            (2, some, ", caps on two levels", caps),
        ):
            problem = Problem(instance, replicas=SITES, voters=5, diversity=rule, decay=2.0)
            if rule:  # voters in different countries, at most two of a continent
                lands = replicas.reshape(DATABASES, 3, 5, 4).any(axis=3).sum(axis=2)
                fits = np.minimum(lands, 2).sum(axis=1) >= voters
                replicas = np.where(fits[:, None], replicas, everywhere)
            held = Deployments(replicas, votes, np.full(DATABASES, NOBODY))
            call = partial(_agg_scores, problem, trace, held, tier)
            _sample(problem, trace, held, tier, call(), rng)
            yield TimedCall(
                f"tier {tier}, {label}{words}",
                f"{size}, " + ("every replica votes" if tier == 1 else "3 or 5 voters"),
                repeat(call, runs),
                1.0,
                f"20 databases confirmed by method {('leader', 'tier2')[tier - 1]}",
            )


def _agg_scores(problem: Problem, trace: Trace, held: Deployments, tier: int) -> FloatArray:
    """agg_score of every leader after every interval, (databases, intervals, sites)."""
    scores = interval_scores(problem, trace, held, tier=tier)
    return decayed_counts(scores, Decay(problem.decay), axis=1)


def _fleet_world(rng: np.random.Generator) -> tuple[Instance, FloatArray]:
    """Sixty sites on a plane with clients in them, and counts of every database and interval."""
    at = rng.uniform(0, 200, (SITES, 2))
    between = np.linalg.norm(at[:, None] - at, axis=-1)
    mixes = rng.dirichlet(np.ones(5), DATABASES)[:, None, None, :]
    where = rng.dirichlet(np.full(SITES, 0.2), DATABASES)[:, None, :, None]
    hour = 1 + 0.8 * np.sin(np.linspace(0, 2 * np.pi, INTERVALS))[:, None, None]
    counts = rng.poisson(20_000 * mixes * where * hour).astype(float)
    instance = Instance(
        sites=tuple(f"s{i}" for i in range(SITES)),
        clients=tuple(f"k{i}" for i in range(SITES)),
        client_rtt=between + np.eye(SITES),
        site_rtt=between,
        counts=counts[0],
        domains={
            "country": tuple(f"country {i // 4}" for i in range(SITES)),
            "continent": tuple(f"continent {i // 20}" for i in range(SITES)),
        },
    )
    return instance, counts


def _sample(
    asked: Problem,
    trace: Trace,
    deployed: Deployments,
    tier: int,
    scores: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Check twenty databases against the single-problem methods; SystemExit when they disagree."""
    instance = asked.instance
    for database in rng.choice(DATABASES, 20, replace=False).tolist():
        held = [instance.sites[s] for s in np.nonzero(deployed.replicas[database])[0]]
        problem = asked.replace(
            instance=instance.replace(counts=trace.counts[database], intervals=()),
            replicas=held,
            voters=held if tier == 1 else int(deployed.voters[database].sum()),
        )
        plan = placement.solve(problem, ("leader", "tier2")[tier - 1])
        mine = int(first_best(scores[database, -1]))
        found, score = plan.score if plan.found else math.inf, float(scores[database, -1, mine])
        named = instance.sites[mine] if math.isfinite(score) else None
        close = found == score or math.isclose(found, score, rel_tol=1e-12)
        if named != plan.leader or not close:
            raise SystemExit(f"database {database}: {named} in the fleet, {plan.leader} alone")


def _start_up(runs: int) -> Iterator[TimedCall]:
    bare = command([sys.executable, "-c", "pass"], runs)
    yield TimedCall("python -c pass", "an interpreter that does nothing", bare, None)
    yield TimedCall(
        "import placement",
        "whole process, interpreter included",
        command([sys.executable, "-c", "import placement"], runs),
        0.15,
    )
    program = shutil.which("placement", path=str(Path(sys.executable).parent))
    if program is None:
        raise SystemExit("the console script 'placement' is not installed beside this Python")
    yield TimedCall("placement --help", "whole process", command([program, "--help"], runs), 0.3)


def _table(rows: Sequence[TimedCall]) -> str:
    """Return the rows that have a target as a Markdown table; one kind of fleet."""
    lines = []
    for row in rows:
        if row.target is None or "5 to 60" in row.what:
            continue
        target = f"< {row.target:g} s"
        # The sizes of sets are written with bars, which would end a cell.
        size = row.size.replace("|", "\\|")
        lines.append((row.what, size, f"{row.timing.median:.3f} s", target))
    return markdown_table(("what", "size", "median", "target"), lines)


def _report() -> dict[str, str]:
    document = read_json(RESULTS)
    rows = [TimedCall(**row | {"timing": Timing(**row["timing"])}) for row in document["rows"]]
    return {"foundation": f"{_table(rows)}\n\n{machine.hardware([document['machine']])}"}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=7, help="timed runs per row (default 7)")
    parser.add_argument("--seed", type=int, default=0, help="of the generated demand (default 0)")


def _run_study(options: argparse.Namespace) -> int:
    """Run the benchmark; 0 when every target is met by the median, else 1."""
    rows = []
    for row in measure(options.runs, options.seed):
        rows.append(row)
        print(f"{row.what}: {row.timing.median:.3f} s", file=sys.stderr)
    described = machine.describe(["numpy"])
    print(_table(rows))
    print(f"\n{machine.sentence(described)}")
    document = {
        "benchmark": "foundation",
        "seed": options.seed,
        "machine": described,
        "rows": [asdict(row) for row in rows],
    }
    save_json(RESULTS, document, indent=2)
    missed = [row.what for row in rows if row.target and row.timing.median > row.target]
    if missed:
        print("targets missed: " + "; ".join(missed), file=sys.stderr)
    return 1 if missed else 0


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("foundation.json",),
    page="docs/benchmarks.md",
    report=_report,
)

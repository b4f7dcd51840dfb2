"""The tables of the benchmark of dynamic replication: placements with known rates, and sketches."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from formulations.online.dynamic.copy_prices import solve_lagrangean
from formulations.online.dynamic.copy_programs import (
    relax,
    schedule_cost,
    solve_milp,
    solve_rounds,
)
from heuristics.online.dynamic.copy_choices import greedy, local_topk, popular_lists, run_votes
from placement.online.dynamic import (
    Geography,
    HotSetWorld,
    ReplicationProblem,
    clustered_sites,
    evaluate,
    hot_set_world,
    six_sites,
)
from placement.online.dynamic.sizing_formulas import hit_share
from placement.online.dynamic.store_demand import CAUSES, Generators
from placement.online.dynamic.vote_counting import SpaceSaving, merge, most_voted, top
from placement.online.simulation import spawn_streams, zipf

__all__ = ["CASES", "gap_factors", "predictions", "recall", "scale", "table", "turnover"]

CASES = (
    # geography, objects, k, correlation, reference: none, votes g1, votes g3 (copies), local,
    # greedy, optimum
    ("paper", 2000, 60, 0.0, (50.38, 23.78, 23.62, 62, 22.96, 22.85, 22.84)),
    ("paper", 2000, 60, 0.5, (49.96, 25.65, 25.25, 65, 24.80, 24.53, 24.51)),
    ("paper", 2000, 60, 1.0, (49.54, 19.95, 19.80, 62, 19.45, 19.10, 19.08)),
    ("paper", 500, 20, 1.0, (57.50, 23.84, 23.15, 22, 22.79, 22.08, 21.98)),
    ("paper", 5000, 150, 0.5, (49.92, 22.86, 22.42, 161, 22.01, 21.63, 21.61)),
    ("paper", 5000, 150, 1.0, (51.00, 18.17, 17.71, 164, 17.48, 17.04, 16.99)),
    ("clustered", 2000, 60, 0.0, None),
    ("clustered", 2000, 60, 0.5, None),
    ("clustered", 2000, 60, 1.0, None),
)
COLUMNS = ("none", "votes", "votes_g3", "copies_g3", "local", "greedy", "optimum")
_GEOGRAPHIES = {"paper": six_sites, "clustered": clustered_sites}


def world_of(geography: Geography, objects: int, correlation: float, seed: int) -> HotSetWorld:
    """Return the instance of a case: 96 nodes, 12 generators, 3 static copies, Zipf 0.99."""
    return hot_set_world(geography, objects, spawn_streams(seed, CAUSES), correlation=correlation)


def table(seeds: Sequence[int], *, independent: bool = False) -> Iterator[dict[str, Any]]:
    """Yield mean read RTTs in ms per case and seed; SystemExit when the exact methods disagree.

    With `independent`, on the published sites, each of the three static copies of each object is at
    a site drawn independently, two perhaps at the same. On a ring of 96 nodes the static copies of
    all objects are one of 96 sets, so that a ring favours some sites.
    """
    for name, objects, k, correlation, reference in CASES:
        if independent and name != "paper":
            continue
        for seed in seeds:
            world = world_of(_GEOGRAPHIES[name](), objects, correlation, seed)
            problem = world.problem(k)
            if independent:
                static = np.zeros(problem.static.shape, dtype=bool)
                drawn = spawn_streams(seed, CAUSES)["policy"].integers(0, 6, (3, objects))
                static[drawn, np.arange(objects)] = True
                problem = dataclasses.replace(problem, static=static)
            one, three = run_votes(problem), run_votes(problem, grace=3)
            best = solve_lagrangean(problem)
            if best.status != "optimal":
                raise SystemExit(f"{name} {objects} {correlation} {seed}: gap {best.gap:.1e}")
            relaxed = None
            if objects <= 500 or (objects <= 2000 and seed <= 2):
                plan, relaxed = solve_milp(problem), relax(problem).value
                if abs(plan.cost - best.cost) > 1e-9 * best.cost or plan.status != "optimal":
                    raise SystemExit(f"{name} {objects} {correlation} {seed}: two optima")
            # The optimum with as many copies as the grace period makes, rounded up at each site.
            room = np.ceil(three.mean_replicas)
            more = solve_lagrangean(
                ReplicationProblem(problem.geography, problem.static, problem.reads, room)
            )
            yield {
                "geography": name,
                "objects": objects,
                "k": k,
                "correlation": correlation,
                "seed": seed,
                "reference": None
                if reference is None
                else dict(zip(COLUMNS, reference, strict=True)),
                "none": evaluate(problem, problem.none).cost,
                "votes": one.mean_cost,
                "votes_last": float(one.cost[-1]),
                "votes_worst": float(one.cost[one.settled :].max(initial=one.mean_cost)),
                "period": one.period,
                "votes_g3": three.mean_cost,
                "copies_g3": float(three.mean_replicas.mean()),
                "saved": run_votes(problem, in_ms=True).mean_cost,
                "local": local_topk(problem).cost,
                "greedy": greedy(problem).cost,
                "optimum": best.cost,
                "bound": best.bound,
                "relaxation": relaxed,
                "optimum_at_g3": more.cost,
            }


def recall(seed: int) -> Iterator[dict[str, Any]]:
    """Yield how much of the exact top 10 000 of a site its 16 nodes find together.

    Votes of two generators with hot sets of their own in 20 million keys each, keys spread over the
    nodes by a hash, one merge of all 16 with one truncation.
    """
    keys, k, nodes = 20_000_000, 10_000, 16
    cumulative = np.cumsum(zipf(keys))
    rng = np.random.default_rng(seed)
    for votes in (100_000, 1_000_000):
        # The key of rank r of generator g is r + g · keys: which keys they are does not matter.
        rank = np.searchsorted(cumulative, rng.random(votes) * cumulative[-1])
        stream = rank + rng.integers(0, 2, votes) * keys
        node = (stream.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)) % nodes
        found, counts = np.unique(stream, return_counts=True)
        best = found[most_voted(counts, k)]
        threshold = np.sort(counts)[-k] if len(counts) >= k else 0
        above = set(found[counts > threshold].tolist())
        tenth = set(best[: k // 10].tolist())
        for counters in (625, 2_500, 10_000, 20_000):
            if votes == 100_000 and counters > k:
                continue
            summaries = []
            for mine in range(nodes):
                sketch = SpaceSaving(counters)
                sketch.extend(stream[node == mine].tolist())
                summaries.append(sketch.summary())
            listed = set(top(merge(summaries, max(k, counters)), k).tolist())
            yield {
                "votes": votes,
                "counters": counters,
                "recall": len(listed & set(best.tolist())) / len(best),
                "strict": len(listed & above) / max(1, len(above)),
                "top_tenth": len(listed & tenth) / len(tenth),
                "threshold": int(threshold),
                "ties": int((counts == threshold).sum()),
            }


def predictions() -> dict[str, float]:
    """Steady state at the published sizes: 20 million keys, k = 10 000, two hot sets per site.

    An object has a static copy at a site with 42.5 %; the k copies of a site are spent on the
    others, half on each of its two hot sets.
    """
    keys, k = 20_000_000, 10_000
    local = 1 - (80 * 79 * 78) / (96 * 95 * 94)
    edges = np.unique(np.geomspace(1, keys + 1, 20_000).astype(np.int64))
    edges[-1] = keys + 1
    counts = np.diff(edges).astype(np.float64)
    weights = np.add.reduceat(zipf(keys), edges[:-1] - 1) / counts
    shares = {
        rule: hit_share(weights, (1 - local) * counts, k / 2, rule)
        for rule in ("top", "lru", "random")
    }
    geography = six_sites()
    rng = np.random.default_rng(0)
    nearest = np.empty((200_000, 6))
    for row, nodes in zip(nearest, rng.random((200_000, 96)).argpartition(3)[:, :3], strict=True):
        row[:] = geography.rtt[:, nodes // 16].min(axis=1)
    own = float(np.diag(geography.rtt).mean())
    none = float(nearest.mean())
    far = (none - local * own) / (1 - local)
    result = {"static_local": local, "none": none, **{f"hit_{r}": s for r, s in shares.items()}}
    result["mru"] = local * own + (1 - local) * (own + far)
    for name, rule in (("lru", "lru"), ("rr", "random")):
        hit = shares[rule]
        result[name] = local * own + (1 - local) * (own + (1 - hit) * far)
    hit = shares["top"]
    result["votes"] = local * own + (1 - local) * (hit * own + (1 - hit) * far)
    return result


def turnover(seed: int) -> Iterator[dict[str, Any]]:
    """Yield the share of a site's top 10 000 that is new in the next round, demand unchanged.

    Two hot sets of 20 million keys, nothing but chance between two rounds; counts are exact.
    """
    keys, k = 20_000_000, 10_000
    chances = zipf(keys)
    cumulative = np.cumsum(chances)
    rng = np.random.default_rng(seed)
    for votes in (10**5, 10**6, 10**7, 10**8, 10**9, 10**10):
        lists = []
        for _ in range(2):
            if votes <= 10**7:
                rank = np.searchsorted(cumulative, rng.random(votes) * cumulative[-1])
                found, counts = np.unique(
                    rank + rng.integers(0, 2, votes) * keys, return_counts=True
                )
            else:  # beyond rank 200 000 nothing comes near the votes of rank 5000
                mean = np.tile(chances[:200_000], 2) * votes / 2
                counts = rng.poisson(mean)
                found = np.arange(len(counts))
            lists.append(found[most_voted(counts, k)])
        yield {
            "votes": votes,
            "turnover": 1 - len(np.intersect1d(lists[0], lists[1])) / k,
            "expected_last": float(chances[k // 2 - 1] * votes / 2),
        }


def gap_factors(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the parts of the gap between votes and clairvoyance, on a small instance that drifts.

    Eight rounds; in each one generator restarts. Copies in force in a round are, in turn: the list
    of two rounds before (delayed votes), votes run to their end on the rates of the round (instant
    votes, mean of the cycle), the optimum for the round, and the best schedule for all rounds at
    once. In the last factor, and only there, creating a copy costs `copying`.
    """
    objects, k, rounds, copying = 200, 8, 8, 0.3
    for seed in seeds:
        world = world_of(six_sites(), objects, 0.5, seed)
        rng = spawn_streams(seed, CAUSES)["restarts"]
        assert isinstance(world.generators, Generators)
        generators, problems = world.generators, []
        for turn in range(rounds):
            if turn:
                generators = generators.restarted(turn - 1, rng)
            problems.append(
                HotSetWorld(world.geography, world.ring, world.keys, generators).problem(k)
            )
        first = problems[0]
        warm = run_votes(first)
        held = [warm.copies, warm.copies]
        for problem in problems:
            held.append(popular_lists(problem, held[-2]))
        delayed = np.stack(held[:rounds])
        instant = sum(run_votes(problem).mean_cost for problem in problems)
        now = np.stack([solve_lagrangean(problem).copies for problem in problems])
        best = solve_rounds(problems, copying, before=now[0], time_limit=120)
        reads = {
            "delayed": sum(evaluate(p, c).cost for p, c in zip(problems, delayed, strict=True)),
            "instant": instant,
            "now": sum(evaluate(p, c).cost for p, c in zip(problems, now, strict=True)),
        }
        paying = schedule_cost(problems, now, copying, now[0])
        yield {
            "seed": seed,
            "delayed_over_instant": reads["delayed"] / reads["instant"],
            "instant_over_now": reads["instant"] / reads["now"],
            "now_over_clairvoyant": paying / best.cost,
            "clairvoyant_gap": (best.cost - best.bound) / best.cost,
            "status": str(best.status),
        }


def scale() -> Iterator[dict[str, Any]]:
    """Yield how the Lagrangean relaxation grows, in processor time, with the proven gap."""
    for objects, k, correlation in (
        (2_000, 60, 0.5),
        (20_000, 300, 0.5),
        (100_000, 1_000, 0.5),
        (1_000_000, 10_000, 0.5),
    ):
        problem = world_of(six_sites(), objects, correlation, 1).problem(k)
        began = time.process_time()
        plan = solve_lagrangean(problem)
        taken = time.process_time() - began
        began = time.process_time()
        quick = greedy(problem)
        yield {
            "objects": objects,
            "k": k,
            "cpu_s": taken,
            "gap": plan.gap,
            "status": str(plan.status),
            "optimum": plan.cost,
            "greedy": quick.cost,
            "greedy_cpu_s": time.process_time() - began,
            "note": plan.notes[0],
        }

"""Good replica sets where no leader matters: swap descents among few sites, from many starts.

The tree's own descent starts at the incumbent, and on large p-median problems stays in the local
optimum that it reaches there. The number of sites that the bound can eliminate depends on the
incumbent, so a poor one is expensive. Here only the sites of least reduced cost remain, which form
most optima. The neighbourhood of one swap is then a fraction of the matrix, and a descent from each
of several drawn sets is affordable.

One pass prices all swaps at once with the nearest and second nearest replica of each client
(Resende and Werneck 2007); the best is taken until none improves. Whatever comes out is only a
proposal for the evaluator.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from formulations.exact import tuning
from formulations.exact.kernel import Incumbent, Kernel
from formulations.exact.reduced_problem import ReducedProblem
from placement.model.constraints import GroupRule
from placement.support.checks import BoolArray, FloatArray, IntArray


def reduced_costs(core: ReducedProblem, u: FloatArray) -> FloatArray:
    """Return ρ of each site at multipliers `u`, ms times operations. O(clients · sites)."""
    cost = core.near[core.active][:, np.newaxis] * core.client_rtt[core.active]
    cost -= u[:, np.newaxis]
    reduced = np.minimum(cost, 0.0, out=cost).sum(axis=0)
    return np.asarray(reduced if core.price is None else reduced + core.price[0])


def promising_sites(core: ReducedProblem, reduced: FloatArray) -> IntArray:
    """Return the sites that may hold a replica and have the least reduced cost, ascending.

    Sites that must hold one are always among them. `reduced`: as :func:`reduced_costs` returns it.
    """
    rules = core.rules
    many = max(tuning.DESCENT_SITES, tuning.SITES_PER_REPLICA * rules.replicas_max)
    order = np.lexsort((reduced, ~rules.must_hold))
    return np.sort(order[rules.may_hold[order]][:many])


def undecided_sites(core: ReducedProblem, u: FloatArray, incumbent: float) -> BoolArray:
    """Return the sites that the bound at multipliers `u` does not rule out, shape (sites,).

    Only a guess, without caps and in rounded numbers: a kernel proves the elimination of sites for
    itself. `incumbent`: ms times operations, +∞ if there is none. O(clients · sites).
    """
    rules = core.rules
    reduced = reduced_costs(core, u)
    order = np.sort(reduced[rules.may_hold])
    last = max(rules.replicas_min, 1) - 1
    if last >= len(order):
        return rules.may_hold
    bound = float(u.sum()) + float(order[: last + 1].sum())
    within = bound + reduced - order[last] < incumbent
    return np.asarray(rules.may_hold & (within | rules.must_hold))


def has_few_replicas(core: ReducedProblem) -> bool:
    """Return whether replicas are so few that several descents end within the passes there are."""
    return tuning.PASSES_PER_REPLICA * core.rules.replicas_max <= tuning.DESCENT_PASSES


def improve_by_descents(
    core: ReducedProblem, kernel: Kernel, u: FloatArray, deadline: float
) -> bool:
    """Propose sets found by descents to a kernel with an incumbent; return whether one is better.

    Sites are promising at multipliers `u`, shape (clients,). No pass begins after `deadline`, a
    time.perf_counter().
    """
    found = kernel.incumbent()
    if found is None or not found.replicas:
        return False
    sites = promising_sites(core, reduced_costs(core, u))
    for replicas in descents(core, sites, found.replicas, tuning.DESCENT_PASSES, deadline):
        configuration = core.configuration(-1, replicas)
        if configuration is not None:
            score = core.score(configuration)
            kernel.propose(Incumbent(score, -1, configuration.replicas))
    now = kernel.incumbent()
    return now is not None and now.score < found.score


def descents(
    core: ReducedProblem, sites: IntArray, start: tuple[int, ...], passes: int, deadline: float
) -> Iterator[tuple[int, ...]]:
    """Yield local optima among `sites`: from `start`, then from sets of its size drawn at random.

    Replicas of `start`, which obeys the rules, outside `sites` are replaced. At most `passes`
    neighbourhoods are evaluated, the same on every run, and none after `deadline`, a
    time.perf_counter(). A pass is O(clients · sites given); memory: some six matrices of that size.
    """
    near = core.near[core.active]
    cost = near[:, np.newaxis] * core.client_rtt[np.ix_(core.active, sites)]
    price = np.zeros(len(sites)) if core.price is None else core.price[0, sites]
    must = core.rules.must_hold[sites]
    groups = [group for group in core.rules.of("replicas") if group.cap is not None]
    rng = np.random.default_rng([len(sites), len(start)])
    inside: IntArray = np.nonzero(np.isin(sites, start))[0]
    whole = len(inside) == len(start)
    places = inside if whole else _drawn(rng, sites, must, len(start), groups)
    while places is not None:
        while passes > 0 and time.perf_counter() < deadline:
            passes -= 1
            swapped = _swap(cost, price, places, must, sites, groups)
            if swapped is None:
                break
            places = swapped
        yield tuple(np.sort(sites[places]).tolist())
        if passes <= 0 or time.perf_counter() >= deadline:
            return
        places = _drawn(rng, sites, must, len(start), groups)


def _drawn(
    rng: np.random.Generator,
    sites: IntArray,
    must: BoolArray,
    size: int,
    groups: list[GroupRule],
) -> IntArray | None:
    """Return places in `sites` of a set that obeys the caps, or None when none was drawn."""
    pinned, others = np.nonzero(must)[0], np.nonzero(~must)[0]
    if not len(pinned) <= size <= len(sites):
        return None
    for _ in range(tuning.START_DRAWS):
        more = rng.choice(others, size - len(pinned), replace=False)
        places = np.concatenate([pinned, more])
        if all(group.satisfied(sites[places].tolist()) for group in groups):
            return places
    return None


def _swap(
    cost: FloatArray,
    price: FloatArray,
    places: IntArray,
    must: BoolArray,
    sites: IntArray,
    groups: list[GroupRule],
) -> IntArray | None:
    """Return the places after the best swap that improves and obeys the caps, or None."""
    clients, size = len(cost), len(places)
    held = cost[:, places]
    owner = held.argmin(axis=1)
    rows = np.arange(clients)
    first = held[rows, owner]
    held[rows, owner] = np.inf
    second = held.min(axis=1)[:, np.newaxis]
    if size == 1:
        second = np.full((clients, 1), cost.max(initial=0.0) + 1.0)
    order = np.argsort(owner, kind="stable")
    owners, begin = np.unique(owner[order], return_index=True)
    cost, first, second = cost[order], first[order, np.newaxis], second[order]
    gain = np.minimum(cost - first, 0.0)
    total = gain.sum(axis=0)
    extra = np.minimum(cost, second)
    extra -= first
    extra -= gain
    change = np.tile(total + price, (size, 1)) - price[places][:, np.newaxis]
    change[owners] += np.add.reduceat(extra, begin, axis=0)
    change[must[places]] = np.inf
    change[:, places] = np.inf
    least = -1e-9 * float(first.sum())
    flat = change.ravel()
    tried = (
        np.argpartition(flat, tuning.TRIED_SWAPS)[: tuning.TRIED_SWAPS]
        if len(flat) > tuning.TRIED_SWAPS
        else np.arange(len(flat))
    )
    for at in tried[np.argsort(flat[tried], kind="stable")].tolist():
        if flat[at] >= least:
            return None
        changed = places.copy()
        changed[at // len(sites)] = at % len(sites)
        if all(group.satisfied(sites[changed].tolist()) for group in groups):
            return changed
    return None

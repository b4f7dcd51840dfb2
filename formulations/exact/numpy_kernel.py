"""The kernel in NumPy: same optimum and same kind of proof as the compiled one, slower.

It uses the bound of :mod:`formulations.exact.certificate_events` without the multipliers β.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from formulations.exact.kernel import TOLERANCE
from formulations.exact.kernel_types import Counters, Glances, Proposal, Scans, Sizes
from formulations.exact.numpy_frame import Frame, KnownLeader, Value
from formulations.exact.numpy_inner_minimum import Inner
from formulations.exact.reduced_problem import Core
from placement.checks import FloatArray

__all__ = ["NumpyKernel"]

_ROOT_STEPS, _NODE_STEPS = 80, 8
_ENUMERATED = 40
_CHUNK = 0.03
_BOUND = 8.0
"""Work of a bound in NumPy, per client and site."""

_EPS = float(np.finfo(np.float64).eps)


class NumpyKernel:
    """See :class:`formulations.exact.kernel.Kernel` for what the methods do.

    Parameters
    ----------
    core
        The problem.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        rtt = core.client_rtt[core.active]
        order = np.argsort(rtt, axis=1, kind="stable")
        self._rank = np.empty(rtt.shape, dtype=np.intp)
        places = np.arange(core.sites, dtype=np.intp)[np.newaxis]
        np.put_along_axis(self._rank, order, places, axis=1)
        self._best = Proposal(math.inf, -2, ())
        self._cutoff = math.inf
        self._tolerance = TOLERANCE
        self._stack: list[Frame] = []
        self._closed = math.inf
        self._leader: KnownLeader | None = None
        self._recording = False
        self._events: list[FloatArray] = []
        self._nodes = self._leaves = self._evaluations = 0
        self._left_at: dict[int, FloatArray] = {}

    # --- face ---------------------------------------------------------------------------

    def scan(
        self, leader: int, u: FloatArray, iterations: int, swaps: int, warm: bool, seconds: float
    ) -> float:
        """Bound one leader without branching; see the protocol."""
        deadline = time.perf_counter() + seconds
        known = self._enter(leader)
        root = self._root(known, np.array(u))
        replicas = self._start(known, root) if swaps else None
        if replicas is not None:
            if swaps > 1:
                replicas = self._descend(known, replicas, swaps)
            if not warm:
                costs = np.sort(known.costs[:, replicas], axis=1)
                half = costs[:, 0] if len(replicas) == 1 else 0.5 * (costs[:, 0] + costs[:, 1])
                root.u = np.minimum(half, root.fixed_cost)
        value = self._improve(known, root, iterations, deadline)
        if value >= self._cutoff:
            self._record([2.0, 0.0], root.u)
        u[:] = root.u
        self._left_at[leader] = root.u
        return value

    def scans(self, scans: Scans, at: int, work: float, seconds: float) -> int:
        """Bound leaders one after another; see the protocol."""
        end, enough = time.perf_counter() + seconds, self._work() + work
        for i in range(at, len(scans.leaders)):
            left = end - time.perf_counter()
            if i > at and (left <= 0 or self._work() >= enough):
                return i - at
            swaps = scans.swaps if i < scans.full or self._cutoff == math.inf else 1
            leader, u = int(scans.leaders[i]), scans.u[i]
            scans.bounds[i] = self.scan(leader, u, scans.steps, swaps, bool(scans.warm[i]), left)
            scans.ends[i] = sum(map(len, self._events))
        return len(scans.leaders) - at

    def glances(self, glances: Glances, at: int, work: float, seconds: float) -> int:
        """Bound leaders, one evaluation each; see the protocol."""
        end, enough = time.perf_counter() + seconds, self._work() + work
        self._stack = []
        for i in range(at, len(glances.leaders)):
            if i > at and (time.perf_counter() >= end or self._work() >= enough):
                return i - at
            known = self._enter(int(glances.leaders[i]))
            root = self._root(known, glances.u[i])
            value = self._evaluate(known, root, root.u)
            glances.bounds[i] = value.bound - value.error
            glances.u[i] = root.u
            self._left_at[known.index] = root.u
        return len(glances.leaders) - at

    def resized(self, core: Core) -> NumpyKernel:
        """Return a kernel for another number of replicas."""
        other = NumpyKernel(core)
        other._left_at = self._left_at
        return other

    def recall(self, leaders: Sequence[int], swaps: int, seconds: float) -> FloatArray:
        """Bound leaders at the multipliers they were left at; see the protocol.

        One evaluation each.  The incumbent, which is not taken over here, is left as it is.
        """
        del swaps, seconds
        self._stack = []
        bounds = np.full(len(leaders), math.nan)
        for i, leader in enumerate(leaders):
            if leader in self._left_at:
                known = self._enter(leader)
                root = self._root(known, self._left_at[leader])
                value = self._evaluate(known, root, root.u)
                bounds[i] = value.bound - value.error
        return bounds

    def open(self, leader: int, u: FloatArray) -> None:
        """Put the tree of a leader on the stack."""
        self._closed = math.inf
        self._stack = [self._root(self._enter(leader), np.array(u))]

    def run(self, work: float, seconds: float) -> bool:
        """Work on the open tree: True when it is finished."""
        now = time.perf_counter()
        pause = now + (_CHUNK if work < math.inf else seconds)
        while self._stack and time.perf_counter() < min(pause, now + seconds):
            self._visit(now + seconds)
        return not self._stack

    def bound(self) -> float:
        """Lower bound of the open tree."""
        return min([self._closed, *(frame.bound for frame in self._stack)])

    def propose(self, proposal: Proposal) -> None:
        """Offer an incumbent from outside."""
        if proposal.score >= self._best.score:
            return
        self._best = proposal
        self._set_cutoff()

    def together(
        self,
        sizes: Sizes,
        leaders: Sequence[int],
        steps: int,
        swaps: int,
        work: float,
        seconds: float,
    ) -> bool:
        """Refuse: one number of replicas at a time is all that this kernel can do."""
        del sizes, leaders, steps, swaps, work, seconds
        return False

    def tolerate(self, gap: float) -> None:
        """Close nodes whose bound is within `gap`, relatively, of the incumbent; 0: prove."""
        self._tolerance = max(gap, TOLERANCE)
        self._set_cutoff()

    def _set_cutoff(self) -> None:
        score = self._best.score
        if math.isinf(score):
            return
        self._cutoff = score * (1 - self._tolerance)
        grain = self._core.granularity
        if grain:
            whole = np.nextafter(score - grain * (1 - 1e-6), math.inf)
            self._cutoff = min(self._cutoff, float(whole))

    def incumbent(self) -> Proposal | None:
        """Return the best so far."""
        return self._best if self._best.score < math.inf else None

    def counters(self) -> Counters:
        """Return what was done so far."""
        return Counters(self._nodes, self._leaves, self._evaluations, self._cutoff, self._work())

    def _work(self) -> float:
        """See :attr:`Counters.work`."""
        return _BOUND * len(self._core.active) * self._core.sites * self._evaluations

    def record(self, on: bool) -> FloatArray:
        """Return the events recorded since the last call."""
        events = np.concatenate(self._events) if self._events else np.zeros(0)
        self._events, self._recording = [], on
        return events

    # --- one leader ---------------------------------------------------------------------

    def _enter(self, leader: int) -> KnownLeader:
        core = self._core
        rtt = core.client_rtt[core.active]
        near, relay = core.demand.near[0][core.active], core.demand.relay[0][core.active]
        relayed = core.site_rtt[:, leader] if leader >= 0 else np.zeros(core.sites)
        price = np.zeros(core.sites) if core.price is None else core.price[max(leader, 0)]
        self._leader = KnownLeader(
            leader,
            near[:, np.newaxis] * rtt + relay[:, np.newaxis] * relayed,
            float(core.direct[leader]) if leader >= 0 else 0.0,
            price,
            Inner(core, leader),
        )
        return self._leader

    def _root(self, known: KnownLeader, u: FloatArray) -> Frame:
        rules = self._core.rules
        pinned = rules.must_hold.copy()
        if known.index >= 0:
            pinned[known.index] = True
        clients = len(u)
        frame = Frame(
            held=[],
            free=np.nonzero(rules.may_hold & ~pinned)[0],
            fixed_cost=np.full(clients, math.inf),
            fixed_rank=np.full(clients, self._core.sites, dtype=np.intp),
            u=np.zeros(clients),
            frequency=np.full(self._core.sites, 0.5),
            bound=0.0,
            root=True,
        )
        for site in np.nonzero(pinned)[0].tolist():
            self._hold(known, frame, site)
        frame.u = np.minimum(u, frame.fixed_cost)
        return frame

    def _hold(self, known: KnownLeader, frame: Frame, site: int) -> None:
        """A replica at `site` is certain: every client looks no farther than it."""
        frame.held.append(site)
        frame.free = frame.free[frame.free != site]
        nearer = self._rank[:, site] < frame.fixed_rank
        frame.fixed_rank = np.where(nearer, self._rank[:, site], frame.fixed_rank)
        frame.fixed_cost = np.where(nearer, known.costs[:, site], frame.fixed_cost)
        frame.u = np.minimum(frame.u, frame.fixed_cost)

    # --- bound --------------------------------------------------------------------------

    def _evaluate(self, known: KnownLeader, frame: Frame, u: FloatArray) -> Value:
        """L(u) of a frame."""
        self._evaluations += 1
        gain = np.minimum(known.costs[:, frame.free] - u[:, np.newaxis], 0.0)
        gain[self._rank[:, frame.free] > frame.fixed_rank[:, np.newaxis]] = 0.0
        rho = gain.sum(axis=0) + known.price[frame.free]
        served = float(np.minimum(u, frame.fixed_cost).sum())
        base = known.constant + float(known.price[frame.held].sum()) + served
        answers = known.inner.solve(frame.held, frame.free, rho)
        if not answers:
            return Value(math.inf, 0.0, rho, answers, base)
        best = min(answers, key=lambda answer: answer.value)
        size = len(best.chosen)
        magnitude = base + abs(best.value)
        magnitude += 2.0 * sum(abs(part.value) for part in best.parts)
        terms = len(u) + self._core.sites + 24
        error = _EPS * (terms * magnitude + 6.0 * (size + 2) * served)
        return Value(base + best.value, error, rho, answers, base)

    def _improve(self, known: KnownLeader, frame: Frame, steps: int, deadline: float) -> float:
        """Subgradient steps with momentum from frame.u; keeps the best multipliers there."""
        best, step_size, stall, patience = -math.inf, 1.0, 0, max(6, steps // 20)
        u, direction = frame.u.copy(), np.zeros(len(frame.u))
        for step in range(steps):
            value = self._evaluate(known, frame, u)
            safe = value.bound - value.error
            if safe > best:
                stall = 0 if safe > best + 1e-4 * abs(best) else stall
                best, frame.u = safe, u
            else:
                stall += 1
            if best >= self._cutoff or not value.answers or step + 1 == steps:
                break
            if time.perf_counter() > deadline:
                break
            chosen = np.array(min(value.answers, key=lambda a: a.value).chosen, dtype=np.intp)
            frame.frequency *= 0.9
            frame.frequency[chosen] += 0.1
            serves = known.costs[:, chosen] < u[:, np.newaxis]
            serves &= self._rank[:, chosen] < frame.fixed_rank[:, np.newaxis]
            slope = 1.0 - serves.sum(axis=1)
            slope[(slope > 0) & (u >= frame.fixed_cost)] = 0.0
            norm = float(slope @ slope)
            if norm == 0:
                break
            target = self._cutoff if self._cutoff < math.inf else 2 * abs(value.bound) + 1
            target += 0.05 * (target - best)
            if stall >= patience:
                stall, step_size, u = 0, 0.6 * step_size, frame.u
            direction = slope + 0.7 * direction
            moved = u + step_size * (target - value.bound) / norm * direction
            u = np.clip(moved, 0.0, frame.fixed_cost)
        return best

    # --- tree ---------------------------------------------------------------------------

    def _visit(self, deadline: float) -> None:
        """Bound the frame on top; then close it, enumerate it or branch."""
        known, frame = self._leader, self._stack[-1]
        assert known is not None
        self._nodes += 1
        for turn in range(4):
            low, high = known.inner.sizes(len(frame.held), len(frame.free))
            ways = sum(math.comb(len(frame.free), size) for size in range(low, high + 1))
            if low <= high and ways <= _ENUMERATED:
                self._enumerate(known, frame, low, high)
                return
            steps = _ROOT_STEPS if frame.root else _NODE_STEPS
            value = self._improve(known, frame, steps, deadline)
            frame.bound = max(frame.bound, min(value, self._cutoff))
            if value >= self._cutoff:
                self._close(frame, value)
                return
            if time.perf_counter() > deadline:
                return
            here = self._evaluate(known, frame, frame.u)
            if frame.root and turn == 0 and here.answers:
                best = min(here.answers, key=lambda answer: answer.value)
                self._descend(known, [*frame.held, *best.chosen], 40)
            fixed = self._fix(known, frame, here)
            if fixed is None:
                self._close(frame, self._cutoff)
                return
            if not fixed:
                break
        if len(frame.free) == 0:
            return  # enumerated at the next visit
        site = self._branching_site(frame)
        self._record([4.0, float(site)])
        frame.free = frame.free[frame.free != site]
        frame.root = False
        child = Frame(
            held=list(frame.held),
            free=frame.free,
            fixed_cost=frame.fixed_cost,
            fixed_rank=frame.fixed_rank,
            u=frame.u,
            frequency=frame.frequency.copy(),
            bound=frame.bound,
        )
        self._hold(known, child, site)
        self._stack.append(child)

    def _branching_site(self, frame: Frame) -> int:
        """Return the free site whose selection is least decided."""
        return int(frame.free[np.abs(frame.frequency[frame.free] - 0.7).argmin()])

    def _close(self, frame: Frame, value: float) -> None:
        self._closed = min(self._closed, value)
        self._record([2.0, 0.0], frame.u)
        self._leaves += 1
        self._stack.pop()

    def _fix(self, known: KnownLeader, frame: Frame, here: Value) -> int | None:
        """Fix sites by reduced cost; how many, or None when that closes the frame."""
        low, high = known.inner.sizes(len(frame.held), len(frame.free))
        rho = here.rho
        with_site = np.full(len(rho), math.inf)
        without = np.full(len(rho), math.inf)
        for answer in here.answers:
            plus = np.full(len(rho), -math.inf)
            minus = np.full(len(rho), -math.inf)
            for part in answer.parts:
                size = len(part.chosen)
                top = max(part.top, 0.0) if size < high else part.top
                left = min(part.least_left, 0.0) if size > low else part.least_left
                total = answer.price + part.value
                plus = np.maximum(plus, total + np.maximum(rho - top, 0.0))
                minus = np.maximum(minus, total + np.maximum(left - rho, 0.0))
            with_site, without = np.minimum(with_site, plus), np.minimum(without, minus)
        with_site += here.base - 4.0 * here.error
        without += here.base - 4.0 * here.error
        out, kept = with_site >= self._cutoff, without >= self._cutoff
        if (out & kept).any():
            return None
        for values in (with_site[out], without[kept]):
            self._closed = min(self._closed, float(values.min(initial=math.inf)))
        dropped, taken = frame.free[out].tolist(), frame.free[kept].tolist()
        if not dropped and not taken:
            return 0
        lists = [float(len(dropped)), *dropped, float(len(taken)), *taken]
        self._record([1.0, 0.0], frame.u, lists)
        frame.free = frame.free[~out]
        for site in taken:
            self._hold(known, frame, site)
        return len(dropped) + len(taken)

    def _enumerate(self, known: KnownLeader, frame: Frame, low: int, high: int) -> None:
        for size in range(low, high + 1):
            for more in combinations(frame.free.tolist(), size):
                self._offer(known, [*frame.held, *more])
        self._record([3.0, 0.0])
        self._leaves += 1
        self._stack.pop()

    def _record(self, head: list[float], *parts: FloatArray | list[float]) -> None:
        if self._recording:
            self._events.extend(np.asarray(part, dtype=np.float64) for part in (head, *parts))

    # --- primal -------------------------------------------------------------------------

    def _offer(self, known: KnownLeader, replicas: list[int]) -> float:
        """Score of a complete set (+∞ when it breaks a rule); the best is kept."""
        core = self._core
        rules = core.rules
        if not rules.replicas_min <= len(replicas) <= rules.replicas_max:
            return math.inf
        if not all(group.satisfied(replicas) for group in rules.of("replicas")):
            return math.inf
        configuration = core.configuration(known.index, replicas)
        if configuration is None:
            return math.inf
        score = core.score(configuration)
        self.propose(Proposal(score, known.index, configuration.replicas))
        return score

    def _start(self, known: KnownLeader, root: Frame) -> list[int] | None:
        """A feasible set for the leader: the incumbent's with him in, or the closest sites."""
        best, value = None, math.inf
        held = set(root.held)
        incumbent = [r for r in self._best.replicas if r not in held]
        room = self._core.rules.replicas_max - len(held)
        near = known.inner.near_order or list(range(self._core.sites))
        closest = [s for s in near if s in set(root.free.tolist())]
        for extra in (incumbent[:room], incumbent[-room:] if room else [], closest[:room]):
            replicas = [*root.held, *extra]
            score = self._offer(known, replicas)
            if score < value:
                best, value = replicas, score
        return best

    def _descend(self, known: KnownLeader, replicas: list[int], limit: int) -> list[int]:
        """First-improvement swaps, most promising additions first."""
        rules = self._core.rules
        score = self._offer(known, replicas)
        if score == math.inf:
            return replicas
        fixed = set(np.nonzero(rules.must_hold)[0].tolist()) | {known.index}
        for _ in range(limit):
            better = self._best_swap(known, replicas, fixed, score)
            if better is None:
                return replicas
            replicas, score = better
        return replicas

    def _best_swap(
        self, known: KnownLeader, replicas: list[int], fixed: set[int], score: float
    ) -> tuple[list[int], float] | None:
        """Price all swaps without their quorum at once; take the first that truly improves."""
        rows = np.arange(len(known.costs))
        outside = np.setdiff1d(np.nonzero(self._core.rules.may_hold)[0], replicas)
        found: list[tuple[float, list[int]]] = []
        for place, old in enumerate(replicas):
            rest = replicas[:place] + replicas[place + 1 :]
            if old in fixed or not len(outside):
                continue
            if rest:
                ranks = self._rank[:, rest]
                nearest = ranks.argmin(axis=1)
                rank, cost = ranks[rows, nearest], known.costs[rows, np.array(rest)[nearest]]
                joined = np.where(
                    self._rank[:, outside] < rank[:, np.newaxis],
                    known.costs[:, outside],
                    cost[:, np.newaxis],
                )
            else:
                joined = known.costs[:, outside]
            totals = joined.sum(axis=0) + known.price[outside] + known.constant
            totals += known.price[rest].sum()
            for at in np.argsort(totals, kind="stable")[:3]:
                if totals[at] < score:
                    found.append((float(totals[at]), [*rest, int(outside[at])]))
        for _, changed in sorted(found)[:12]:
            value = self._offer(known, changed)
            if value < score * (1 - 1e-12):
                return changed, value
        return None

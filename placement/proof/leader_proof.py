"""The proof of one leader in an optimality certificate, replayed in exact integer arithmetic.

What is proved
--------------
For one leader ℓ and a *state* (I, O) (sites that hold a replica, sites that do not; F are the
others), any multipliers u and β >= 0 give a lower bound on every configuration that agrees with the
state:

    L = K_ℓ + Σ_{j∈I} price_j + Σ_c [ min(u_c, w_c,f(c) + T_c) − T_c ] + Z(ρ)
    ρ_j = price_j + Σ_{c: j∈N(c)} [ β_cj + min(0, w_cj + P_cj − u_c) ]

with w_cj = A_c·d(c,j) + B_c·d(j,ℓ), f(c) the first site of I in c's order, N(c) the free sites
before f(c), P_cj the β of those before j, T_c the β of all of them.

*Proof.* Let x_cj say that j is c's nearest. Add u_c·(1 − Σ_j x_cj) = 0 and
β_ci·(Σ_{k after i} x_ck + y_i − 1) <= 0, then let each x_cj be 0 or y_j as it likes: client c
leaves u_c − T_c + min(0, w_c,f + T_c − u_c) and Σ_j y_j·(β_cj + min(0, w_cj + P_cj − u_c)). Z(ρ)
bounds Σ_{j∈Y} ρ_j + D·q over the sets Y of free sites that the rules allow: for every radius r that
the leader may have to wait, D·r + max(E, C, W), where E lets I ∪ Y have m voters within r, C obeys
the caps on replicas and W has v voters; each is the least weight of a basis of a matroid, found by
its greedy.

A proof is a list of events that narrow or split the state until nothing is left (`_Leader.run`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from placement.errors import LimitError, PlacementError
from placement.model.constraints import GroupRule, Rules

__all__ = [
    "CapUsage",
    "CertificateError",
    "Integers",
    "LeaderClaim",
    "LeaderProof",
    "Work",
    "integers",
]

Integers = Any  # object arrays of Python integers, which NumPy's types cannot name


class CertificateError(PlacementError):
    """A certificate proves nothing, or not what the plan says; the message names the first flaw."""


class Work:
    """Steps that the check of a certificate may still take.

    A certificate comes from a file, and a few words of it can ask for any number of replica sets.
    Steps are counted before they are taken, so that the limit does not depend on the machine.
    """

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    def take(self, steps: int) -> None:
        """Count steps; LimitError when they are more than are left."""
        self.left -= steps
        if self.left < 0:
            raise LimitError(
                f"checking this certificate takes more than {self.limit:,} steps, the limit; a "
                "larger limit is set by the option --work of 'placement check', or the argument "
                "'work' of check_certificate"
            )


class LeaderClaim(Protocol):
    """Fields of a claim that :class:`LeaderProof` reads.

    See :mod:`placement.proof.certificate_check`.
    """

    rules: Rules
    order_rtt: npt.NDArray[np.float64]
    clients: npt.NDArray[np.intp]
    client_rtt: Integers
    site_rtt: Integers
    near: Integers
    relay: Integers
    direct: Integers
    quorum: int
    needed: int
    bits: int
    work: Work

    def price(self, leader: int) -> Integers:
        """Price of a replica at each site under a leader."""
        ...


def integers(values: npt.ArrayLike, bits: int) -> Integers:
    """x·2^bits for doubles x: exact where they lie on that grid, rounded down elsewhere."""
    array = np.asarray(values, dtype=np.float64)
    ratios = (float(x).as_integer_ratio() for x in array.ravel())
    whole = [(top << bits) // bottom for top, bottom in ratios]
    return np.array(whole, dtype=object).reshape(array.shape)


class CapUsage:
    """Number of some sites that each domain holds, and the number its caps still let in."""

    def __init__(self, groups: Sequence[GroupRule], sites: Iterable[int]) -> None:
        self.caps = [(g.labels.tolist(), g.cap, [0] * len(g.names)) for g in groups]
        self.kept = True
        for site in sites:
            self.kept = self.take(site) and self.kept

    def take(self, site: int) -> bool:
        """Count a site if every cap has room for it; say whether it had."""
        if any(cap is not None and held[labels[site]] >= cap for labels, cap, held in self.caps):
            return False
        for labels, _, held in self.caps:
            held[labels[site]] += 1
        return True


class LeaderProof:
    """The proof of one leader; ℓ is None when the leader does not matter."""

    def __init__(self, claim: LeaderClaim, leader: int | None) -> None:
        rules = claim.rules
        self.claim, self.leader, self.rules = claim, leader, rules
        self.events = self.bounds = 0
        sites = len(rules.may_hold)
        rtt, between = claim.client_rtt, claim.site_rtt
        self.w = claim.near[:, np.newaxis] * rtt[claim.clients]
        self.constant, self.quorum_price, self.waits = 0, 0, [0] * sites
        if leader is not None:
            self.w = self.w + claim.relay[:, np.newaxis] * between[:, leader][np.newaxis, :]
            self.constant = int((claim.direct * rtt[:, leader]).sum())
            self.quorum_price = claim.quorum
            self.waits = between[leader].tolist()
        self.order = np.argsort(claim.order_rtt, axis=1, kind="stable")
        self.rank = np.empty_like(self.order)
        np.put_along_axis(self.rank, self.order, np.arange(sites)[np.newaxis, :], axis=1)
        self.price = claim.price(0 if leader is None else leader)
        self.pinned = {int(s) for s in np.nonzero(rules.must_vote)[0]}
        if leader is not None:
            self.pinned.add(leader)
        asks_quorum = leader is not None and rules.quorum > 1 and self.quorum_price > 0
        self.radii = sorted(set(self.waits)) if asks_quorum else [0]
        self.asks_quorum = asks_quorum
        # of one bound, or of one replica set: clients x sites, and the greedy for every radius
        self.steps = sites * (len(claim.clients) + len(self.radii))
        claim.work.take(self.steps)

    # --- the inner problem ------------------------------------------------------------------

    def _voters(self, members: set[int], wanted: int) -> tuple[int, CapUsage] | None:
        """How many of `wanted` voters `members` give, pins among them first; None: forbidden."""
        load = CapUsage(self.rules.of("voters"), self.pinned)
        spare = self.rules.voters - len(self.pinned)
        found = len(self.pinned & members)
        if not load.kept or spare < 0 or wanted - found > spare:
            return None
        if not all(self.rules.may_vote[s] for s in self.pinned):
            return None
        for s in sorted(members - self.pinned):
            if found >= wanted:
                break
            found += bool(self.rules.may_vote[s]) and load.take(s)
        return found, load

    def _sizes(self, held: int) -> tuple[int, int]:
        least = max(self.rules.replicas_min, self.rules.voters) - held
        return max(least, 0), self.rules.replicas_max - held

    def _cheapest_with_voters(
        self, rho: Integers, order: list[int], inside: set[int], within: set[int], wanted: int
    ) -> int | None:
        """Least Σ ρ over Y such that I ∪ Y has `wanted` voters in `within`; None: impossible.

        The greedy of an elongated laminar matroid: in order of ρ, take what adds a voter while
        voters are needed, and of the rest as many as sizes and signs ask for.
        """
        voters = self._voters(inside & within, wanted)
        if voters is None:
            return None
        found, load = voters
        need = max(0, wanted - found)
        least, most = self._sizes(len(inside))
        total = raising = others = 0
        for s in order:
            useful = raising < need and s in within and bool(self.rules.may_vote[s])
            if useful and load.take(s):
                raising += 1
            elif others < most - need and (rho[s] < 0 or others < least - need):
                others += 1
            else:
                continue
            total += rho[s]
        filled = raising == need and raising + others >= least and need <= most
        return total if filled and least <= most else None

    def _cheapest_under_caps(self, rho: Integers, order: list[int], inside: set[int]) -> int | None:
        """Least Σ ρ over Y such that I ∪ Y obeys the caps on replicas; None: impossible."""
        load = CapUsage(self.rules.of("replicas"), inside)
        least, most = self._sizes(len(inside))
        total = taken = 0
        for s in order:
            if taken >= most or (rho[s] >= 0 and taken >= least):
                break
            if load.take(s):
                taken += 1
                total += rho[s]
        return total if load.kept and least <= taken <= most else None

    def _inner(self, rho: Integers, inside: set[int], free: list[int]) -> int | None:
        """Z(ρ); None when no set is allowed."""
        order = sorted(free, key=lambda s: rho[s])
        everywhere = set(range(len(rho)))
        caps = self._cheapest_under_caps(rho, order, inside)
        voters = self._cheapest_with_voters(rho, order, inside, everywhere, self.rules.voters)
        if caps is None or voters is None:
            return None
        floor = max(caps, voters)
        if not self.asks_quorum:
            return floor
        best: int | None = None
        for radius in self.radii:
            waited = self.quorum_price * radius
            if best is not None and waited + floor >= best:
                break  # the radii ascend, and no term below is less than `floor`
            within = {s for s in everywhere if self.waits[s] <= radius}
            near = self._cheapest_with_voters(rho, order, inside, within, self.rules.quorum)
            if near is not None:
                value = waited + max(near, floor)
                best = value if best is None else min(best, value)
        return best

    # --- the bound ---------------------------------------------------------------------------

    def bound(
        self,
        inside: set[int],
        outside: set[int],
        u: Integers,
        beta: Mapping[int, Mapping[int, int]],
    ) -> int | None:
        """L(I, O, u, β); None when no configuration agrees with the state."""
        self.claim.work.take(self.steps)
        self.bounds += 1
        sites = len(self.waits)
        free = [s for s in range(sites) if s not in inside and s not in outside]
        held = sorted(inside)
        first = np.full(len(u), sites)
        if held:
            first = self.rank[:, held].min(axis=1)
        cost = self.w
        closing = np.zeros(len(u), dtype=object)  # T_c
        rho: Integers = self.price.copy()
        if beta:
            cost = self.w.copy()
            for c, entries in beta.items():
                before = 0
                for j in sorted(free, key=lambda s: int(self.rank[c, s])):
                    if self.rank[c, j] >= first[c]:
                        break
                    cost[c, j] += before
                    before += entries.get(j, 0)
                    rho[j] += entries.get(j, 0)
                closing[c] = before
        rows, columns = np.nonzero(self.rank[:, free] < first[:, np.newaxis])
        if len(rows):
            at = np.array(free)[columns]
            saved = np.minimum(cost[rows, at] - u[rows], 0)
            np.add.at(rho, at, saved)
        served = u.copy()
        near = np.nonzero(first < sites)[0]
        if len(near):
            home = self.order[near, first[near]]
            served[near] = np.minimum(u[near], self.w[near, home] + closing[near])
        fixed = self.constant + sum(self.price[s] for s in held) + int((served - closing).sum())
        rest = self._inner(rho, inside, free)
        return None if rest is None else int(fixed + rest)

    def _proves(self, value: int | None) -> bool:
        return value is None or value >= self.claim.needed

    # --- the proof ---------------------------------------------------------------------------

    def run(self, events: Sequence[Sequence[Any]]) -> None:
        """Replay a proof; CertificateError at the first event that does not hold."""
        inside = {int(s) for s in np.nonzero(self.rules.must_hold)[0]}
        if self.leader is not None:
            inside.add(self.leader)
        outside = {int(s) for s in np.nonzero(~self.rules.may_hold)[0]} - inside
        pending: list[tuple[set[int], set[int], dict[int, dict[int, int]]]] = []
        beta: dict[int, dict[int, int]] = {}
        open_state = True
        for number, event in enumerate(events):
            self.events += 1
            self.claim.work.take(len(self.waits))
            if not open_state:
                raise self._flaw(number, "the proof goes on after its end")
            kind = event[0]
            done = False
            if kind == "beta":
                beta = self._betas(event[1], number)
            elif kind == "fix":
                self._fix(event, inside, outside, beta, number)
                outside |= {int(s) for s in event[2]}
                inside |= {int(s) for s in event[3]}
            elif kind == "close":
                if not self._proves(self.bound(inside, outside, self._us(event[1]), beta)):
                    raise self._flaw(number, "the bound does not reach the claim")
                done = True
            elif kind == "enumerate":
                self._enumerate(inside, outside, number)
                done = True
            elif kind == "branch":
                site = int(event[1])
                if site in inside or site in outside or not 0 <= site < len(self.waits):
                    raise self._flaw(number, f"site {site} is not free to branch on")
                pending.append((set(inside), outside | {site}, beta))
                inside = inside | {site}
            else:
                raise self._flaw(number, f"unknown event {kind!r}")
            if done:
                open_state = bool(pending)
                if pending:
                    inside, outside, beta = pending.pop()
        if open_state:
            raise self._flaw(len(events), "the proof ends with something left open")

    def _fix(
        self, event: Sequence[Any], inside: set[int], outside: set[int],
        beta: Mapping[int, Mapping[int, int]], number: int,
    ) -> None:  # fmt: skip
        u = self._us(event[1])
        out, kept = [int(s) for s in event[2]], [int(s) for s in event[3]]
        free = set(range(len(self.waits))) - inside - outside
        if len(set(out) | set(kept)) != len(out) + len(kept) or not {*out, *kept} <= free:
            raise self._flaw(number, "fixes a site that is not free, or twice")
        for s in out:
            if not self._proves(self.bound(inside | {s}, outside, u, beta)):
                raise self._flaw(number, f"nothing proves site {s} out")
        for s in kept:
            shifted = u.copy()
            first = self.rank[:, sorted(inside)].min(axis=1) if inside else None
            for c, entries in beta.items():
                if s in entries and (first is None or self.rank[c, s] < first[c]):
                    shifted[c] = max(0, shifted[c] - entries[s])
            if not self._proves(self.bound(inside, outside | {s}, shifted, beta)):
                raise self._flaw(number, f"nothing proves site {s} in")

    def _enumerate(self, inside: set[int], outside: set[int], number: int) -> None:
        """Evaluate every replica set that agrees with the state."""
        free = [s for s in range(len(self.waits)) if s not in inside and s not in outside]
        least, most = self._sizes(len(inside))
        sizes = range(least, min(most, len(free)) + 1)
        self.claim.work.take(self.steps * sum(math.comb(len(free), size) for size in sizes))
        for size in sizes:
            for more in itertools.combinations(free, size):
                value = self._value(inside | set(more))
                if value is not None and not self._proves(value):
                    raise self._flaw(
                        number, f"the replicas {sorted(inside | set(more))} are better"
                    )

    def _value(self, replicas: set[int]) -> int | None:
        """Least objective of a replica set under this leader; None when nothing is feasible."""
        voters = self._voters(replicas, self.rules.voters)
        if not CapUsage(self.rules.of("replicas"), replicas).kept or voters is None:
            return None
        if voters[0] < self.rules.voters:
            return None
        wait = 0
        for radius in self.radii if self.asks_quorum else ():
            near = self._voters({s for s in replicas if self.waits[s] <= radius}, self.rules.quorum)
            if near is not None and near[0] >= self.rules.quorum:
                wait = radius
                break
        held = sorted(replicas)
        home = np.array(held)[self.rank[:, held].argmin(axis=1)]
        reads = int(self.w[np.arange(len(home)), home].sum()) if len(home) else 0
        prices = int(sum(self.price[s] for s in held))
        return int(self.constant + prices + reads + self.quorum_price * wait)

    # --- reading -----------------------------------------------------------------------------

    def _us(self, values: Sequence[float]) -> Integers:
        if len(values) != len(self.claim.clients) or not all(map(math.isfinite, values)):
            raise CertificateError("a list of multipliers has the wrong length or is not finite")
        return integers(values, self.claim.bits)

    def _betas(self, entries: Sequence[Sequence[float]], number: int) -> dict[int, dict[int, int]]:
        beta: dict[int, dict[int, int]] = {}
        self.claim.work.take(len(entries))
        for site, client, value in entries:
            if not (value >= 0 and math.isfinite(value)):
                raise self._flaw(number, "a closest-assignment multiplier is negative")
            if not (0 <= site < len(self.waits) and 0 <= client < len(self.claim.clients)):
                raise self._flaw(number, "a multiplier belongs to no site or client")
            beta.setdefault(int(client), {})[int(site)] = int(integers([value], self.claim.bits)[0])
        return beta

    def _flaw(self, number: int, what: str) -> CertificateError:
        whom = "all leaders" if self.leader is None else f"leader {self.leader}"
        return CertificateError(f"proof for {whom}, event {number}: {what}")

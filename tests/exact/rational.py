"""A certificate checked in rational numbers, from the page that defines it and nothing else.

Only arrays and rules are read from the core; every bound is computed anew as a fraction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from formulations.exact.certificate_events import Certificate, Event
from formulations.exact.reduced_problem import ReducedProblem

INFINITE = None
HUGE = 10**40


class Checker:
    """Re-proves one certificate; raises AssertionError where it does not hold."""

    def __init__(self, core: ReducedProblem, certificate: Certificate) -> None:
        self.core, self.certificate = core, certificate
        self.sites = range(core.sites)
        demand, rules = core.demand, core.rules
        self.rules = rules
        self.rtt = [[Fraction(float(x)) for x in row] for row in core.client_rtt]
        self.between = [[Fraction(float(x)) for x in row] for row in core.site_rtt]
        self.near = [Fraction(float(x)) for x in demand.near[0]]
        self.relay = [Fraction(float(x)) for x in demand.relay[0]]
        self.direct = [Fraction(float(x)) for x in demand.direct[0]]
        self.votes = Fraction(float(demand.quorum[0]))
        self.clients = [c for c in range(core.clients) if self.near[c] > 0 or self.relay[c] > 0]
        assert tuple(self.clients) == certificate.clients
        self.claim = Fraction(certificate.bound)
        self.grain = Fraction(certificate.granularity)
        self.least = max(rules.replicas_min, rules.voters)
        self.caps = {
            role: [([int(x) for x in g.labels], g.cap) for g in rules.of(role)]
            for role in ("replicas", "voters")
        }
        if self.grain:
            numbers = [*self.near, *self.relay, *self.direct, self.votes]
            numbers += [x for row in (*self.rtt, *self.between) for x in row]
            assert all((x / self.grain).denominator == 1 for x in numbers)

    def check(self) -> None:
        leaders = [s for s in self.sites if self.rules.may_lead[s]]
        proofs = self.certificate.leaders
        if list(proofs) == [-1]:
            assert not self.core.leader_matters
        else:
            assert sorted(proofs) == leaders
        for leader, events in proofs.items():
            self.leader = leader
            pinned = {s for s in self.sites if self.rules.must_hold[s]}
            start = frozenset(pinned | ({leader} if leader >= 0 else set()))
            out = frozenset(s for s in self.sites if not self.rules.may_hold[s])
            self.moved: dict[tuple[int, int], Fraction] = {}
            rest = iter(events)
            if events and events[0][0] == "transfer":
                self.transfer(next(rest)[1])
            self.prove(rest, start, out, {})
            assert next(rest, None) is None, "events after the end of the proof"

    def proves(self, value: Fraction | None) -> bool:
        if value is INFINITE:
            return True
        return value >= self.claim or (self.grain > 0 and value > self.claim - self.grain)

    def prove(
        self,
        events: Iterator[Event],
        held: frozenset[int],
        out: frozenset[int],
        beta: dict[tuple[int, int], Fraction],
    ) -> None:
        for event in events:
            match event:
                case ["beta", entries]:
                    beta = {(j, c): Fraction(x) for j, c, x in entries}
                    assert all(x >= 0 for x in beta.values())
                case ["fix", u, dropped, kept]:
                    for j in dropped:
                        assert self.proves(self.bound(held | {j}, out, u, beta)) or self.proves(
                            self.bound(held, out, u, beta, chosen=j)
                        ), ("out", j)
                    for j in kept:
                        lowered = self.lowered(u, j, held, beta)
                        assert self.proves(self.bound(held, out | {j}, lowered, beta)) or (
                            self.proves(self.bound(held, out, u, beta, left=j))
                        ), ("in", j)
                    out, held = out | set(dropped), held | set(kept)
                case ["close", u]:
                    assert self.proves(self.bound(held, out, u, beta)), "close"
                    return
                case ["shared", number]:
                    (leader,) = held - {s for s in self.sites if self.rules.must_hold[s]}
                    u = self.certificate.references[number].under(self.core, leader)
                    assert self.proves(self.bound(held, out, u.tolist(), beta)), "shared"
                    return
                case ["enumerate"]:
                    self.enumerate(held, out)
                    return
                case ["branch", j]:
                    self.prove(events, held | {j}, out, beta)
                    out = out | {j}
        raise AssertionError("the proof ends before it is finished")

    def transfer(self, entries: Sequence[tuple[int, int, int, float]]) -> None:
        for giver, last, taker, amount in entries:
            assert amount >= 0
            order = self.order(self.clients[giver])
            for j in order[: order.index(last) + 1]:
                for i, sign in ((giver, -1), (taker, 1)):
                    self.moved[i, j] = self.moved.get((i, j), Fraction(0)) + sign * Fraction(amount)

    # --- the bound -----------------------------------------------------------------------

    def cost(self, c: int, j: int) -> Fraction:
        relayed = self.between[j][self.leader] if self.leader >= 0 else Fraction(0)
        return self.near[c] * self.rtt[c][j] + self.relay[c] * relayed

    def price(self, j: int) -> Fraction:
        table = self.core.price
        return Fraction(0) if table is None else Fraction(float(table[max(self.leader, 0), j]))

    def order(self, c: int) -> list[int]:
        return sorted(self.sites, key=lambda s: (self.rtt[c][s], s))

    def nearer(self, c: int, held: frozenset[int]) -> list[int]:
        found = []
        for s in self.order(c):
            if s in held:
                return found
            found.append(s)
        return found

    def lowered(self, u: Sequence[float], j: int, held, beta) -> list[Fraction]:
        return [
            max(Fraction(0), Fraction(u[i]) - beta.get((j, i), Fraction(0)))
            if j in self.nearer(c, held)
            else Fraction(u[i])
            for i, c in enumerate(self.clients)
        ]

    def bounded_cost(self, i: int, j: int) -> Fraction:
        return self.cost(self.clients[i], j) + self.moved.get((i, j), Fraction(0))

    def detours(self, i: int, held, free) -> dict[int, Fraction]:
        """Return r of the free sites that a client prefers to its first of `held`."""
        c = self.clients[i]
        fixed = [s for s in self.order(c) if s in held]
        if not fixed:
            return {}
        alone = self.bounded_cost(i, fixed[0])
        nearer = [j for j in self.nearer(c, held) if j in free]
        costs = [self.bounded_cost(i, j) for j in nearer]
        most = [max(alone, min(costs[: k + 1])) for k in range(len(costs))] + [alone]
        return {j: most[k] - most[k + 1] for k, j in enumerate(nearer)}

    def bound(self, held, out, u, beta, chosen=None, left=None) -> Fraction | None:
        """L; over the sets with the free site `chosen`, or without `left`, where it is given."""
        total = sum((self.price(j) for j in held), Fraction(0))
        if self.leader >= 0:
            total += sum(g * row[self.leader] for g, row in zip(self.direct, self.rtt, strict=True))
        free = [s for s in self.sites if s not in held and s not in out]
        rho = {j: self.price(j) for j in free}
        for i, c in enumerate(self.clients):
            before, value = Fraction(0), Fraction(u[i])
            for j in self.nearer(c, held):
                if j not in rho:
                    continue
                weight = beta.get((j, i), Fraction(0))
                rho[j] += weight + min(Fraction(0), self.bounded_cost(i, j) + before - value)
                before += weight
            for j, longer in self.detours(i, held, rho).items() if not beta else ():
                rho[j] += longer
            fixed = [s for s in self.order(c) if s in held]
            if fixed:
                value = min(value, self.bounded_cost(i, fixed[0]) + before)
            total += value - before
        if left is not None:
            free.remove(left)
        if chosen is not None:  # the sets without it are out of the question
            rho[chosen] -= HUGE
            total += HUGE
        inner = self.inner(held, free, rho)
        return INFINITE if inner is INFINITE else total + inner

    def inner(self, held, free, rho) -> Fraction | None:
        rules, leader = self.rules, self.leader
        given = {s for s in self.sites if rules.must_vote[s]} | ({leader} if leader >= 0 else set())
        if len(given) > rules.voters or not self.within("voters", given):
            return INFINITE
        # a site that breaks a cap beside those held is in no configuration of the state
        open_sites = [j for j in free if self.within("replicas", held | {j})]
        ranked = sorted(open_sites, key=lambda j: rho[j])
        common = [
            self.capped(held, ranked, rho),
            self.voting(held, ranked, rho, given, rules.voters, set(self.sites)),
        ]
        if INFINITE in common:
            return INFINITE
        if leader < 0 or self.votes == 0 or rules.quorum == 1:
            return max(common)
        best = INFINITE
        for radius in sorted({Fraction(0), *self.between[leader]}):
            inside = {s for s in self.sites if s == leader or self.between[leader][s] <= radius}
            voting = self.voting(held, ranked, rho, given, rules.quorum, inside)
            if voting is not INFINITE:
                value = self.votes * radius + max(*common, voting)
                best = value if best is INFINITE else min(best, value)
        return best

    def within(self, role, chosen) -> bool:
        return all(
            sum(labels[s] == label for s in chosen) <= cap
            for labels, cap in self.caps[role]
            for label in {labels[s] for s in chosen}
        )

    def sizes(self, held) -> tuple[int, int]:
        return max(0, self.least - len(held)), self.rules.replicas_max - len(held)

    def capped(self, held, ranked, rho) -> Fraction | None:
        low, high = self.sizes(held)
        taken: set[int] = set()
        if high < 0 or not self.within("replicas", held):
            return INFINITE
        for j in ranked:
            wanted = len(taken) < low or (rho[j] < 0 and len(taken) < high)
            if wanted and self.within("replicas", held | taken | {j}):
                taken.add(j)
        return sum((rho[j] for j in taken), Fraction(0)) if len(taken) >= low else INFINITE

    def voting(self, held, ranked, rho, given, wanted, inside) -> Fraction | None:
        rules = self.rules
        if wanted - len(given & inside) > rules.voters - len(given):
            return INFINITE
        admitted = set(given)
        for s in sorted(held & inside):
            if s not in admitted and rules.may_vote[s] and self.within("voters", admitted | {s}):
                admitted.add(s)
        need = max(0, wanted - len(admitted & inside))
        low, high = self.sizes(held)
        low, high = max(0, low - need), high - need
        if high < 0:
            return INFINITE
        total, others = Fraction(0), 0
        for j in ranked:
            votes = j in inside and rules.may_vote[j] and self.within("voters", admitted | {j})
            if need > 0 and votes:
                admitted.add(j)
                need -= 1
                total += rho[j]
            elif others < low or (rho[j] < 0 and others < high):
                others += 1
                total += rho[j]
        return total if need == 0 and others >= low else INFINITE

    # --- leaves that are enumerated -------------------------------------------------------

    def enumerate(self, held: frozenset[int], out: frozenset[int]) -> None:
        free = [s for s in self.sites if s not in held and s not in out]
        low, high = self.sizes(held)
        for size in range(low, high + 1):
            for more in combinations(free, size):
                replicas = held | set(more)
                if not self.within("replicas", replicas):
                    continue
                configuration = self.core.configuration(self.leader, sorted(replicas))
                if configuration is None:
                    continue
                value = sum((self.price(j) for j in replicas), Fraction(0))
                if self.leader >= 0:
                    value += sum(
                        g * row[self.leader] for g, row in zip(self.direct, self.rtt, strict=True)
                    )
                    waits = sorted(self.between[self.leader][x] for x in configuration.voters)
                    value += self.votes * waits[self.rules.quorum - 1]
                for c in self.clients:
                    nearest = min(replicas, key=lambda s: (self.rtt[c][s], s))
                    value += self.cost(c, nearest)
                slack = abs(value) / 10**13  # the claim may be the score itself, summed in doubles
                assert value + slack >= self.claim, "an enumerated configuration is better"

r"""The bound of the engine, and the certificate that re-proves it without the search.

The problem of one leader
-------------------------
Fix a leader ℓ. With A, B, G, D of Eq. 1, c ranks sites by (d(c, ·), site order), written j ≺_c k,
and

    w_cj = A_c d(c, j) + B_c d(j, ℓ)          what c costs when j is its nearest replica
    K_ℓ  = Σ_c G_c d(c, ℓ)                    over *all* clients
    price_j                                   price of a replica at j under ℓ (0 without prices)

the objective of (ℓ, V, R) is  K_ℓ + Σ_{j ∈ R} price_j + Σ_c w_c,near(c) + D q_ℓ(V).  Only *active*
clients (A_c > 0 or B_c > 0) appear below; the others contribute to K_ℓ alone.

When B = G = D = 0 and prices do not depend on the leader, one proof serves all of them: it is
stored under the leader ``null``, and there w_cj = A_c d(c, j), K = 0, no quorum term, and price_j =
row 0.

A state
-------
A state (I, O) says that the sites of I hold replicas and those of O do not. The state a leader
starts with is I = {ℓ} ∪ must_hold, O = the sites that may not hold. All other sites are free, F.
For a client c let f(c) be its ≺_c-first site of I (there is none when I is empty), and N(c) the
free sites j ≺_c f(c): only they and f(c) can be its nearest replica.

The bound of a state
--------------------
For any numbers u_c (one per active client) and β_cj >= 0 (few are not 0; those of sites not free
are ignored), with P_cj = Σ { β_ci : i ∈ N(c), i ≺_c j } and T_c = Σ { β_ci : i ∈ N(c) },

    L(I, O, u, β) = K_ℓ + Σ_{j ∈ I} price_j
                  + Σ_c [ min(u_c, w_c,f(c) + T_c) − T_c ]        (just u_c − T_c without an f(c))
                  + Z(ρ)
    ρ_j           = price_j + Σ_{c: j ∈ N(c)} [ β_cj + min(0, w_cj + P_cj − u_c) ]        for j free

is a lower bound on the objective of every configuration that agrees with the state.

*Why:* let y_j say that a replica is at j, and x_cj that j is the nearest replica of c. Then

- u is the multiplier of Σ_j x_cj = 1: each client has one nearest replica (and x_cj <= y_j);
- β is the multiplier of the closest-assignment rows Σ_{k: j ≺_c k} x_ck + y_j <= 1: with a replica
  at j, client c uses no site behind j (Wagner and Falkson 1975).

The remaining problem separates into one choice per client, which is solved above, and Z. Without β
this is the bound of Narula, Ogbu and Samuelsson (1977) for the p-median problem.

*Detours.* Where all β are 0, ρ_j has one more term. Let 1, …, p be the sites of N(c), in c's order,
and M_i = max(w_c,f(c), min(w_c1, …, w_ci)), M_{p+1} = w_c,f(c). Then c adds M_i − M_{i+1} to ρ_i:
what it would pay less at f(c) if no site up to i took it away (:mod:`placement.proof.costs.detours`
has the proof). Without an f(c) it adds nothing.

*Transfers.* Let g and h be two clients, T the first sites of g in its order ≺_g, up to a site i,
and a >= 0. If T serves h, then T holds a replica. Client g prefers T to all other sites, so T
serves g too. Now lower w_gj by a and raise w_hj by a, for all j in T. No configuration costs more
than before, so L with these costs is a lower bound too. The bound rises where the relaxation serves
g from sites far from the replicas of other clients.

*Shared multipliers.* Let u be multipliers of a leader k, and s_c a site for each client c: the one
that serves it under k in the relaxation. Under another leader ℓ they become

    u_c(ℓ) = max(0, min(u_c + B_c (d(s_c, ℓ) − d(s_c, k)), A_c d(c, ℓ))).

Any multipliers give a valid bound, so these do. They are good ones where client c stays with s_c,
because its cost there changes by the same amount, or moves to ℓ. And ρ of all leaders together is
cheap to bound from below. Without max and min, let t = d(j, ℓ) − d(s, ℓ) + d(s, k). The clients
with s_c = s then add

    F_js(t) = Σ_{c: s_c = s} min(0, B_c t − (u_c − A_c d(c, j)))

to ρ_j: one concave, piecewise linear function of the number t for all leaders. It is tabulated
once, in O(|C| + intervals) for each j and for all s together, and read once for each s and ℓ; its
chords do not exceed it. Max and min raise ρ_j or leave it, and Σ_c min(u_c, w_cℓ) as well. So a
leader is closed by sums of F, or by ρ at u(ℓ) of the sites alone that the inner problem would
select with F in place of it (``csrc/shared_bounds.c``).

Z(ρ), the inner problem, is a lower bound of min Σ_{j ∈ Y} ρ_j + D q over the sets Y ⊆ F with
n_min <= |I| + |Y| <= n_max, n_min = max(replicas_min, voters), for which voters V ⊆ I ∪ Y with
radius q exist. For a radius r let S(r) be the sites with d(ℓ, ·) <= r (ℓ itself at 0). Then

    Z(ρ) = min over the distinct radii r of  D r + max( E_r, C, W )

    E_r  cheapest Y (size as above) such that I ∪ Y contains m voters within S(r)
    C    cheapest Y (size as above) such that I ∪ Y obeys the rules for replicas
    W    cheapest Y (size as above) such that I ∪ Y contains v voters

Let M = {ℓ} ∪ must_vote, or must_vote under ``null``. "I ∪ Y contains k voters within S" means:

- some k sites of (I ∪ Y) ∩ S may vote, and M ∩ S is among them;
- these k sites and the rest of M belong to v voters that obey the rules;
- k − |M ∩ S| <= v − |M|.

A term that is impossible is +∞. Z is +∞ when M breaks a rule or |M| > v. Under ``null``, and when
D = 0 or m = 1, only r = 0 is used and E_0 is left out. E_r alone is exact without rules and
without restrictions on voters.

Each of the three is a minimum-weight basis of a matroid (for E and W the elongation of a laminar
matroid), so one greedy pass over F by ascending ρ finds it. Let `low` and `high` be the fewest and
most sites still to add, max(0, n_min − |I|) and n_max − |I|.

- C: take a site with ρ < 0 when the minimums can still be met after it. Take a site with ρ >= 0
  only when it also lowers the number of sites that are needed, `low` included. C is impossible when
  sites are still needed at the end, or when I itself breaks a rule.
- E and W, with k and S: first admit M. Then admit, one by one, the sites of I ∩ S that may vote and
  that the rules for voters allow. Let need = max(0, k − number admitted within S). The pass takes a
  site as a *voter* if voters are still needed, the site lies in S and may vote, and the rules allow
  the site beside the admitted ones. Otherwise the pass takes the site as a *filler* if fewer than
  low − need fillers are taken, or if ρ < 0 and fewer than high − need are taken. The term is
  impossible when high < need, or when voters or fillers are missing.

Rules that make no matroid together are split into families that do
(:mod:`placement.model.site_families`); E, C and W are then the largest over the families. Sites of
F for which a family of the replicas has no room beside I are left out of Y.

The certificate
---------------
A claim "no configuration has an objective below `bound`", and for every leader that may lead one
proof: a list of events, read in order with a current state (I, O) and current β (0 at first).

===============================  ==============================================================
["beta", [[j, i, value], …]]     β := these values (i counts active clients), all others 0
["transfer", [[g, i, h, a], …]]  the costs w of all that follows are those after these transfers
                                 (g and h count active clients); only as the first event
["fix", u, out, in]              for j in `out`: L(I, O, u, β) proves the claim with Z(ρ) over the
                                 sets Y that hold j, or L(I + j, O, u, β) does;
                                 for j in `in`: the former with Z(ρ) over the sets Y without j, or
                                 L(I, O + j, u', β), where
                                 u'_c = max(0, u_c − β_cj) if j ∈ N(c), else u_c.
                                 All are checked at the state before the event; then
                                 O := O + out and I := I + in.
["close", u]                     L(I, O, u, β) proves the claim for this state: done with it
["shared", k]                    as "close", with the multipliers of entry k of "shared" moved to
                                 this leader
["enumerate"]                    every configuration that agrees with the state is evaluated;
                                 none is below the claim: done with it
["branch", j]                    first a proof of (I + j, O) with the current β follows, up to
                                 and including the event that is done with it; then this list
                                 goes on with the state (I, O + j) and the β of the branch
===============================  ==============================================================

The certificate lists shared multipliers in "shared", each as [k, u, sites], where it has some.

One evaluation of L(I, O, u, β) gives the ρ for both cases of every site of a "fix".

The list ends with the event that is done with the leader's start state. A value x *proves the
claim* when x >= `bound`, or, when the granularity g is positive (then every objective is a multiple
of g), when x > `bound` − g. All numbers are doubles and mean exactly what they are; a checker that
computes in rationals needs no tolerance. The engine computes in doubles and subtracts from every
bound a rigorous allowance for rounding, so each event holds exactly.

An example of three sites
-------------------------
Sites a, b and c (0, 1, 2) lie on a line at 0, 1 and 3 ms, with one client at each. A = B = 1 for
every client, G = 0 and D = 2; there are two replicas, both vote, and the leader waits for both.

>>> import numpy as np
>>> rtt = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
>>> leader = 1
>>> w = rtt + rtt[:, leader]  # w_cj, a row per client
>>> w.tolist()
[[1.0, 1.0, 5.0], [2.0, 0.0, 4.0], [4.0, 2.0, 2.0]]

In the start state of leader b, I = {b}: f(c) = b for every client, N(a) = {a}, N(b) = {} and
N(c) = {c}. With u = (1, 0, 2) and β = 0 neither a nor c saves anything:

>>> u = np.array([1.0, 0.0, 2.0])
>>> served = float(np.minimum(u, w[:, leader]).sum())
>>> rho = [min(0.0, float(w[site, site] - u[site])) for site in (0, 2)]
>>> served, rho
(3.0, [0.0, 0.0])

Both replicas are within a radius of 1 ms of b when the other one is a, and of 2 ms when it is c.
So Z = min(2 · 1 + 0, 2 · 2 + 0) = 2 and L = 3 + 2 = 5: nothing under b is below 5. The search
finds {a, b} under b, which costs 1 + 0 + 2 for the clients and 2 for the quorum, and proves it by
one event for each leader:

>>> from formulations.exact.branch_and_bound import search
>>> from formulations.exact.reduced_problem import ReducedProblem
>>> weights = (np.ones(3), np.ones(3), np.zeros(3), 2.0)
>>> core = ReducedProblem.of_arrays(rtt, rtt, weights, replicas=(2, 2), voters=2)
>>> result = search(core)
>>> result.configuration.leader, result.configuration.replicas, result.score
(1, (0, 1), 5.0)
>>> for events in result.certificate.leaders.items():
...     print(events)
(1, [['close', [1.0, 0.0, 2.0]]])
(0, [['close', [0.0, 1.0, 3.0]]])
(2, [['close', [3.0, 2.0, 0.0]]])

Under a, f(c) = a and L = 0 + 1 + 3 + 2 · 1 = 6; under c, L = 3 + 2 + 0 + 2 · 2 = 9: both are at
least 5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.exact.kernel import Multipliers, ReferenceLeader
from formulations.exact.reduced_problem import ReducedProblem
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray

FORMAT = "replica-placement/bound/1"
"""Name and version of the format."""

_FIX, _CLOSE, _ENUMERATE, _BRANCH, _BETA, _PART, EVENTS_OF, _TRANSFER = range(1, 9)
_NUMBERED = {_BRANCH: "branch", _PART: "part", EVENTS_OF: "events of"}

Event = list[Any]
"""An event as the module shows it; leader −1 in the program is ``null`` in the file.

In the record of a kernel ["part", n] stands in the place of a part that is recorded later, and
["events of", n] before the events of that part.
"""


def close_event(u: FloatArray) -> FloatArray:
    """Return the flat form of "close", as the kernels record it."""
    return np.concatenate([[float(_CLOSE), 0.0], u])


def decode_trees(log: FloatArray, leaders: Collection[int], clients: int) -> dict[int, list[Event]]:
    """Decode the record of the trees, part by part; return the events by leader.

    A part that was put off counts as it was recorded last: a tree may begin again. The number of
    the whole of a tree is that of the leader.
    """
    parts: dict[int, list[Event]] = {}
    current: list[Event] = []
    for event in decode_events(log, clients):
        if event[0] == "events of":
            parts[event[1]] = current = []
        else:
            current.append(event)
    return {leader: list(_joined(leader, parts)) for leader in leaders if leader in parts}


def _joined(first: int, parts: Mapping[int, Sequence[Event]]) -> Iterator[Event]:
    """Yield the events of a part, with the events of postponed parts in their places."""
    open_ones = [iter(parts[first])]
    while open_ones:
        for event in open_ones[-1]:
            if event[0] == "part":
                open_ones.append(iter(parts[event[1]]))
                break
            yield event
        else:
            open_ones.pop()


def decode_events(flat: FloatArray, clients: int) -> Iterator[Event]:
    """Yield the events of the numbers that a kernel recorded, with so many active clients."""
    at = 0

    def numbers(count: float) -> list[float]:
        nonlocal at
        chunk: list[float] = flat[at : at + int(count)].tolist()
        at += int(count)
        return chunk

    def sites() -> list[int]:
        return list(map(int, numbers(*numbers(1))))

    while at < len(flat):
        kind, value = numbers(2)
        if kind == _FIX:
            yield ["fix", numbers(clients), sites(), sites()]
        elif kind == _CLOSE:
            yield ["close", numbers(clients)]
        elif kind == _ENUMERATE:
            yield ["enumerate"]
        elif kind in _NUMBERED:
            yield [_NUMBERED[int(kind)], int(value)]
        elif kind == _BETA:
            entries = (numbers(3) for _ in range(int(value)))
            yield ["beta", [[int(j), int(c), x] for j, c, x in entries]]
        elif kind == _TRANSFER:
            moves = (numbers(4) for _ in range(int(value)))
            yield ["transfer", [[int(g), int(i), int(h), x] for g, i, h, x in moves]]
        else:
            raise AssertionError(f"a kernel recorded an unknown event {kind}")


@dataclass(frozen=True, eq=False)
class Certificate:
    """The certificate of an optimum; see the module.

    The claim is `bound`, with its granularity g (0: none). `clients` are the indices of the active
    clients, in the order in which u and β count them. `leaders` has the events of each that may
    lead, or of one for all; `references` the multipliers that "shared" counts.
    """

    configuration: Configuration
    score: float
    bound: float
    granularity: float
    clients: tuple[int, ...]
    leaders: Mapping[int, list[Event]]
    references: tuple[ReferenceLeader, ...] = ()

    @classmethod
    def decode(
        cls,
        core: ReducedProblem,
        configuration: Configuration,
        bound: float,
        recorded: Mapping[int, FloatArray],
        multipliers: Multipliers,
        log: FloatArray,
    ) -> Certificate:
        """Decode the records of the kernels for each leader.

        `recorded` has events by leader; of a leader without any the last multipliers close it, by a
        later incumbent perhaps. `log` has the trees; a leader's tree counts in place of its events.
        """
        clients, score = core.active.tolist(), core.score(configuration)
        trees = decode_trees(log, recorded, len(clients))
        numbers: dict[ReferenceLeader, int] = {}
        leaders: dict[int, list[Event]] = {}
        for leader, events in recorded.items():
            reference = multipliers.shared.get(leader)
            if leader in trees:
                leaders[leader] = trees[leader]
            elif not len(events) and reference is not None:
                number = numbers.setdefault(reference, len(numbers))
                leaders[leader] = [["shared", number]]
            else:
                events = events if len(events) else close_event(multipliers[leader])
                leaders[leader] = list(decode_events(events, len(clients)))
        claim = configuration, score, min(bound, score), core.granularity
        return cls(*claim, tuple(clients), leaders, tuple(numbers))

    def to_json(self) -> Mapping[str, object]:
        """Return the certificate as JSON-like data; site and client numbers are indices."""
        return {
            "format": FORMAT,
            **self.configuration.to_document(),
            "score": self.score,
            "bound": self.bound,
            "granularity": self.granularity,
            "clients": list(self.clients),
            "proofs": [
                {"leader": None if leader < 0 else leader, "events": events}
                for leader, events in self.leaders.items()
            ],
            **({"shared": [one.to_json() for one in self.references]} if self.references else {}),
        }

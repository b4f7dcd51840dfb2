"""What the engine works on: plain arrays of one placement problem, and the exact score.

Nothing in this package but :mod:`formulations.exact.method` knows instances and problems by name; the
engine sees a :class:`Core`.  The score is the one of Eq. 1 of Sharov et al. (PVLDB 8(12), 2015)::

    score(l, V, R) = sum_c ( A_c d(c, near) + B_c d(near, l) + G_c d(c, l) ) + D q_l(V) + price_l(R)

with near = the replica of smallest d(c, .), ties to the lower site index, and q_l(V) the m-th smallest of
d(l, x) over the voters x.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from placement.errors import InputError

__all__ = ["BoolArray", "Cap", "Core", "FloatArray", "IntArray", "voters_for"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


def _frozen(array: NDArray[np.generic]) -> None:
    array.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Cap:
    """At most `limit` chosen sites per label.

    Parameters
    ----------
    labels
        Label of each site, shape (sites,), any integers.
    limit
        Largest number of chosen sites that may share one label, >= 0.
    """

    labels: IntArray
    limit: int


@dataclass(frozen=True, eq=False)
class Core:
    """One placement problem as arrays.

    Parameters
    ----------
    client_rtt
        RTT from client to site, ms, shape (clients, sites), finite and >= 0.
    site_rtt
        RTT between sites, ms, shape (sites, sites); the row is the side that waits; zero diagonal.
    near, relay, direct
        Weights A, B, G of Eq. 1, shape (clients,), >= 0.
    quorum
        Weight D of Eq. 1, >= 0.
    replicas_min, replicas_max
        Range of \\|R\\|.
    voters
        \\|V\\|.
    quorum_size
        m, the number of voters (the leader included) that must answer, 1 <= m <= voters.
    may_hold, must_hold, may_vote, must_vote, may_lead
        Which sites may or must be replica, voter, leader; shape (sites,).
    replica_caps, voter_caps
        Caps per label. The levels of one role must be nested (a laminar family).
    price
        Linear price of a replica at r under leader l, shape (sites, sites), >= 0, or None.

    Notes
    -----
    Building one checks shapes and ranges and raises :class:`~placement.errors.InputError`; whether any
    configuration exists is for the engine to find out.
    """

    client_rtt: FloatArray
    site_rtt: FloatArray
    near: FloatArray
    relay: FloatArray
    direct: FloatArray
    quorum: float
    replicas_min: int
    replicas_max: int
    voters: int
    quorum_size: int
    may_hold: BoolArray = field(default_factory=lambda: np.ones(0, dtype=np.bool_))
    must_hold: BoolArray = field(default_factory=lambda: np.ones(0, dtype=np.bool_))
    may_vote: BoolArray = field(default_factory=lambda: np.ones(0, dtype=np.bool_))
    must_vote: BoolArray = field(default_factory=lambda: np.ones(0, dtype=np.bool_))
    may_lead: BoolArray = field(default_factory=lambda: np.ones(0, dtype=np.bool_))
    replica_caps: tuple[Cap, ...] = ()
    voter_caps: tuple[Cap, ...] = ()
    price: FloatArray | None = None

    def __post_init__(self) -> None:
        """Normalise the arrays (read-only, contiguous; voters hold) and check them."""
        client_rtt = np.ascontiguousarray(self.client_rtt, dtype=np.float64)
        if client_rtt.ndim != 2 or client_rtt.shape[1] < 1:
            raise InputError("wrong shape", field="client_rtt", value=client_rtt.shape)
        clients, sites = client_rtt.shape
        put = object.__setattr__
        put(self, "client_rtt", client_rtt)
        put(self, "site_rtt", np.ascontiguousarray(self.site_rtt, dtype=np.float64))
        for name in ("near", "relay", "direct"):
            put(self, name, np.ascontiguousarray(getattr(self, name), dtype=np.float64))
        for name, default in (
            ("may_hold", True),
            ("must_hold", False),
            ("may_vote", True),
            ("must_vote", False),
            ("may_lead", True),
        ):
            flags: BoolArray = np.asarray(getattr(self, name), dtype=np.bool_)
            if flags.size == 0:
                flags = np.full(sites, default)
            if flags.shape != (sites,):
                raise InputError(
                    "wrong shape", field=name, value=flags.shape, expected=str((sites,))
                )
            put(self, name, flags.copy())
        if self.price is not None:
            put(self, "price", np.ascontiguousarray(self.price, dtype=np.float64))
        shapes = {
            "site_rtt": (sites, sites),
            "near": (clients,),
            "relay": (clients,),
            "direct": (clients,),
            "price": (sites, sites),
        }
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array is None:
                continue
            if array.shape != shape:
                raise InputError("wrong shape", field=name, value=array.shape, expected=str(shape))
        for name in ("client_rtt", *shapes):
            array = getattr(self, name)
            if array is not None and not (np.isfinite(array).all() and (array >= 0).all()):
                raise InputError("not finite or negative", field=name, expected="finite and >= 0")
        if np.diagonal(self.site_rtt).any():
            raise InputError("non-zero diagonal", field="site_rtt", expected="zeros")
        if not (np.isfinite(self.quorum) and self.quorum >= 0):
            raise InputError("not finite or negative", field="quorum", value=self.quorum)
        if not 1 <= self.quorum_size <= self.voters:
            raise InputError(
                "quorum size out of range",
                field="quorum_size",
                value=self.quorum_size,
                expected=f"1..{self.voters}",
            )
        if not 1 <= self.replicas_min <= self.replicas_max:
            raise InputError(
                "empty range",
                field="replicas",
                value=(self.replicas_min, self.replicas_max),
                expected="1 <= min <= max",
            )
        for cap in (*self.replica_caps, *self.voter_caps):
            if cap.labels.shape != (sites,) or cap.limit < 0:
                raise InputError(
                    "wrong cap", field="caps", value=(cap.labels.shape, cap.limit),
                    expected=f"labels of shape ({sites},) and a limit >= 0",
                )
        # A voter is a replica, a leader is a voter: what follows from that is made explicit here.
        put(self, "must_hold", self.must_hold | self.must_vote)
        put(self, "may_vote", self.may_vote & self.may_hold)
        put(self, "may_lead", self.may_lead & self.may_vote)
        put(self, "replicas_min", max(self.replicas_min, self.voters))
        for name in ("client_rtt", "site_rtt", "near", "relay", "direct", "price", "may_hold",
                     "must_hold", "may_vote", "must_vote", "may_lead"):
            array = getattr(self, name)
            if array is not None and array.base is None and array.flags.owndata:
                _frozen(array)

    @property
    def clients(self) -> int:
        """Number of clients."""
        return int(self.client_rtt.shape[0])

    @property
    def sites(self) -> int:
        """Number of sites."""
        return int(self.client_rtt.shape[1])

    @property
    def leader_matters(self) -> bool:
        """False when no term of the score, and no price, depends on the leader."""
        if self.quorum > 0 or self.relay.any() or self.direct.any():
            return True
        return self.price is not None and bool((self.price != self.price[0]).any())

    def score(self, leader: int, replicas: IntArray, voters: IntArray) -> float:
        """Score of one configuration (Eq. 1), in O(clients * replicas).

        Parameters
        ----------
        leader
            Site index.
        replicas, voters
            Site indices, ascending.
        """
        rtt = self.client_rtt[:, replicas]
        chosen = replicas[np.argmin(rtt, axis=1)]  # first minimum: ties to the lower site index
        rows = np.arange(self.clients)
        served = self.near @ self.client_rtt[rows, chosen]
        relayed = self.relay @ self.site_rtt[chosen, leader]
        direct = self.direct @ self.client_rtt[:, leader]
        radius = np.sort(self.site_rtt[leader, voters])[self.quorum_size - 1]
        total = served + relayed + direct + self.quorum * radius
        if self.price is not None:
            total += self.price[leader, replicas].sum()
        return float(total)


def voters_for(core: Core, leader: int, replicas: IntArray) -> IntArray | None:
    """Best voters for a leader among given replicas, ascending, or None when there are none.

    Closest-first greedy subject to the caps, the leader and the sites that must vote first: the basis a
    matroid's greedy returns minimises every order statistic of the distances at once, hence also the
    m-th smallest (Sharov et al., Algorithm 2, extended from one cap level to nested ones).
    O(replicas log replicas + replicas * levels).
    """
    chosen: list[int] = []
    counts: list[dict[int, int]] = [{} for _ in core.voter_caps]

    def admit(site: int) -> bool:
        labels = [int(cap.labels[site]) for cap in core.voter_caps]
        for count, label, cap in zip(counts, labels, core.voter_caps, strict=True):
            if count.get(label, 0) >= cap.limit:
                return False
        for count, label in zip(counts, labels, strict=True):
            count[label] = count.get(label, 0) + 1
        chosen.append(site)
        return True

    members = [int(r) for r in replicas]
    if leader not in members or not core.may_lead[leader]:
        return None
    if any(bool(core.must_vote[s]) and s not in members for s in range(core.sites)):
        return None
    for site in members:
        if (site == leader or core.must_vote[site]) and not admit(site):
            return None
    if len(chosen) > core.voters:
        return None
    distance = core.site_rtt[leader]
    for site in sorted(members, key=lambda s: (float(distance[s]), s)):
        if len(chosen) == core.voters:
            break
        if site not in chosen and core.may_vote[site]:
            admit(site)
    if len(chosen) < core.voters:
        return None
    return np.array(sorted(chosen), dtype=np.int64)

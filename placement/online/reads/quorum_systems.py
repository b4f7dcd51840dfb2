"""Quorum systems for reads: which sets of nodes a gateway may ask, and the cheapest of them.

The leaseholder alone is no part of a system; :class:`placement.online.reads.ReadProblem` adds it.
Every system answers the *pricing* question exactly: given a price per node and a price per
millisecond, which of its quorums is cheapest for a gateway? Lower bounds use that answer, so
that it is written once, here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from placement.errors import InputError
from placement.support.checks import FloatArray, elements, flag, whole

__all__ = ["GridQuorums", "ListedQuorums", "Quorum", "QuorumSystem", "ThresholdQuorums"]

Quorum = tuple[int, ...]
"""Nodes asked, in increasing order."""


@runtime_checkable
class QuorumSystem(Protocol):
    """Protocol of a quorum system."""

    @property
    def nodes(self) -> int:
        """Return the number of nodes; quorums are sets of 0 … nodes − 1."""

    @property
    def spare(self) -> int:
        """Answers of a quorum that a read does not wait for; the slowest ones."""

    def quorums(self, gateway: int) -> Iterator[Quorum]:
        """All quorums that `gateway` may ask."""

    def count(self, gateway: int) -> int:
        """Return the number of quorums."""

    def legal(self, gateway: int, quorum: Quorum) -> bool:
        """Return whether `gateway` may ask `quorum`."""

    def latency(self, rtt: FloatArray, quorum: Quorum) -> float:
        """Time in ms until a gateway with RTTs `rtt` has the answers it waits for."""

    def cheapest(
        self, gateway: int, rtt: FloatArray, prices: FloatArray, per_ms: float
    ) -> tuple[float, Quorum] | None:
        """Least Σ_{v ∈ A} prices[v] + per_ms·latency(A) and an A of that value; None without any.

        Prices are >= 0.
        """


@dataclass(frozen=True)
class ThresholdQuorums:
    """Any `size` of the eligible nodes, perhaps asking `spare` more and waiting for the fastest.

    With `spare` = f a read still completes when any f of the nodes it asks fail.

    Parameters
    ----------
    nodes
        n.
    size
        Answers waited for.
    spare
        Nodes asked beyond `size`.
    without
        A node in no quorum (the leaseholder, in the paper); None: all are eligible.
    include_self
        Whether a gateway is always in its own quorum. A gateway that is `without` then has no
        quorum at all: it reads its own copy.
    """

    nodes: int
    size: int
    spare: int = 0
    without: int | None = None
    include_self: bool = True

    def __post_init__(self) -> None:
        for name, least in (("nodes", 1), ("size", 1), ("spare", 0)):
            object.__setattr__(self, name, whole(getattr(self, name), name, minimum=least))
        if self.without is not None:
            node = whole(self.without, "without", maximum=self.nodes - 1)
            object.__setattr__(self, "without", node)
        flag(self.include_self, "include_self")

    @property
    def asked(self) -> int:
        """Nodes asked: size + spare."""
        return self.size + self.spare

    def eligible(self, gateway: int) -> tuple[int, ...]:
        """Nodes that may be in a quorum of `gateway`; empty when it can have none."""
        nodes = tuple(node for node in range(self.nodes) if node != self.without)
        if len(nodes) < self.asked or (self.include_self and gateway == self.without):
            return ()
        return nodes

    def count(self, gateway: int) -> int:
        """Return the number of quorums of `gateway`."""
        nodes = self.eligible(gateway)
        own = int(self.include_self)
        return comb(len(nodes) - own, self.asked - own) if nodes else 0

    def quorums(self, gateway: int) -> Iterator[Quorum]:
        """Return all quorums; their number is :meth:`count`."""
        nodes = self.eligible(gateway)
        if not nodes:
            return
        for quorum in combinations(nodes, self.asked):
            if not self.include_self or gateway in quorum:
                yield quorum

    def legal(self, gateway: int, quorum: Quorum) -> bool:
        """Return whether `gateway` may ask `quorum`."""
        return (
            len(set(quorum)) == len(quorum) == self.asked
            and set(quorum) <= set(self.eligible(gateway))
            and (gateway in quorum or not self.include_self)
        )

    def latency(self, rtt: FloatArray, quorum: Quorum) -> float:
        """The `size`-th smallest RTT to the nodes asked."""
        return float(sorted(float(rtt[node]) for node in quorum)[self.size - 1])

    def order(self, gateway: int, rtt: FloatArray) -> tuple[int, ...]:
        """Eligible nodes of `gateway`, nearest first, ties to the lower index."""
        return tuple(sorted(self.eligible(gateway), key=lambda node: (rtt[node], node)))

    def cheapest(
        self, gateway: int, rtt: FloatArray, prices: FloatArray, per_ms: float
    ) -> tuple[float, Quorum] | None:
        """For each possible `size`-th fastest node l, the cheapest nodes before and after it.

        Given l, the other members are chosen freely: size − 1 nearer than l and `spare` farther,
        the gateway itself at any place. O(n² log n).
        """
        order = self.order(gateway, rtt)
        best: tuple[float, Quorum] | None = None
        for place, last in enumerate(order):
            near = self._pick(order[:place], self.size - 1, gateway, last, prices)
            far = self._pick(order[place + 1 :], self.spare, gateway, last, prices)
            if near is None or far is None:
                continue
            members = (*near, last, *far)
            if self.include_self and gateway not in members:
                continue
            value = float(sum(prices[node] for node in members)) + per_ms * float(rtt[last])
            if best is None or value < best[0]:
                best = (value, tuple(sorted(members)))
        return best

    def _pick(
        self, nodes: Sequence[int], count: int, gateway: int, last: int, prices: FloatArray
    ) -> list[int] | None:
        """The `count` cheapest of `nodes`, the gateway first if it must be there; or None."""
        must = [gateway] if self.include_self and gateway != last and gateway in nodes else []
        if len(nodes) < count or len(must) > count:
            return None
        rest = sorted(set(nodes) - set(must), key=lambda node: (prices[node], node))
        return must + rest[: count - len(must)]


@dataclass(frozen=True)
class ListedQuorums:
    """Quorums given one by one, the same for every gateway.

    Parameters
    ----------
    nodes
        n.
    sets
        Nodes of each quorum; stored in increasing order, without repetitions.

    Raises
    ------
    InputError
        When there is no quorum, one is empty, or one names a node that does not exist.
    """

    nodes: int
    sets: tuple[Quorum, ...]
    spare: ClassVar[int] = 0

    def __post_init__(self) -> None:
        nodes = whole(self.nodes, "nodes", minimum=1)
        object.__setattr__(self, "nodes", nodes)
        found: dict[Quorum, None] = {}
        for given in elements(self.sets, "sets", "a list of quorums"):
            members = elements(given, "sets", "a list of nodes")
            quorum = {whole(node, "sets", maximum=nodes - 1) for node in members}
            if not quorum:
                raise InputError(
                    "an empty quorum",
                    field="sets",
                    value=given,
                    expected=f"nodes 0 to {nodes - 1}",
                )
            found[tuple(sorted(quorum))] = None
        if not found:
            raise InputError("no quorums", field="sets", value=(), expected="at least one")
        object.__setattr__(self, "sets", tuple(found))

    @classmethod
    def of(cls, nodes: int, sets: Iterable[Iterable[int]]) -> ListedQuorums:
        """Return the system of any lists of nodes."""
        found = elements(sets, "sets", "a list of quorums")
        quorums = (elements(quorum, "sets", "a list of nodes") for quorum in found)
        return cls(nodes, tuple(quorums))  # type: ignore[arg-type]  # nodes are checked there

    def quorums(self, gateway: int) -> Iterator[Quorum]:
        """Return all quorums."""
        return iter(self.sets)

    def count(self, gateway: int) -> int:
        """Return the number of quorums."""
        return len(self.sets)

    def legal(self, gateway: int, quorum: Quorum) -> bool:
        """Return whether a quorum is on the list."""
        return quorum in self.sets

    def latency(self, rtt: FloatArray, quorum: Quorum) -> float:
        """The largest RTT to its members."""
        return float(max(rtt[node] for node in quorum))

    def cheapest(
        self, gateway: int, rtt: FloatArray, prices: FloatArray, per_ms: float
    ) -> tuple[float, Quorum] | None:
        """Return the best of all sets; O(members of all sets)."""
        return min(
            (
                (float(prices[list(quorum)].sum()) + per_ms * self.latency(rtt, quorum), quorum)
                for quorum in self.sets
            ),
            default=None,
        )


@dataclass(frozen=True)
class GridQuorums:
    """Nodes in a grid; a read asks one node of every row, so that it meets every full row.

    Writes go to all nodes of one row. Node r·columns + c stands in row r and column c.
    """

    rows: int
    columns: int
    spare: ClassVar[int] = 0

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            object.__setattr__(self, name, whole(getattr(self, name), name, minimum=1))

    @property
    def nodes(self) -> int:
        """Rows × columns."""
        return self.rows * self.columns

    def count(self, gateway: int) -> int:
        """columns^rows."""
        return int(self.columns**self.rows)

    def quorums(self, gateway: int) -> Iterator[Quorum]:
        """Return all quorums."""
        for number in range(self.columns**self.rows):
            digits = []
            for row in range(self.rows):
                number, column = divmod(number, self.columns)
                digits.append(row * self.columns + column)
            yield tuple(digits)

    def legal(self, gateway: int, quorum: Quorum) -> bool:
        """Return whether it has one node of every row."""
        return [node // self.columns for node in quorum] == list(range(self.rows))

    def latency(self, rtt: FloatArray, quorum: Quorum) -> float:
        """The largest RTT to its members."""
        return float(max(rtt[node] for node in quorum))

    def cheapest(
        self, gateway: int, rtt: FloatArray, prices: FloatArray, per_ms: float
    ) -> tuple[float, Quorum] | None:
        """For every latency, the cheapest node of each row within it; O(n²)."""
        best: tuple[float, Quorum] | None = None
        for limit in np.unique(rtt):
            members = []
            for row in range(self.rows):
                nodes = range(row * self.columns, (row + 1) * self.columns)
                within = [node for node in nodes if rtt[node] <= limit]
                if not within:
                    break
                members.append(min(within, key=lambda node: (prices[node], node)))
            if len(members) < self.rows:
                continue
            quorum = tuple(members)
            value = float(prices[list(quorum)].sum()) + per_ms * self.latency(rtt, quorum)
            if best is None or value < best[0]:
                best = (value, quorum)
        return best

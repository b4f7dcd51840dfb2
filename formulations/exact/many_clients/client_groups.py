"""Groups of clients that use the same replica in every descendant of a state of the tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formulations.exact.kernel import CompiledKernel
from formulations.exact.kernel_types import ClientStream
from formulations.exact.many_clients.partial_problem import partial_problem
from formulations.exact.reduced_problem import ReducedProblem
from placement.support.checks import FloatArray, IntArray

__all__ = ["FREE", "IN", "OUT", "ClientGroups", "Decision", "GroupBound"]

FREE, IN, OUT = range(3)
"""States of a site, as in csrc/context.h."""

_BIG = 1e299

States = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Decision:
    """Replica at a site (IN), or none (OUT), that made a state, and the bound before it."""

    site: int = -1
    side: int = IN
    bound: float = 0.0


@dataclass(frozen=True, slots=True)
class GroupBound:
    """Findings about a state.

    Attributes
    ----------
    bound
        Of everything below the state.
    states
        The state with the sites that reduced costs have fixed.
    closed
        Least bound at which one was; +∞: none was.
    open
        Whether anything is left.
    branching_site
        Where to branch; −1: no site is free.
    selected
        Sites that the best multipliers select.
    """

    bound: float
    states: States
    closed: float
    open: bool
    branching_site: int
    selected: tuple[int, ...]


class ClientGroups:
    """Clients that rank the free sites before their nearest certain one alike, by their cells.

    A *cell* is a pair of a group and such a site. In every completion, all clients of a group use
    the same cell, or each its own certain site. Their costs are therefore added up, and the bound
    of the sum is never below the sum of the bounds. Sums are rounded down.

    Parameters
    ----------
    kernel
        The kernel of the same problem without clients.
    leader
        Site index, or −1.
    groups
        Those that the compiled kernel has made.
    """

    def __init__(self, kernel: CompiledKernel, leader: int, groups: object) -> None:
        self._kernel = kernel
        self._leader = leader
        self._groups = groups
        self.count, self.cells = kernel.compiled.groups_size(groups)

    @classmethod
    def of(
        cls,
        kernel: CompiledKernel,
        clients: ClientStream,
        leader: int,
        u: FloatArray,
        states: States,
        seconds: float,
    ) -> ClientGroups | None:
        """Group clients, with their multipliers; None when the time is over before.

        O(clients · sites) time, nine bytes per cell.
        """
        arrays = (clients.rtt, clients.near, clients.relay, u, clients.rows)
        made = kernel.compiled.stream_groups(
            kernel.context, arrays, leader, states.tobytes(), clients.threads, seconds
        )
        return None if made is None else cls(kernel, leader, made)

    def below(self, states: States, seconds: float) -> ClientGroups | None:
        """Return the groups of a descendant state: fewer, and with fewer cells.

        None when the time is over before.
        """
        compiled, context = self._kernel.compiled, self._kernel.context
        made = compiled.regroup(context, self._groups, self._leader, states.tobytes(), seconds)
        return None if made is None else ClientGroups(self._kernel, self._leader, made)

    def improve_bound(
        self, states: States, decision: Decision, steps: int, threads: int, seconds: float
    ) -> GroupBound:
        """Take subgradient steps, which improve the multipliers, and fix sites by reduced cost."""
        made_by = (decision.site, decision.side, decision.bound)
        bound, after, closed, is_open, site, selected = self._kernel.compiled.bound_groups(
            self._kernel.context,
            self._groups,
            self._leader,
            states.tobytes(),
            made_by,
            steps,
            threads,
            seconds,
        )
        return GroupBound(
            bound if bound < _BIG else math.inf,
            np.frombuffer(after, dtype=np.uint8),
            closed if closed < _BIG else math.inf,
            bool(is_open),
            site,
            selected,
        )

    def cost(self, replicas: Sequence[int], sites: int) -> float:
        """Return the cost of the clients with given replicas and the certain ones; rounded down."""
        chosen = np.full(sites, FREE, dtype=np.uint8)
        chosen[list(replicas)] = IN
        compiled, context = self._kernel.compiled, self._kernel.context
        return float(compiled.groups_cost(context, self._groups, self._leader, chosen.tobytes()))

    def open_kernel(self, core: ReducedProblem, states: States) -> tuple[CompiledKernel, IntArray]:
        """Return a kernel for the open sites below a state, its tree open, and its sites.

        In it a group is one client, with A = 1 and the sum of A·d for an RTT. Its cost at its
        certain sites is at one of them, the leader if there is one.
        """
        start, site, near, relay, most, u = self._kernel.compiled.groups_arrays(self._groups)
        first = np.frombuffer(start, dtype=np.uintp).astype(np.intp)
        cells: IntArray = first[1:] - first[:-1]
        keep = np.flatnonzero(states != OUT)
        group = np.repeat(np.arange(self.count), cells)
        column = np.searchsorted(keep, np.frombuffer(site, dtype=np.uint8))
        certain = states[keep] == IN
        rtt = np.repeat(np.frombuffer(most)[:, np.newaxis], len(keep), axis=1)
        rtt[group, column] = np.frombuffer(near)
        place = np.full((self.count, len(keep)), len(keep) + 1)
        leader = self._leader
        if certain.any():
            last = int(np.searchsorted(keep, leader)) if leader >= 0 else int(certain.argmax())
            place[:, last] = len(keep)
        place[group, column] = np.arange(len(group)) - np.repeat(first[:-1], cells)
        order = np.argsort(place, axis=1, kind="stable").astype(np.int32)
        rules, lead = core.rules, core.rules.may_lead
        if leader >= 0:
            lead = np.arange(core.sites) == leader
        rules = rules.with_size(rules.replicas_min, rules.replicas_max, states == IN, lead)
        weights = (np.ones(self.count), np.frombuffer(relay))
        kernel = CompiledKernel(partial_problem(core, rtt, weights, keep, rules), order)
        own = leader if leader < 0 else int(np.searchsorted(keep, leader))
        start_u = np.frombuffer(u)[np.newaxis]
        kernel.open_trees([own], start_u, np.array([-math.inf]))
        return kernel, keep

"""Sets listed by the compiled kernel and evaluated in Python: base for losses and for moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from formulations.enumeration.waits import configurations
from formulations.exact.enumeration_claim import certified_or_named
from formulations.waits.set_certificate import may_certify, write_certificate
from formulations.waits.set_tables import WaitTables
from placement.methods.options import Options
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.proof.sets.set_walk import walk_refusal
from placement.support.checks import IntArray
from placement.support.status import Status

__all__ = ["ROUNDING", "SetLists"]

ROUNDING = 1e-9
"""The kernel adds up in another order than the evaluator: its limit is larger by this part."""


class SetLists:
    """Lists of the replica sets of one question, by size and leader.

    Attributes
    ----------
    problem, options
        The question, and those of the method ``exact``.
    began
        A time.perf_counter() from which the time limit counts.
    tables
        Of each size that is listed.
    """

    def __init__(self, problem: Problem, options: Options, began: float) -> None:
        self.problem, self.options, self.began = problem, options, began
        self.tables: list[WaitTables] = []

    @property
    def counts(self) -> tuple[int, int]:
        """Return the nodes and leaves of all lists of sets."""
        each = [tables.kernel_counts() for tables in self.tables]
        return sum(nodes for nodes, _ in each), sum(leaves for _, leaves in each)

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit."""
        limit = self.options.time_limit
        return 1e9 if limit is None else max(0.0, limit - (time.perf_counter() - self.began))

    def list_sets(
        self,
        tables: WaitTables,
        place: int,
        within: Callable[[], float],
        evaluate: Callable[[list[Configuration]], None],
    ) -> bool:
        """Evaluate every set of one size under one leader whose bound is within a value.

        Parameters
        ----------
        tables, place
            Of the size, and of the leader in them.
        within
            The value, which may fall after an evaluation.
        evaluate
            Takes the configurations of some sets.

        Returns
        -------
        bool
            Whether that was completed within the time limit.
        """
        leader = tables.leaders[place]
        site = None if leader < 0 else int(tables.order[leader])
        tables.lead(place)

        def found(sets: IntArray) -> float:
            evaluate(configurations(self.problem, sets, site))
            return within() * (1 + ROUNDING)

        limit = within() * (1 + ROUNDING)
        return tables.kernel_each(tables.beginning(place), limit, self.seconds_left, found)

    def certified(self, plan: Plan, proof: str) -> Plan:
        """Return a plan with the certificate of the search over sets, or that names its proof.

        Parameters
        ----------
        plan
            Of the question.
        proof
            What proves it, in words.
        """
        wanted = bool(self.options.settings["certificate"])
        if not (wanted and plan.status is Status.OPTIMAL and walk_refusal(self.problem) is None):
            return certified_or_named(plan, proof, wanted=wanted)
        if may_certify(self.problem, *self.counts):
            return plan.replace(certificate=partial(write_certificate, plan))
        return certified_or_named(plan, proof, ": it would be too large")

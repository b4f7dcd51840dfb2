"""Objective of a problem: the mean latency, unless a problem says otherwise.

An :class:`Objective` gives a configuration its value. Values are built from Eq. 1 (see
:mod:`placement.evaluation.score`), never from a solver's number. A method declares the kinds of
objective it can take; :func:`placement.methods.run` refuses the others, so that nobody gets a
silent approximation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from placement.evaluation.score import score
from placement.evaluation.value_tables import ValueTable
from placement.model.configuration import Configuration, configuration_cost
from placement.model.constraints import Diversity, majority

if TYPE_CHECKING:
    from placement.evaluation.losses import Failures
    from placement.io.formats.document import Document
    from placement.model.instance import Instance
    from placement.problem import Problem

__all__ = ["MEAN_LATENCY", "MeanLatency", "Objective", "quorum_size", "score_of"]


@runtime_checkable
class Objective(Protocol):
    """Objective that a problem minimises."""

    @property
    def kind(self) -> str:
        """Short name by which methods say what they can take."""
        ...

    @property
    def minimises_mean(self) -> bool:
        """Return whether the value is Eq. 1 (and the weight of money), and nothing else."""
        ...

    @property
    def decimals(self) -> int:
        """Return the decimals with which a value in ms is shown."""
        ...

    def check(self, problem: Problem) -> None:
        """Raise InputError when the objective does not fit the instance or the question."""
        ...

    def value(self, problem: Problem, configuration: Configuration) -> float:
        """Value of a configuration, in the unit that `in_ms` turns into ms; infinite for none."""
        ...

    def in_ms(self, problem: Problem, value: float) -> float:
        """Return a value, or a bound on one, in ms per operation."""
        ...

    def failures(self, problem: Problem, configuration: Configuration) -> Failures:
        """Latency under every loss that counts, and the order in which voters take over."""
        ...

    def headline(self, problem: Problem) -> str:
        """Return what the value in ms is called, or nothing where the mean latency tells it."""
        ...

    def tie_break(self, problem: Problem, configuration: Configuration) -> float:
        """Second criterion among configurations of equal value; 0 when there is none."""
        ...

    def violations(self, problem: Problem, configuration: Configuration) -> tuple[str, ...]:
        """Reasons why a configuration is unacceptable under this objective, in words."""
        ...

    def diversity(self, voters: int, quorum: int) -> tuple[Diversity, ...]:
        """Diversity rules that every acceptable configuration obeys."""
        ...

    def reasons_infeasible(self, problem: Problem) -> tuple[str, ...]:
        """Numbers that show that no configuration is acceptable, in words."""
        ...

    def describe(self) -> str:
        """Return the objective in words; empty for the mean latency."""
        ...

    def tables(self, problem: Problem, configuration: Configuration) -> tuple[ValueTable, ...]:
        """Return the tables that a plan shows beside those of the mean latency."""
        ...

    def document(self, instance: Instance) -> dict[str, object]:
        """Return the objective on an instance for a plan file, JSON-ready, without its kind."""
        ...

    @classmethod
    def from_document(cls, document: Document, instance: Instance) -> Objective:
        """Return the objective that :meth:`document` wrote.

        Raises
        ------
        InputError
            For a value that is missing or wrong.
        """
        ...


@dataclass(frozen=True, slots=True)
class MeanLatency:
    """Eq. 1, plus the price of the replicas where the problem weighs it: the default."""

    @property
    def kind(self) -> str:
        """Return "mean"."""
        return "mean"

    @property
    def minimises_mean(self) -> bool:
        """Return True."""
        return True

    @property
    def decimals(self) -> int:
        """Return the decimals with which a value in ms is shown."""
        return 3

    def check(self, problem: Problem) -> None:
        """Accept every problem."""
        del problem

    def value(self, problem: Problem, configuration: Configuration) -> float:
        """Return score + cost_weight · cost."""
        total = score_of(problem, configuration)
        if problem.rules.cost_weight:
            total += problem.rules.cost_weight * configuration_cost(problem.instance, configuration)
        return total

    def in_ms(self, problem: Problem, value: float) -> float:
        """Return a value in ms per operation: a cost counts with its weight."""
        return value / problem.demand.operations

    def failures(self, problem: Problem, configuration: Configuration) -> Failures:
        """Latency under the loss of each single site, clients staying where they are."""
        from placement.evaluation.losses import failures

        return failures(problem, configuration)

    def headline(self, problem: Problem) -> str:
        """Return the empty string: the mean latency is told anyway."""
        del problem
        return ""

    def tie_break(self, problem: Problem, configuration: Configuration) -> float:
        """Return 0: there is no second criterion."""
        del problem, configuration
        return 0.0

    def violations(self, problem: Problem, configuration: Configuration) -> tuple[str, ...]:
        """Return nothing: every configuration has a mean latency."""
        del problem, configuration
        return ()

    def diversity(self, voters: int, quorum: int) -> tuple[Diversity, ...]:
        """Return no rules."""
        del voters, quorum
        return ()

    def reasons_infeasible(self, problem: Problem) -> tuple[str, ...]:
        """Return nothing."""
        del problem
        return ()

    def describe(self) -> str:
        """Return the empty string: the default goes without saying."""
        return ""

    def tables(self, problem: Problem, configuration: Configuration) -> tuple[ValueTable, ...]:
        """Return no table."""
        del problem, configuration
        return ()

    def document(self, instance: Instance) -> dict[str, object]:
        """Return nothing: the kind says all."""
        del instance
        return {}

    @classmethod
    def from_document(cls, document: Document, instance: Instance) -> MeanLatency:
        """Return the mean latency."""
        del document, instance
        return MEAN_LATENCY


MEAN_LATENCY = MeanLatency()
"""The default objective."""


def quorum_size(problem: Problem, configuration: Configuration) -> int:
    """M of a configuration: the problem's, or, with another number of voters, their majority."""
    voters = len(configuration.voters)
    if voters == problem.rules.voters:
        return problem.rules.quorum
    return majority(voters) if problem.quorum is None else min(problem.quorum, voters)


def score_of(problem: Problem, configuration: Configuration) -> float:
    """Eq. 1 of a configuration, ms times operations."""
    return score(
        problem.demand,
        configuration.leader,
        configuration.voters,
        configuration.replicas,
        quorum_size(problem, configuration),
    )

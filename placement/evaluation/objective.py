"""Objective of a problem: the mean latency, unless a problem says otherwise.

An objective gives a configuration its value. Any other than the mean is a subclass of
:class:`MeanLatency`, and overrides what differs. Values are built from Eq. 1 (see
:mod:`placement.evaluation.score`), never from a solver's number. A method declares the kinds of
objective it can take; :func:`placement.methods.registry.run` refuses the others, so that no user
gets a silent approximation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placement.evaluation.cost_model import configuration_cost
from placement.evaluation.score import score, score_many
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity, majority
from placement.text.text_tables import ValueTable

if TYPE_CHECKING:
    from placement.evaluation.losses import Failures
    from placement.io.formats.document import Document
    from placement.model.instance import Instance
    from placement.plan import Plan
    from placement.problem import Problem


@dataclass(frozen=True, slots=True)
class MeanLatency:
    """Eq. 1, plus the price of the replicas where the problem weighs it: the default."""

    @property
    def kind(self) -> str:
        """Short name by which methods declare the objectives that they support."""
        return "mean"

    @property
    def minimises_mean(self) -> bool:
        """Return whether the value is Eq. 1 (and the weight of money), and nothing else."""
        return True

    @property
    def decimals(self) -> int:
        """Return the decimals with which a value in ms is shown."""
        return 3

    def check(self, problem: Problem) -> None:
        """Raise InputError when the objective does not fit the instance or the question."""
        del problem

    def value(self, problem: Problem, configuration: Configuration) -> float:
        """Value of a configuration: score + cost_weight · cost + price of the move.

        In the unit that `in_ms` turns into ms; infinite for none.
        """
        total = score_of(problem, configuration)
        if problem.rules.cost_weight:
            total += problem.rules.cost_weight * configuration_cost(problem.instance, configuration)
        return total + problem.move_price(configuration)

    def values(
        self, problem: Problem, configurations: Sequence[Configuration]
    ) -> npt.NDArray[np.float64]:
        """Values of many configurations: those of one size at once; O(n·C·|R|), but few calls."""
        values = scores_of(problem, configurations)
        if problem.rules.cost_weight:
            costs = [configuration_cost(problem.instance, one) for one in configurations]
            values += problem.rules.cost_weight * np.array(costs)
        if problem.moves is not None:
            values += np.array([problem.move_price(one) for one in configurations])
        return values

    def mixed(
        self, problem: Problem, configurations: Sequence[Configuration], shares: Sequence[float]
    ) -> float:
        """Weighted mean over configurations; each serves its share of every client."""
        values = self.values(problem, configurations).tolist()
        return math.fsum(p * value for p, value in zip(shares, values, strict=True))

    def of_intervals(self, intervals: int | slice) -> MeanLatency:
        """Return the objective on one interval of the instance, or on several that follow."""
        del intervals
        return self

    def in_ms(self, problem: Problem, value: float) -> float:
        """Return a value, or a bound on one, in ms per operation: a cost counts with its weight."""
        return value / problem.demand.operations

    def unit(self, problem: Problem) -> str:
        """Return the unit of what `in_ms` returns: "ms", save for measures."""
        del problem
        return "ms"

    @property
    def beyond(self) -> str:
        """Text in place of an infinite value."""
        return "∞"

    def failures(self, problem: Problem, configuration: Configuration) -> Failures:
        """Latency under the loss of each single site, where clients stay; and who takes over."""
        from placement.evaluation.losses import failures

        return failures(problem, configuration)

    def headline(self, problem: Problem) -> str:
        """Return the name of the value in ms, or nothing where the value is the mean latency."""
        del problem
        return ""

    def tie_break(self, problem: Problem, configuration: Configuration) -> float:
        """Second criterion among configurations of equal value; 0 when there is none."""
        del problem, configuration
        return 0.0

    def violations(self, problem: Problem, configuration: Configuration) -> tuple[str, ...]:
        """Reasons why a configuration is unacceptable under this objective, in words.

        For the mean these are waits that it has too few members for; most often none.
        """
        sizes: dict[str, int] = {
            "voters": len(configuration.voters),
            "replicas": len(configuration.replicas),
        }
        needs = {"quorum": quorum_size(problem, configuration)}
        lacking = False  # a wait in a domain, or for more than all, may
        for clause in (one for term in problem.demand.waits for one in term.clauses):
            need = needs.get(str(clause.need), clause.need)
            lacking |= bool(clause.scope) or (isinstance(need, int) and need > sizes[clause.role])
        if lacking and math.isinf(score_of(problem, configuration)):
            return ("a wait needs more answers than there are members",)
        return ()

    def diversity(self, instance: Instance, voters: int, quorum: int) -> tuple[Diversity, ...]:
        """Diversity rules that every acceptable configuration obeys."""
        del instance, voters, quorum
        return ()

    def reasons_infeasible(self, problem: Problem) -> tuple[str, ...]:
        """Numbers that show that no configuration is acceptable, in words."""
        del problem
        return ()

    def remarks(self, problem: Problem) -> tuple[str, ...]:
        """Return notes about the question that every plan of it shows."""
        del problem
        return ()

    def unproven(self, plan: Plan) -> tuple[str, str] | None:
        """Return recomputed values and why they prove nothing; None: the certificate decides."""
        del plan
        return None

    def describe(self) -> str:
        """Return the objective in words; empty for the mean latency."""
        return ""

    def tables(self, problem: Problem, configuration: Configuration) -> tuple[ValueTable, ...]:
        """Return the tables that a plan shows in addition to the tables of the mean latency."""
        del problem, configuration
        return ()

    def plan_rows(
        self, problem: Problem, configuration: Configuration
    ) -> Mapping[str, Sequence[object]]:
        """Return the part of a plan file beside the values: rows (dataclasses) by name."""
        del problem, configuration
        return {}

    def document(self, instance: Instance) -> dict[str, object]:
        """Return the objective on an instance for a plan file, JSON-ready, without its kind."""
        del instance
        return {}

    @classmethod
    def from_document(cls, document: Document, instance: Instance) -> MeanLatency:
        """Return the objective that :meth:`document` wrote, or raise InputError."""
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


def scores_of(problem: Problem, configurations: Sequence[Configuration]) -> npt.NDArray[np.float64]:
    """Eq. 1 of many configurations, those of one size at once, shape (n,)."""
    values = np.zeros(len(configurations))
    rows: dict[tuple[int, int, int], list[int]] = {}
    for row, one in enumerate(configurations):
        sizes = (len(one.replicas), len(one.voters))
        rows.setdefault((quorum_size(problem, one), *sizes), []).append(row)
    for (quorum, _, _), some in rows.items():
        alike = [configurations[row] for row in some]
        values[some] = score_many(
            problem.demand,
            [one.leader for one in alike],
            [one.voters for one in alike],
            [one.replicas for one in alike],
            quorum,
        )
    return values

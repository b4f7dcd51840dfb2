"""Plan: a configuration with its score, its proof, and the numbers behind it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, overload

import numpy as np

from placement.errors import InputError
from placement.evaluation.breakdown import (
    ClientLatency,
    LeaderValue,
    OperationLatency,
    QuorumMember,
    answer_times,
    by_client,
    by_leader,
    by_operation,
    by_voter,
    objective_value,
    objective_values,
)
from placement.evaluation.cost_model import configuration_cost
from placement.evaluation.losses import Failures
from placement.evaluation.objective import score_of
from placement.evaluation.score import cutoff, first_best
from placement.feasibility.feasible_plans import violations
from placement.model.configuration import Configuration
from placement.problem import Problem
from placement.support.status import Status, Termination, least_bound, relative_gap, status_of

if TYPE_CHECKING:
    import pandas as pd

    from placement.evaluation.bill import MonthlyBill
    from placement.evaluation.breakdown import OperationParts, WaitLatency

__all__ = [
    "ClientLatency",
    "LeaderValue",
    "OperationLatency",
    "Plan",
    "QuorumMember",
    "cheapest",
    "evaluate",
    "objective_value",
    "objective_values",
]


_Document = Mapping[str, object]


class _Deferred:
    """A document that may be given as a function, which is called when it is first read."""

    name: str

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, plan: None, owner: type) -> None: ...

    @overload
    def __get__(self, plan: object, owner: type) -> _Document | None: ...

    def __get__(self, plan: object | None, owner: type) -> _Document | None:
        if plan is None:
            return None  # the default of the field
        held: Callable[[], _Document] | _Document | None = plan.__dict__[self.name]
        if callable(held):
            held = plan.__dict__[self.name] = held()
        return held

    def __set__(self, plan: object, value: Callable[[], _Document] | _Document | None) -> None:
        plan.__dict__[self.name] = value


@dataclass(frozen=True, eq=False)
class Plan:
    """The answer to a problem.

    Build one with :meth:`Plan.of`: the score is then the evaluator's, and the status follows from
    score and bound in one place.

    Attributes
    ----------
    problem
        The question.
    configuration
        Site indices; None when nothing was found.
    bound
        Proven lower bound on the objective; −∞ when none is known, +∞ when infeasible.
    status, termination
        Proof state, and why the method stopped.
    method
        Name of the method.
    seconds
        Wall time.
    reasons
        Why there is no plan, or which constraints an evaluated configuration breaks.
    notes
        Remarks for the reader about the origin of the plan.
    stats
        Numbers of the search (nodes, iterations, …).
    certificate
        Data that re-prove the bound, JSON-like, if the method gives them. A method may give a
        function instead; it is called when the certificate is first read.
    warm_start
        Data that the method may reuse for a similar problem (another |R|, other demand) when the
        plan is its start: opaque, never saved.
    checked
        Whether the bound comes from a method, or from a checked certificate. False for a
        plan that was read from a file; see :attr:`claim`.
    """

    problem: Problem
    configuration: Configuration | None
    bound: float
    status: Status
    termination: Termination
    method: str
    seconds: float = 0.0
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stats: Mapping[str, float | int | str] = dataclasses.field(default_factory=dict)
    certificate: _Deferred = _Deferred()
    warm_start: object | None = None
    checked: bool = True

    @classmethod
    def of(
        cls,
        problem: Problem,
        configuration: Configuration | None,
        *,
        method: str,
        bound: float = -math.inf,
        termination: Termination = Termination.FINISHED,
        seconds: float = 0.0,
        reasons: Sequence[str] = (),
        notes: Sequence[str] = (),
        stats: Mapping[str, float | int | str] | None = None,
        certificate: Callable[[], _Document] | _Document | None = None,
        warm_start: object | None = None,
    ) -> Plan:
        """Build a plan from the result of a method.

        Parameters
        ----------
        problem, configuration, method, termination, seconds
            As the attributes.
        reasons, notes, stats, certificate, warm_start
            As the attributes.
        bound
            The method's proven lower bound. Pass +∞ with no configuration to say "proven
            infeasible". A bound above the score by rounding is lowered to it. NaN proves nothing
            and becomes −∞.

        Raises
        ------
        SolverError
            When the bound lies above the score of the configuration by more than a relative 1e-6:
            then one of the two is wrong.
        """
        bound = least_bound(float(bound))
        if configuration is not None:
            worth = objective_value(problem, configuration)
            if bound > worth:
                if bound > worth + 1e-6 * abs(worth) + 1e-9:
                    from placement.errors import SolverError

                    raise SolverError(
                        f"method {method!r} claims the bound {bound!r}, but its own configuration "
                        f"has the objective {worth!r}"
                    )
                bound = worth
        else:
            worth = math.inf
        plan = cls(
            problem=problem,
            configuration=configuration,
            bound=bound,
            status=status_of(configuration is not None, worth, bound),
            termination=termination,
            method=method,
            seconds=seconds,
            reasons=tuple(reasons),
            notes=tuple(notes),
            stats=MappingProxyType(dict(stats or {})),
            certificate=certificate,
            warm_start=warm_start,
        )
        plan.__dict__["objective"] = worth  # it was just worked out
        return plan

    @classmethod
    def infeasible(
        cls, problem: Problem, *, method: str, reasons: Sequence[str] = (), seconds: float = 0.0
    ) -> Plan:
        """Return the plan that says: proven, there is none."""
        return cls.of(
            problem, None, method=method, bound=math.inf, reasons=reasons, seconds=seconds
        )

    def replace(self, **changes: object) -> Plan:
        """Return a copy with some attributes changed.

        Raises
        ------
        TypeError
            For a name that is no attribute.
        """
        fields = self.__dataclass_fields__.keys()
        if not changes.keys() <= fields:
            raise TypeError(f"a plan has no {', '.join(sorted(changes.keys() - fields))}")
        # as it is held: reading the certificate would work it out
        held = self.__dict__
        if changes.keys() & {"problem", "configuration"}:
            held = {field: held[field] for field in fields}
        copy = object.__new__(type(self))
        copy.__dict__.update(held)  # the numbers of a configuration are worked out once
        copy.__dict__.update(changes)
        return copy

    def __getstate__(self) -> dict[str, object]:
        fields = self.__dataclass_fields__.keys()
        state = {key: value for key, value in self.__dict__.items() if key in fields}
        plain = {"stats": dict(self.stats), "certificate": self.certificate, "warm_start": None}
        return {**state, **plain}

    # --- the decision, by name ------------------------------------------------------------

    @property
    def found(self) -> bool:
        """Return whether there is a configuration."""
        return self.configuration is not None

    @property
    def leader(self) -> str | None:
        """Name of the leader; None when nothing was found, or no operation needs a leader."""
        if self.configuration is None or self.problem.demand.leaderless:
            return None
        return self._name(self.configuration.leader)

    @property
    def voters(self) -> tuple[str, ...]:
        """Names of the voters, closest to the leader first; without a leader in site order."""
        if self.configuration is None:
            return ()
        if self.problem.demand.leaderless:
            return tuple(map(self._name, sorted(self.configuration.voters)))
        return tuple(self._name(site) for site, _ in answer_times(self.problem, self.configuration))

    @property
    def witnesses(self) -> tuple[str, ...]:
        """Names of the voters that hold no replica, closest to the leader first; mostly none."""
        held = set(self.replicas)
        return tuple(name for name in self.voters if name not in held)

    @property
    def replicas(self) -> tuple[str, ...]:
        """Names of all replicas, in site order."""
        return tuple(map(self._name, self.configuration.replicas)) if self.configuration else ()

    def _name(self, site: int) -> str:
        return self.problem.instance.sites[site]

    # --- its value ------------------------------------------------------------------------

    @cached_property
    def score(self) -> float:
        """Eq. 1, ms times operations; +∞ when nothing was found."""
        if self.configuration is None:
            return math.inf
        if self.problem.minimises_mean:
            return self.objective
        return score_of(self.problem, self.configuration)

    @cached_property
    def cost(self) -> float:
        """Cost per month; 0 without prices."""
        if self.configuration is None:
            return math.inf
        return configuration_cost(self.problem.instance, self.configuration)

    @property
    def priced(self) -> bool:
        """Return whether there are prices, and the cost follows the operations of the question."""
        problem = self.problem
        return problem.instance.prices is not None and not problem.demand.has_waits

    @cached_property
    def bill(self) -> MonthlyBill | None:
        """Every term of the cost by site and by pair.

        None without prices or a configuration, and where operations have waits: the messages of
        their protocol are not those that the prices count.
        """
        if self.configuration is None or not self.priced:
            return None
        from placement.evaluation.bill import bill_of

        return bill_of(self.problem.instance, self.configuration)

    @cached_property
    def objective(self) -> float:
        """Objective value: score + cost_weight · cost, unless the problem says otherwise."""
        if self.configuration is None:
            return math.inf
        return objective_value(self.problem, self.configuration)

    @property
    def mean_latency(self) -> float:
        """Mean operation latency in ms, score / Σ n; NaN when nothing was found."""
        return self.score / self.problem.demand.operations if self.found else math.nan

    @property
    def gap(self) -> float:
        """(objective − bound)/objective, relative; infinite when nothing is known."""
        return relative_gap(self.objective, self.bound)

    @property
    def certified(self) -> bool:
        """Return whether the plan carries a certificate; asking this does not work it out."""
        return self.__dict__["certificate"] is not None

    @property
    def claim(self) -> str:
        """Say that the bound is only claimed, for a plan from a file; empty where it is not."""
        if self.checked or self.bound == -math.inf:
            return ""
        what = "bound" if self.found else "infeasibility"
        return f"{what} claimed by {self.method}, not checked"

    @property
    def bare_proof(self) -> str:
        """Return the proof of an optimal plan without a certificate, in words; empty otherwise."""
        if self.status is not Status.OPTIMAL or self.certified or self.claim:
            return ""
        return f"proved by {self.method}; no certificate"

    # --- the numbers behind it ------------------------------------------------------------

    @property
    def per_client(self) -> pd.DataFrame:
        """Return the latency of each client as a pandas table, in client order."""
        return self.to_frames()["clients"]

    @cached_property
    def client_rows(self) -> tuple[ClientLatency, ...]:
        """Return the latency of each client, in client order."""
        return () if self.configuration is None else by_client(self.problem, self.configuration)

    @cached_property
    def per_operation(self) -> tuple[OperationLatency, ...]:
        """Return the latency of each kind of operation, in the order of the instance."""
        return () if self.configuration is None else by_operation(self.problem, self.configuration)

    @cached_property
    def leaders(self) -> tuple[LeaderValue, ...]:
        """Every voter that may lead, as leader, best first (Sharov et al., Figure 2)."""
        if self.configuration is None or self.problem.demand.leaderless:
            return ()
        return by_leader(self.problem, self.configuration)

    @cached_property
    def quorum_members(self) -> tuple[QuorumMember, ...]:
        """Voters in the order in which their answers arrive."""
        return () if self.configuration is None else by_voter(self.problem, self.configuration)

    @property
    def quorum_wait(self) -> float:
        """q_ℓ(V) in ms (of the last scenario when RTTs vary); NaN when nothing was found."""
        return max((m.rtt for m in self.quorum_members if m.counted), default=math.nan)

    @property
    def commits(self) -> bool:
        """Return whether the quorum wait says how long a commit takes."""
        demand = self.problem.demand
        return bool(demand.quorum.any()) or not demand.has_waits

    @cached_property
    def waits(self) -> tuple[WaitLatency, ...]:
        """Return each wait of each operation: how long, for whom; none with plain votes alone."""
        from placement.evaluation.breakdown import by_wait

        return () if self.configuration is None else by_wait(self.problem, self.configuration)

    @cached_property
    def parts(self) -> tuple[OperationParts, ...]:
        """Return the trips, waits and constant that each operation's latency is the sum of."""
        from placement.evaluation.breakdown import by_part

        return () if self.configuration is None else by_part(self.problem, self.configuration)

    @property
    def tells_losses(self) -> bool:
        """Return whether :attr:`failures` is known: not for operations with waits."""
        return not self.problem.demand.waits

    @cached_property
    def failures(self) -> Failures:
        """Latency under each loss, and the order in which voters take over.

        The losses, and what clients and leader do then, are those of the objective; without an
        objective about losses, each single site is lost and clients stay.

        Raises
        ------
        InputError
            When nothing was found: there is no plan to lose a site of.
        UnsupportedError
            For operations with waits.
        """
        if self.configuration is None:
            raise InputError("there is no configuration to evaluate", field="plan")
        return self.problem.objective.failures(self.problem, self.configuration)

    # --- faces ----------------------------------------------------------------------------

    def to_frames(self) -> dict[str, pd.DataFrame]:
        """Return the breakdowns as pandas tables: clients, operations, leaders, quorum."""
        import pandas as pd

        return {
            name: pd.DataFrame([dataclasses.asdict(row) for row in rows])
            for name, rows in (
                ("clients", self.client_rows),
                ("operations", self.per_operation),
                ("leaders", self.leaders),
                ("quorum", self.quorum_members),
                ("parts", self.parts if self.problem.demand.has_waits else ()),
                ("waits", self.waits),
            )
            if rows or name not in ("parts", "waits")
        }

    def __str__(self) -> str:
        from placement.text.plans import plan_text

        return plan_text(self)

    def __repr__(self) -> str:
        by = f"{self.method!r}, not checked" if self.claim else repr(self.method)
        if not self.found:
            why = f": {'; '.join(self.reasons)}" if self.reasons else ""
            return f"<Plan {self.status} by {by}{why}>"
        proven = self.status is Status.OPTIMAL
        gap = "" if proven else f", gap {100 * self.gap:.3g} %"
        return (
            f"<Plan {self.status} by {by}: leader {self.leader}, "
            f"voters {list(self.voters)}, replicas {list(self.replicas)}, "
            f"mean latency {self.mean_latency:.3f} ms{gap}>"
        )

    def _repr_html_(self) -> str:
        """Return a small table, which notebooks show."""
        from placement.report.notebook import facts_table
        from placement.text.plans import plan_facts

        rows = plan_facts(self)
        if self.found:
            rows.append(("Voters", ", ".join(self.voters)))
            rows.append(("Replicas", ", ".join(self.replicas)))
        rows += [("Breaks" if self.found else "Why", reason) for reason in self.reasons]
        return facts_table("Plan", [*rows, *(("Note", note) for note in self.notes)])


def cheapest(problem: Problem, configurations: Iterable[Configuration]) -> Configuration | None:
    """Return the feasible configuration of least objective; of those that tie, the first given."""
    feasible = [c for c in configurations if not violations(problem, c)]
    if not feasible:
        return None
    values = objective_values(problem, feasible)
    tied = [c for c, worth in zip(feasible, values, strict=True) if worth <= cutoff(values.min())]
    seconds = np.array([problem.objective.tie_break(problem, c) for c in tied])
    return tied[int(first_best(seconds))]


def evaluate(problem: Problem, configuration: Configuration, *, method: str = "evaluate") -> Plan:
    """Score a given configuration: status ``feasible``, or ``violating`` with what it breaks."""
    plan = Plan.of(problem, configuration, method=method)
    broken = violations(problem, configuration)
    return plan.replace(status=Status.VIOLATING, reasons=broken) if broken else plan

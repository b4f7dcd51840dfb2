"""What comes out: a configuration with its score, its proof, and the numbers behind it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from placement.configuration import Configuration, configuration_cost
from placement.errors import InputError
from placement.failures import Failures, failures
from placement.feasibility import violations
from placement.problem import Problem
from placement.score import (
    closest_first,
    first_best,
    majority,
    nearest,
    operation_latency,
    quorum_latency,
    score,
)
from placement.status import Status, Termination, relative_gap, status_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Alternative",
    "ClientLatency",
    "OperationLatency",
    "Plan",
    "QuorumMember",
    "cheapest",
    "evaluate",
    "objective",
]


@dataclass(frozen=True, slots=True)
class ClientLatency:
    """How one client fares under a plan.

    Attributes
    ----------
    client, nearest
        Names of the client and of its nearest replica (of the last scenario when RTTs vary).
    operations
        Operations it issued, weighted by the decay.
    to_nearest, to_leader, latency
        RTT to the nearest replica, RTT to the leader, mean latency of its operations; ms. The
        latency of a client that issued nothing is NaN.
    """

    client: str
    nearest: str
    operations: float
    to_nearest: float
    to_leader: float
    latency: float


@dataclass(frozen=True, slots=True)
class OperationLatency:
    """How one kind of operation fares: weighted count, share of all, mean latency in ms."""

    operation: str
    operations: float
    share: float
    latency: float


@dataclass(frozen=True, slots=True)
class Alternative:
    """A voter as leader, everything else unchanged: score, mean latency in ms, overhead in %."""

    leader: str
    score: float
    mean_latency: float
    overhead: float


@dataclass(frozen=True, slots=True)
class QuorumMember:
    """A voter in order of answer: RTT from the leader in ms, and whether it is waited for."""

    voter: str
    rtt: float
    counted: bool


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
        What is known, and why the method stopped.
    method
        Name of the method.
    seconds
        Wall time.
    reasons
        Why there is no plan, or which constraints an evaluated configuration breaks.
    notes
        What the reader should know about how the plan came about.
    stats
        Numbers of the search (nodes, iterations, …).
    certificate
        What re-proves the bound, JSON-like, when the method gives one.
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
    certificate: Mapping[str, object] | None = None

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
        certificate: Mapping[str, object] | None = None,
    ) -> Plan:
        """Build a plan from what a method found.

        Parameters
        ----------
        problem, configuration, method, termination, seconds, reasons, notes, stats, certificate
            As the attributes.
        bound
            The method's proven lower bound. Pass +∞ with no configuration to say "proven
            infeasible". A bound above the score by rounding is lowered to it.

        Raises
        ------
        SolverError
            When the bound lies above the score of the configuration by more than a relative 1e-6:
            then one of the two is wrong.
        """
        if configuration is not None:
            value = objective(problem, configuration)
            if bound > value:
                if bound > value + 1e-6 * abs(value) + 1e-9:
                    from placement.errors import SolverError

                    raise SolverError(
                        f"method {method!r} claims the bound {bound!r}, but its own configuration "
                        f"has the objective {value!r}"
                    )
                bound = value
        else:
            value = math.inf
        return cls(
            problem=problem,
            configuration=configuration,
            bound=float(bound),
            status=status_of(configuration is not None, value, bound),
            termination=termination,
            method=method,
            seconds=seconds,
            reasons=tuple(reasons),
            notes=tuple(notes),
            stats=MappingProxyType(dict(stats or {})),
            certificate=certificate,
        )

    @classmethod
    def infeasible(
        cls, problem: Problem, *, method: str, reasons: Sequence[str] = (), seconds: float = 0.0
    ) -> Plan:
        """Return the plan that says: proven, there is none."""
        return cls.of(
            problem, None, method=method, bound=math.inf, reasons=reasons, seconds=seconds
        )

    def replace(self, **changes: object) -> Plan:
        """Return a copy with some attributes changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # checked at run time

    def __getstate__(self) -> dict[str, object]:
        fields = {field.name for field in dataclasses.fields(self)}
        state = {key: value for key, value in self.__dict__.items() if key in fields}
        return {**state, "stats": dict(self.stats)}

    # --- the decision, by name ------------------------------------------------------------

    @property
    def found(self) -> bool:
        """Whether there is a configuration."""
        return self.configuration is not None

    @property
    def leader(self) -> str | None:
        """Name of the leader; None when nothing was found."""
        return None if self.configuration is None else self._name(self.configuration.leader)

    @property
    def voters(self) -> tuple[str, ...]:
        """Names of the voters, closest to the leader first."""
        return tuple(member.voter for member in self.quorum_members)

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
        return math.inf if self.configuration is None else _score(self.problem, self.configuration)

    @cached_property
    def cost(self) -> float:
        """Price of the replicas; 0 without prices."""
        if self.configuration is None:
            return math.inf
        return configuration_cost(self.problem.instance, self.configuration)

    @cached_property
    def objective(self) -> float:
        """What is minimised: score + cost_weight · cost."""
        if self.configuration is None:
            return math.inf
        return objective(self.problem, self.configuration)

    @property
    def mean_latency(self) -> float:
        """Mean operation latency in ms, score / Σ n; NaN when nothing was found."""
        return self.score / self.problem.demand.operations if self.found else math.nan

    @property
    def gap(self) -> float:
        """(objective − bound)/objective, relative; infinite when nothing is known."""
        return relative_gap(self.objective, self.bound)

    # --- the numbers behind it ------------------------------------------------------------

    @cached_property
    def per_client(self) -> tuple[ClientLatency, ...]:
        """How each client fares, in client order."""
        if self.configuration is None:
            return ()
        demand, configuration = self.problem.demand, self.configuration
        latency = _latency(self.problem, configuration)
        issued = demand.counts.sum(axis=(0, 2))
        total = (latency * demand.counts).sum(axis=(0, 2))
        mean = np.divide(total, issued, out=np.full_like(total, math.nan), where=issued > 0)
        last = demand.client_rtt[-1]
        near = nearest(last, configuration.replicas)
        return tuple(
            ClientLatency(
                client,
                self._name(int(near[c])),
                float(issued[c]),
                float(last[c, near[c]]),
                float(last[c, configuration.leader]),
                float(mean[c]),
            )
            for c, client in enumerate(self.problem.instance.clients)
        )

    @cached_property
    def per_operation(self) -> tuple[OperationLatency, ...]:
        """How each kind of operation fares, in the order of the instance."""
        if self.configuration is None:
            return ()
        demand = self.problem.demand
        latency = _latency(self.problem, self.configuration)
        issued = demand.counts.sum(axis=(0, 1))
        total = (latency * demand.counts).sum(axis=(0, 1))
        mean = np.divide(total, issued, out=np.full_like(total, math.nan), where=issued > 0)
        return tuple(
            OperationLatency(
                operation.name,
                float(issued[o]),
                float(issued[o] / demand.operations),
                float(mean[o]),
            )
            for o, operation in enumerate(self.problem.instance.operations)
        )

    @cached_property
    def leaders(self) -> tuple[Alternative, ...]:
        """Every voter that may lead, as leader, best first (Sharov et al., Figure 2).

        Replicas and voters stay as they are; `overhead` is in percent of the best of them.
        """
        if self.configuration is None:
            return ()
        configuration, rules = self.configuration, self.problem.rules
        candidates = [s for s in sorted(configuration.voters) if rules.may_lead[s]]
        if configuration.leader not in candidates:
            candidates = sorted([*candidates, configuration.leader])
        scores = np.array(
            [
                _score(self.problem, dataclasses.replace(configuration, leader=site))
                for site in candidates
            ]
        )
        best = float(scores[first_best(scores)])
        return tuple(
            Alternative(
                self._name(candidates[i]),
                float(scores[i]),
                float(scores[i] / self.problem.demand.operations),
                100 * (float(scores[i]) / best - 1) if best else 0.0,
            )
            for i in closest_first(scores)
        )

    @cached_property
    def quorum_members(self) -> tuple[QuorumMember, ...]:
        """Voters in the order in which their answers arrive; the first `quorum` are waited for.

        With RTTs that vary by interval, those of the last scenario.
        """
        if self.configuration is None:
            return ()
        voters = np.sort(np.array(self.configuration.voters, dtype=np.intp))
        rtt = self.problem.demand.site_rtt[-1][self.configuration.leader, voters]
        quorum = _quorum(self.problem, self.configuration)
        return tuple(
            QuorumMember(self._name(int(voters[i])), float(rtt[i]), rank < quorum)
            for rank, i in enumerate(closest_first(rtt))
        )

    @property
    def quorum_wait(self) -> float:
        """q_ℓ(V) in ms (of the last scenario when RTTs vary); NaN when nothing was found."""
        if self.configuration is None:
            return math.nan
        return float(
            quorum_latency(
                self.problem.demand.site_rtt[-1],
                self.configuration.leader,
                self.configuration.voters,
                _quorum(self.problem, self.configuration),
            )
        )

    @cached_property
    def failures(self) -> Failures:
        """Latency under the loss of each single site, and the order in which voters take over.

        Raises
        ------
        InputError
            When nothing was found: there is no plan to lose a site of.
        """
        if self.configuration is None:
            raise InputError("there is no configuration to evaluate", field="plan")
        return failures(self.problem, self.configuration)

    # --- faces ----------------------------------------------------------------------------

    def to_frames(self) -> dict[str, pd.DataFrame]:
        """Return the breakdowns as pandas tables: clients, operations, leaders, quorum."""
        import pandas as pd

        return {
            name: pd.DataFrame([dataclasses.asdict(row) for row in rows])
            for name, rows in (
                ("clients", self.per_client),
                ("operations", self.per_operation),
                ("leaders", self.leaders),
                ("quorum", self.quorum_members),
            )
        }

    def __str__(self) -> str:
        from placement.text import plan_text

        return plan_text(self)

    def __repr__(self) -> str:
        if not self.found:
            return f"<Plan {self.status} by {self.method!r}>"
        return (
            f"<Plan {self.status} by {self.method!r}: leader {self.leader}, "
            f"voters {list(self.voters)}, replicas {list(self.replicas)}, "
            f"mean latency {self.mean_latency:.3f} ms, gap {100 * self.gap:.3g} %>"
        )


def objective(problem: Problem, configuration: Configuration) -> float:
    """Score plus cost_weight times cost: what every method minimises."""
    value = _score(problem, configuration)
    if problem.rules.cost_weight:
        value += problem.rules.cost_weight * configuration_cost(problem.instance, configuration)
    return value


def cheapest(problem: Problem, configurations: Iterable[Configuration]) -> Configuration | None:
    """Return the feasible configuration of least objective; of those that tie, the first given."""
    feasible = [c for c in configurations if not violations(problem, c)]
    if not feasible:
        return None
    return feasible[int(first_best(np.array([objective(problem, c) for c in feasible])))]


def evaluate(problem: Problem, configuration: Configuration, *, method: str = "evaluate") -> Plan:
    """Score a given configuration: status ``feasible``, or ``violating`` with what it breaks."""
    plan = Plan.of(problem, configuration, method=method)
    broken = violations(problem, configuration)
    return plan.replace(status=Status.VIOLATING, reasons=broken) if broken else plan


def _quorum(problem: Problem, configuration: Configuration) -> int:
    voters = len(configuration.voters)
    if voters == problem.rules.voters:
        return problem.rules.quorum
    return majority(voters) if problem.quorum is None else min(problem.quorum, voters)


def _score(problem: Problem, configuration: Configuration) -> float:
    return score(
        problem.demand,
        configuration.leader,
        configuration.voters,
        configuration.replicas,
        _quorum(problem, configuration),
    )


def _latency(problem: Problem, configuration: Configuration) -> np.ndarray:
    return operation_latency(
        problem.demand,
        configuration.leader,
        configuration.voters,
        configuration.replicas,
        _quorum(problem, configuration),
    )

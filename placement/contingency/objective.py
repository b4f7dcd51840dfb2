"""Objectives for plans that must stay good when sites are lost: N−1, a lost domain, N−2.

After the loss of F the score is that of :func:`placement.evaluation.losses.score_after`: the
survivors serve, the quorum size stays, and if the leader is lost the best surviving voter leads.
The score is the mean latency, or a percentile of the latency of all operations
(:mod:`placement.contingency.percentile_losses`). Three goals are offered:

- ``worst``: min max(normal, max_F score_F), of those that tie the least normal mean;
- ``bounded``: min normal score subject to max_F score_F <= a given latency;
- ``weighted``: min (1 − Σ_F p_F)·normal + Σ_F p_F·score_F with outage probabilities p_F, for the
  mean alone: a percentile over outages is no weighted sum of percentiles.

A configuration that some loss stops altogether (fewer than m voters left) is not feasible.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from placement.contingency.percentile_losses import (
    best_after,
    mixed_percentiles,
    percentile_rows,
    percentile_tables,
)
from placement.errors import InputError
from placement.evaluation.losses import (
    Failures,
    Loss,
    failures,
    losses,
    moving_clients,
    scores_after_many,
    survivors,
    unnoticed,
)
from placement.evaluation.objective import ProofMethod, score_of, scores_of, values_one_by_one
from placement.evaluation.value_tables import ValueTable
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity
from placement.support.checks import flag, instance_of, number, text, whole

if TYPE_CHECKING:
    import numpy.typing as npt

    from placement.io.formats.document import Document
    from placement.methods.options import Progress
    from placement.model.instance import Instance
    from placement.plan import Plan
    from placement.problem import Problem
    from placement.tail.objective import Percentile

__all__ = ["Contingency", "Goal", "contingency_document", "contingency_from", "solve_within"]


def contingency_document(goal: Contingency, instance: Instance) -> dict[str, object]:
    """Return the losses, the goal and the scored clients, JSON-ready."""
    given = goal.probability
    probability = (
        {name: float(p) for name, p in given.items()}
        if isinstance(given, Mapping)
        else None
        if given is None
        else float(given)
    )
    document: dict[str, object] = {
        "level": goal.level,
        "goal": goal.goal,
        "together": goal.together,
        "limit": None if goal.limit is None else float(goal.limit),
        "probability": probability,
        "leader_may_move": goal.leader_may_move,
        "clients_move": goal.clients_move,
    }
    if goal.percentile is not None:
        document["percentile"] = goal.percentile.document(instance)
    return document


def contingency_from(document: Document, instance: Instance) -> Contingency:
    """Read what :func:`contingency_document` wrote.

    Raises
    ------
    InputError
        For a value that is missing or wrong.
    """
    from placement.tail.objective import Percentile

    goal = document.text("goal")
    if goal not in ("worst", "bounded", "weighted"):
        raise document.refuse("goal", "unknown goal", "'worst', 'bounded' or 'weighted'")
    probability: float | dict[str, float] | None = None
    if isinstance(document.values.get("probability"), dict):
        table = document.table("probability")
        probability = {name: table.number(name) for name in table.values}
    elif document.has("probability"):
        probability = number(document.number("probability"), "probability")
    percentile: Percentile | None = None
    if document.has("percentile"):
        percentile = Percentile.from_document(document.table("percentile"), instance)
    return Contingency(
        document.text("level"),
        goal,  # type: ignore[arg-type]  # one of the three, checked above
        together=document.whole("together"),
        limit=document.number("limit") if document.has("limit") else None,
        probability=probability,
        leader_may_move=document.values.get("leader_may_move") is True,
        clients_move=document.values.get("clients_move") is True,
        percentile=percentile,
    )


def solve_within(
    problem: Problem,
    slack: float,
    method: str = "exact",
    *,
    time_limit: float | None = None,
    gap_limit: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[Progress], None] | None = None,
    settings: Mapping[str, object] | None = None,
) -> tuple[Plan, Plan]:
    """Return the best normal plan whose worst case is at most (1 + slack) × the best possible.

    Parameters
    ----------
    problem
        With a contingency objective of the goal "worst".
    slack
        ε >= 0; 0.05 gives up five per cent of the best worst case.
    method, gap_limit, seed, threads, progress, settings
        As for :func:`placement.solve`, of both searches.
    time_limit
        Seconds for both searches together.

    Returns
    -------
    (plan of the goal "worst", plan of the goal "bounded")
        The limit of the second is (1 + slack) times the worst case of the first: without a proof of
        the first, of the best that was found. The first comes twice when nothing was found. After
        Ctrl-C in the first search the second has no time to improve on its plan.
    """
    from time import perf_counter

    from placement.methods.registry import solve
    from placement.support.status import Termination

    goal = problem.objective
    if not isinstance(goal, Contingency) or goal.goal != "worst":
        raise InputError(
            "needs a contingency objective",
            field="objective",
            value=goal.kind,
            expected="Contingency(goal='worst')",
        )
    slack = number(slack, "slack")
    began = perf_counter()
    search = partial(
        solve,
        method=method,
        gap_limit=gap_limit,
        seed=seed,
        threads=threads,
        progress=progress,
        settings=settings,
    )
    first = search(problem, time_limit=time_limit)
    if not first.found:
        return first, first
    interrupted = first.termination is Termination.INTERRUPTED
    left = None if time_limit is None else max(0.0, time_limit - (perf_counter() - began))
    limit = (1 + slack) * goal.in_ms(problem, first.objective)
    second = search(
        problem.replace(objective=replace(goal, goal="bounded", limit=limit)),
        time_limit=0.0 if interrupted else left,
        start=first,
    )
    if interrupted:
        second = second.replace(termination=first.termination)
    return first, second


Goal = Literal["worst", "bounded", "weighted"]

_ENUMERATED_IN_TIME = 300_000
"""Replica sets up to which the exact method enumerates under a time limit."""

_ENUMERATED_SETS = 3_000_000
"""Replica sets up to which it enumerates without a limit: some minutes."""


@dataclass(frozen=True)
class Contingency:
    """Minimise latency with an eye on every loss of a kind.

    Parameters
    ----------
    level
        Failure-domain level that is lost, one domain at a time; "site" is N−1.
    goal
        "worst", "bounded" or "weighted".
    together
        Domains lost at once; 2 on level "site" is N−2.
    limit
        For "bounded": the largest latency after any loss, ms: the mean, or the percentile.
    probability
        For "weighted": p_F of every loss, one number or by name; a loss that is not named has 0.
        Their sum may be at most 1.
    leader_may_move
        Whether a leader that survives may hand over to a better one.
    clients_move
        Whether the closest surviving site serves the clients of a lost one, who then wait for the
        RTT to it as well (:mod:`placement.evaluation.losses`); else they stay.
    percentile
        The percentile that is scored normally and after every loss, with the distributions of
        RTTs; None: the mean latency. With "worst" and "bounded", and clients that stay.

    Raises
    ------
    InputError
        For an unknown goal, a missing or superfluous limit or probability, a percentile that is
        weighted or whose clients move.
    """

    level: str = "site"
    goal: Goal = "worst"
    _: KW_ONLY
    together: int = 1
    limit: float | None = None
    probability: float | Mapping[str, float] | None = field(default=None, hash=False)
    leader_may_move: bool = False
    clients_move: bool = False
    percentile: Percentile | None = None

    def __post_init__(self) -> None:
        text(self.level, "level")
        flag(self.leader_may_move, "leader_may_move")
        flag(self.clients_move, "clients_move")
        if not isinstance(self.goal, str) or self.goal not in ("worst", "bounded", "weighted"):
            raise InputError(
                "unknown goal",
                field="goal",
                value=self.goal,
                expected="'worst', 'bounded' or 'weighted'",
            )
        object.__setattr__(self, "together", whole(self.together, "together", minimum=1, maximum=2))
        for name, given, goal in (
            ("limit", self.limit, "bounded"),
            ("probability", self.probability, "weighted"),
        ):
            if (given is not None) != (self.goal == goal):
                raise InputError(
                    f"the goal {self.goal!r} "
                    + ("needs" if self.goal == goal else "does not use")
                    + f" a {name}",
                    field=name,
                    value=given,
                    expected="a number" if self.goal == goal else "none",
                )
        if self.limit is not None:
            number(self.limit, "limit")
        if isinstance(self.probability, Mapping):
            for name, p in self.probability.items():
                number(p, f"probability[{name!r}]")
        elif self.probability is not None:
            number(self.probability, "probability")
        if self.percentile is not None:
            self._check_percentile(self.percentile)

    def _check_percentile(self, percentile: Percentile) -> None:
        from placement.tail.objective import Percentile

        instance_of(percentile, Percentile, "percentile", "placement.tail.Percentile")
        for field_, refused, why, expected in (
            ("goal", self.goal == "weighted", "percentiles are not weighted", "'worst', 'bounded'"),
            ("clients_move", self.clients_move, "the clients of a percentile stay", "False"),
        ):
            if refused:
                value = self.goal if field_ == "goal" else True
                raise InputError(why, field=field_, value=value, expected=expected)

    @property
    def kind(self) -> str:
        """Return "contingency", or "contingency-percentile" where a percentile is scored."""
        return "contingency" if self.percentile is None else "contingency-percentile"

    @property
    def minimises_mean(self) -> bool:
        """Return False."""
        return False

    @property
    def decimals(self) -> int:
        """Return the decimals with which a value in ms is shown."""
        return 3 if self.percentile is None else self.percentile.decimals

    def check(self, problem: Problem) -> None:
        """Check the level and the probabilities against the instance, and that no money counts."""
        if problem.cost_weight:
            raise InputError(
                "an objective about losses does not support a weight of the cost",
                field="cost_weight",
                value=problem.cost_weight,
                expected="0, or a budget",
            )
        if self.percentile is not None:
            self.percentile.check(problem)
        self.probabilities(problem)

    def losses(self, problem: Problem) -> tuple[Loss, ...]:
        """Return every loss that counts."""
        return losses(problem, self.level, together=self.together)

    def moves_clients(self, problem: Problem, loss: Loss) -> bool:
        """Return whether a loss moves clients, and so is noticed even where it hits no replica."""
        return self.clients_move and bool(moving_clients(problem, loss.sites))

    def probabilities(self, problem: Problem) -> tuple[float, ...]:
        """p_F of every loss, in the order of `losses`; zeros for the other goals.

        Raises
        ------
        InputError
            When they sum to more than 1, or name a loss that does not exist.
        """
        names = [loss.name for loss in self.losses(problem)]
        given = self.probability
        if isinstance(given, Mapping):
            for name in given:
                if name not in names:
                    raise InputError(
                        "no such loss",
                        field="probability",
                        value=name,
                        expected=f"a {self.level} of the instance",
                    )
            result = tuple(float(given.get(name, 0.0)) for name in names)
        else:
            result = tuple(0.0 if given is None else float(given) for _ in names)
        if sum(result) > 1 + 1e-9:
            raise InputError(
                "outage probabilities sum to more than 1",
                field="probability",
                value=sum(result),
                expected="a sum <= 1",
            )
        return result

    def normal_share(self, problem: Problem) -> float:
        """Return the least share of the normal score in the value of any configuration.

        1 for the goals "worst" and "bounded". For "weighted", 1 − Σ_F p_F over the likeliest
        losses, as many as a configuration has sites, since it notices no more of them.
        """
        if self.goal != "weighted":
            return 1.0
        likeliest = sorted(self.probabilities(problem), reverse=True)
        if self.together == 1 and not self.clients_move:  # a site is in one loss at most
            likeliest = likeliest[: problem.rules.replicas_max]
        return max(0.0, 1 - sum(likeliest))

    def scores_after(
        self, problem: Problem, configuration: Configuration
    ) -> tuple[tuple[Loss, float], ...]:
        """score_F of every loss; the normal score where it is not noticed, ∞ where it stops."""
        normal = self._normal(problem, configuration)
        held = frozenset((*configuration.replicas, *configuration.voters))
        known: dict[frozenset[int], float] = {}  # many losses hit the same replicas

        rows = []
        for loss in self.losses(problem):
            hit = loss.sites if self.clients_move else loss.sites & held
            if hit not in known:
                unhit = unnoticed(problem, configuration, hit, clients_move=self.clients_move)
                known[hit] = normal if unhit else best_after(problem, self, configuration, hit)
            rows.append((loss, known[hit]))
        return tuple(rows)

    def _normal(self, problem: Problem, configuration: Configuration) -> float:
        if self.percentile is None:
            return score_of(problem, configuration)
        return self.percentile.value(problem, configuration)

    def value(self, problem: Problem, configuration: Configuration) -> float:
        """Value of a configuration under the goal: ms times operations, of percentiles ms."""
        normal = self._normal(problem, configuration)
        after = [score for _, score in self.scores_after(problem, configuration)]
        return self._under_goal(problem, normal, after)

    def _under_goal(self, problem: Problem, normal: float, after: Sequence[float]) -> float:
        """Value of a normal score and the scores after every loss."""
        worst = max(normal, *after)
        if self.goal == "worst" or math.isinf(worst):
            return worst
        if self.goal == "bounded":
            return normal if worst <= self.ceiling(problem) else math.inf
        weights = self.probabilities(problem)
        share = 1 - sum(weights)
        return share * normal + sum(p * score for p, score in zip(weights, after, strict=True))

    def values(
        self, problem: Problem, configurations: Sequence[Configuration]
    ) -> npt.NDArray[np.float64]:
        """Values of many configurations, each as :meth:`value` gives it, shape (n,)."""
        if self.percentile is not None:
            return values_one_by_one(self, problem, configurations)
        normal = scores_of(problem, configurations)
        weights = self.probabilities(problem)
        share = 1 - sum(weights)
        worst, mean = normal.copy(), share * normal if share else np.zeros_like(normal)
        for loss, p in zip(self.losses(problem), weights, strict=True):
            after = scores_after_many(
                problem,
                configurations,
                loss.sites,
                normal,
                leader_may_move=self.leader_may_move,
                clients_move=self.clients_move,
            )
            worst = np.maximum(worst, after)
            mean = mean + (p * after if p else 0.0)
        if self.goal == "worst":
            return worst
        if self.goal == "bounded":
            return np.where(worst <= self.ceiling(problem), normal, math.inf)
        return np.where(np.isfinite(worst), mean, math.inf)

    def unit(self, problem: Problem) -> str:
        """Return "ms"."""
        del problem
        return "ms"

    @property
    def beyond(self) -> str:
        """Return the text for an infinite value."""
        if self.percentile is None:
            return "service stops"
        return "service stops, or beyond the horizon"

    def mixed(
        self, problem: Problem, configurations: Sequence[Configuration], shares: Sequence[float]
    ) -> float:
        """Value of groups on several configurations: a loss hits all of them at once."""
        if self.percentile is not None:
            mixed = mixed_percentiles(problem, self, configurations, shares)
            return self._under_goal(problem, *mixed)
        normal, afters = 0.0, np.zeros(len(self.losses(problem)))
        for configuration, share in zip(configurations, shares, strict=True):
            if share:
                normal += share * score_of(problem, configuration)
                scores = [score for _, score in self.scores_after(problem, configuration)]
                afters += share * np.array(scores)
        return self._under_goal(problem, normal, afters.tolist())

    def of_intervals(self, intervals: int | slice) -> Contingency:
        """Return the objective: losses do not depend on the interval, distributions may."""
        if self.percentile is None:
            return self
        return replace(self, percentile=self.percentile.of_intervals(intervals))

    def in_ms(self, problem: Problem, value: float) -> float:
        """Return a value, or a bound on one, as a latency in ms."""
        return value if self.percentile is not None else value / problem.demand.operations

    def failures(self, problem: Problem, configuration: Configuration) -> Failures:
        """Mean latency under every loss that counts, by the definition of :meth:`value`.

        For the goal "worst" the value is the largest of the normal latency and the worst of them,
        unless a percentile is scored: :meth:`tables` has those.
        """
        return failures(
            problem,
            configuration,
            self.level,
            together=self.together,
            leader_may_move=self.leader_may_move,
            clients_move=self.clients_move,
        )

    def headline(self, problem: Problem) -> str:
        """Return the name of the value, or the empty string where it is the normal mean latency."""
        del problem
        if self.percentile is not None:
            word = f"p{self.percentile.percent:g}"
            return f"Worst {word}" if self.goal == "worst" else word
        return {"worst": "Worst case", "weighted": "Mean over outages", "bounded": ""}[self.goal]

    def tie_break(self, problem: Problem, configuration: Configuration) -> float:
        """Second criterion among configurations of equal value: the normal mean."""
        return score_of(problem, configuration)

    def ceiling(self, problem: Problem) -> float:
        """Largest score_F that the goal "bounded" allows, rounding included; else infinite."""
        if self.limit is None:
            return math.inf
        unit = 1.0 if self.percentile is not None else problem.demand.operations
        return self.limit * unit * (1 + 1e-12)

    def violations(self, problem: Problem, configuration: Configuration) -> tuple[str, ...]:
        """Losses that stop the service or break the limit, which holds without a loss too."""
        broken: list[str] = []
        word = "" if self.percentile is None else f"a p{self.percentile.percent:g} of "
        if self.percentile is not None:
            broken.extend(self.percentile.violations(problem, configuration))
        for loss, score in self.scores_after(problem, configuration):
            lost = f"the loss of {loss.name}"
            if score <= min(self.ceiling(problem), sys.float_info.max):
                pass
            elif survivors(problem, configuration, loss.sites) is None:
                broken.append(f"{lost} leaves fewer than {problem.rules.quorum} voters")
            elif math.isinf(score):
                broken.append(f"{lost} gives {word}more than the horizon")
            else:
                found = f"{self.in_ms(problem, score):.6g} ms"
                broken.append(f"{lost} gives {word}{found}, above the limit of {self.limit:g} ms")
        if self.limit is not None:  # it holds normally too, which losses that all count leave out
            normal = self._normal(problem, configuration)
            if self.ceiling(problem) < normal < math.inf:
                found = f"{self.in_ms(problem, normal):.6g} ms"
                broken.append(f"no loss gives {word}{found}, above the limit of {self.limit:g} ms")
        return tuple(broken)

    def diversity(self, voters: int, quorum: int) -> tuple[Diversity, ...]:
        """Rules that follow: no domain may hold more voters than can be spared.

        With losses of two domains at once this is necessary, not sufficient.
        """
        if voters == quorum:
            return ()
        return (Diversity(self.level, "voters", cap=voters - quorum),)

    def reasons_infeasible(self, problem: Problem) -> tuple[str, ...]:
        """Say so when the quorum can't spare a voter: every loss of a voter's site stops it."""
        voters, quorum = problem.rules.voters, problem.rules.quorum
        if voters - quorum >= self.together:
            return ()
        return (
            f"{voters} voters with quorum {quorum} can spare {voters - quorum}, and "
            f"{self.describe()} needs {self.together} to be spared",
        )

    def remarks(self, problem: Problem) -> tuple[str, ...]:
        """Return nothing."""
        del problem
        return ()

    def caveats(self, problem: Problem) -> tuple[str, ...]:
        """Say so when a horizon may be the reason; losses have theirs among the constraints."""
        return () if self.percentile is None else self.percentile.caveats(problem)

    def proof_method(
        self, problem: Problem, sets: Callable[[], int], time_limit: float | None
    ) -> ProofMethod | None:
        """Return ``exhaustive`` for few replica sets, else ``cp-sat``.

        Enumeration is vectorised and proves nothing before its end; branching bounds from the
        start, and of the two methods that can, CP-SAT is the faster by far. Percentiles as without
        losses (``proof_method`` of the percentile).
        """
        if self.percentile is not None:
            return self.percentile.proof_method(problem, sets, time_limit)
        few = sets() <= (_ENUMERATED_SETS if time_limit is None else _ENUMERATED_IN_TIME)
        return ProofMethod("exhaustive" if few else "cp-sat", "it minimises over losses")

    def unproven(self, plan: Plan) -> tuple[str, str] | None:
        """Return None, since the certificate decides; of a percentile, what was evaluated again."""
        return None if self.percentile is None else self.percentile.unproven(plan)

    def describe(self) -> str:
        """Return the objective in words."""
        lost = f"any {'two' if self.together == 2 else 'one'} {self.level}" + (
            "s" if self.together == 2 else ""
        )
        if self.percentile is not None:
            word = f"p{self.percentile.percent:g} latency"
            if self.goal == "worst":
                return f"worst {word} after the loss of {lost}"
            return f"{word}, at most {self.limit:g} ms after the loss of {lost}"
        if self.goal == "worst":
            return f"best worst case after the loss of {lost}"
        if self.goal == "bounded":
            return f"at most {self.limit:g} ms after the loss of {lost}"
        return f"mean over outages of {lost}"

    @property
    def lost_words(self) -> str:
        """Return the kind of a loss in words that end with "is" or "are"."""
        return f"two of level {self.level} are" if self.together == 2 else f"one {self.level} is"

    def tables(self, problem: Problem, configuration: Configuration) -> tuple[ValueTable, ...]:
        """Return the tables of a percentile; the mean after every loss is in every plan."""
        if self.percentile is None:
            return ()
        return percentile_tables(problem, self, configuration)

    def plan_rows(
        self, problem: Problem, configuration: Configuration
    ) -> Mapping[str, Sequence[object]]:
        """Return the percentiles, by loss as well; every plan file tells the mean after losses."""
        if self.percentile is None:
            return {}
        normal = problem.replace(objective=self.percentile)
        return {
            **self.percentile.plan_rows(normal, configuration),
            "losses": percentile_rows(problem, self, configuration),
        }

    def document(self, instance: Instance) -> dict[str, object]:
        """Return the losses and the goal, and the percentile that is scored."""
        return contingency_document(self, instance)

    @classmethod
    def from_document(cls, document: Document, instance: Instance) -> Contingency:
        """Return the objective that :meth:`document` wrote."""
        return contingency_from(document, instance)

"""What is asked: an instance and the constraints a plan must obey."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TypeGuard

import numpy as np

from placement.checks import BoolArray, number
from placement.constraints import Diversity, GroupRule, Rules, group_rule, mask
from placement.demand import Demand, aggregate, decay_weights
from placement.errors import InputError
from placement.instance import Instance
from placement.objectives import MEAN_LATENCY, Objective
from placement.score import majority

__all__ = ["Problem"]


@dataclass(frozen=True, eq=False)
class Problem:
    """A question about an instance.

    How much is free decides the tier of Sharov et al.: with `replicas` and `voters` given by name
    only the leader is chosen (tier 1); with `replicas` by name and a number of voters, the roles
    (tier 2); with numbers, everything (tier 3).

    Parameters
    ----------
    instance
        The world.
    replicas
        |R|: a number, an inclusive range ``(3, 7)`` or ``range(3, 8)``, or the sites by name.
    voters
        |V|: a number, or the sites by name.
    quorum
        Votes a commit waits for, 1 <= m <= |V| (flexible quorums); None: a majority.
    leader
        The site that must lead.
    leaders
        Candidate leaders; None: every site that may vote.
    pinned, pinned_voters
        Sites that must hold a replica, must vote.
    forbidden
        Sites that may not hold a replica.
    non_voters
        Sites that may hold a replica but not vote.
    diversity
        :class:`Diversity` rules.
    survive
        A failure-domain level any one domain of which may be lost without losing the service:
        enough of the original voters must remain to commit and to elect a leader, that is
        max(m, v − m + 1), which for majorities is a majority. Shorthand for at most
        v − max(m, v − m + 1) voters per domain.
    decay
        τ >= 1 of Eq. 2, for instances with several intervals.
    budget
        Largest cost of the replicas (needs prices in the instance).
    cost_weight
        Weight of the cost in the objective, in ms·operations per unit of cost.
    objective
        What is minimised; the mean latency unless given.

    Raises
    ------
    InputError
        For anything that contradicts itself or the instance. A question that is well put but has
        no answer is not an error: solving it gives a plan with status ``infeasible``.
    """

    instance: Instance
    _: KW_ONLY
    replicas: int | tuple[int, int] | range | Sequence[str]
    voters: int | Sequence[str]
    quorum: int | None = None
    leader: str | None = None
    leaders: Sequence[str] | None = None
    pinned: Sequence[str] = ()
    pinned_voters: Sequence[str] = ()
    forbidden: Sequence[str] = ()
    non_voters: Sequence[str] = ()
    diversity: Sequence[Diversity] = ()
    survive: str | None = None
    decay: float = 1.0
    budget: float | None = None
    cost_weight: float = 0.0
    objective: Objective = MEAN_LATENCY

    def __post_init__(self) -> None:
        if not isinstance(self.instance, Instance):
            raise InputError(
                "not an instance",
                field="instance",
                value=type(self.instance).__name__,
                expected="a placement.Instance (placement.load reads one)",
            )
        rules: list[Diversity] = (
            [self.diversity] if isinstance(self.diversity, Diversity) else [*self.diversity]
        )
        for rule in rules:
            if not isinstance(rule, Diversity):
                raise InputError(
                    "not a rule", field="diversity", value=rule, expected="Diversity(level, …)"
                )
        object.__setattr__(self, "diversity", tuple(rules))
        for field in ("leaders", "pinned", "pinned_voters", "forbidden", "non_voters"):
            names = getattr(self, field)
            if isinstance(names, str):
                names = (names,)
            if names is not None:
                object.__setattr__(self, field, tuple(names))
        for field in ("replicas", "voters"):
            value = getattr(self, field)
            if isinstance(value, Iterable) and not isinstance(value, (range, str)):
                object.__setattr__(self, field, tuple(value))
        if self.objective is not MEAN_LATENCY and not isinstance(self.objective, Objective):
            raise InputError(
                "not an objective",
                field="objective",
                value=self.objective,
                expected="one of placement.objectives",
            )
        decay_weights(1, self.decay)
        if self.budget is not None:
            number(self.budget, "budget")
        number(self.cost_weight, "cost_weight")
        if (self.budget is not None or self.cost_weight) and self.instance.prices is None:
            raise InputError(
                "money is asked about, but the instance has no prices",
                field="budget" if self.budget is not None else "cost_weight",
                value=self.budget if self.budget is not None else self.cost_weight,
                expected="an instance with prices (Instance(prices=Prices(…)))",
            )
        _ = self.rules, self.demand  # both validate
        self.objective.check(self)

    def replace(self, **changes: object) -> Problem:
        """Return a copy with some fields changed, validated again."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # checked at run time

    @cached_property
    def demand(self) -> Demand:
        """Demand aggregated over the intervals."""
        return aggregate(self.instance, self.decay)

    @cached_property
    def rules(self) -> Rules:
        """Return the constraints on site indices."""
        return _compile(self)

    @property
    def tier(self) -> int:
        """Return 1, 2 or 3: how much is free (leader; roles and leader; everything)."""
        rules = self.rules
        if not np.array_equal(rules.may_hold, rules.must_hold):
            return 3
        return 1 if int(rules.may_vote.sum()) == rules.voters else 2

    def __repr__(self) -> str:
        return f"<Problem on {self.instance.name!r}: {describe(self)}>"

    def __getstate__(self) -> dict[str, object]:
        fields = {field.name for field in dataclasses.fields(self)}
        return {key: value for key, value in self.__dict__.items() if key in fields}


def describe(problem: Problem) -> str:
    """Return the question in a line of words."""
    rules = problem.rules
    count = (
        f"{rules.replicas_min}"
        if rules.replicas_min == rules.replicas_max
        else f"{rules.replicas_min} to {rules.replicas_max}"
    )
    parts = [
        f"{count} replica{'' if count == '1' else 's'}",
        f"{rules.voters} voter{'' if rules.voters == 1 else 's'}",
    ]
    if rules.quorum != majority(rules.voters):
        parts.append(f"quorum {rules.quorum}")
    if problem.tier < 3:
        parts.append("replicas fixed" if problem.tier == 2 else "replicas and voters fixed")
    if problem.leader is not None:
        parts.append(f"leader {problem.leader}")
    if problem.leaders is not None:
        parts.append(f"{len(problem.leaders)} leader candidates")
    for field in ("pinned", "pinned_voters", "forbidden", "non_voters"):
        if getattr(problem, field):
            parts.append(f"{field.replace('_', ' ')}: {', '.join(getattr(problem, field))}")
    parts.extend(group.why for group in rules.groups)
    if rules.budget is not None:
        parts.append(f"budget {rules.budget:g}")
    if rules.cost_weight:
        parts.append(f"cost weight {rules.cost_weight:g}")
    if problem.objective.describe():
        parts.append(problem.objective.describe())
    if problem.decay != 1:
        parts.append(f"decay {problem.decay:g}")
    return ", ".join(parts)


def _whole(value: object, field: str, minimum: int = 1) -> int:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, np.integer, float))
        or int(value) != value
        or value < minimum
    ):
        raise InputError(
            "not a possible number",
            field=field,
            value=value,
            expected=f"a whole number >= {minimum}",
        )
    return int(value)


def _range(value: object) -> tuple[int, int]:
    """Inclusive range of |R| from a number, a pair or a Python range."""
    low: object
    high: object
    if isinstance(value, range):
        if len(value) == 0 or abs(value.step) != 1:
            raise InputError(
                "not a possible range",
                field="replicas",
                value=value,
                expected="a non-empty range of step 1",
            )
        low, high = min(value), max(value)
    elif isinstance(value, tuple):
        if len(value) != 2:
            raise InputError(
                "not a possible range", field="replicas", value=value, expected="(least, most)"
            )
        low, high = value
    else:
        low, high = value, value
    least, most = _whole(low, "replicas"), _whole(high, "replicas")
    if least > most:
        raise InputError(
            "not a possible range", field="replicas", value=value, expected="least <= most"
        )
    return least, most


def _by_name(value: object) -> TypeGuard[tuple[str, ...]]:
    return isinstance(value, tuple) and any(isinstance(item, str) for item in value)


def _compile(problem: Problem) -> Rules:
    """Turn the question into masks and numbers, refusing what contradicts itself."""
    instance = problem.instance
    size = len(instance.sites)
    forbidden = mask(size, instance.site_indices(problem.forbidden, "forbidden"))
    may_hold = ~forbidden
    must_hold = mask(size, instance.site_indices(problem.pinned, "pinned"))

    replicas, voters = problem.replicas, problem.voters
    if isinstance(replicas, str) or isinstance(voters, str):
        field = "replicas" if isinstance(replicas, str) else "voters"
        raise InputError(
            "one string where a number or a list of names was expected",
            field=field,
            value=getattr(problem, field),
            expected="5 or ['a', 'b', …]",
        )
    if _by_name(replicas):
        fixed = mask(size, instance.site_indices(replicas, "replicas"))
        _within(problem, must_hold, fixed, "pinned", "one of the fixed replicas")
        _within(problem, fixed, may_hold, "replicas", "no forbidden site")
        may_hold, must_hold = fixed, fixed.copy()
        least = most = _count(fixed)
    else:
        least, most = _range(replicas)
        if least > size:
            raise InputError(
                "more replicas than sites", field="replicas", value=least, expected=f"<= {size}"
            )
        most = min(most, size)

    may_vote = may_hold & ~mask(size, instance.site_indices(problem.non_voters, "non_voters"))
    must_vote = mask(size, instance.site_indices(problem.pinned_voters, "pinned_voters"))
    if _by_name(voters):
        fixed = mask(size, instance.site_indices(voters, "voters"))
        _within(problem, must_vote, fixed, "pinned_voters", "one of the fixed voters")
        _within(problem, fixed, may_vote, "voters", "a site that may hold a voting replica")
        may_vote, must_vote = fixed, fixed.copy()
        count = _count(fixed)
    else:
        count = _whole(voters, "voters")
    if count > most:
        raise InputError(
            "more voters than replicas", field="voters", value=count, expected=f"<= {most}"
        )
    least = max(least, count)

    quorum = majority(count) if problem.quorum is None else _whole(problem.quorum, "quorum")
    if quorum > count:
        raise InputError(
            "a quorum larger than the number of voters",
            field="quorum",
            value=quorum,
            expected=f"<= {count}",
        )

    may_lead = may_vote.copy()
    if problem.leaders is not None:
        may_lead &= mask(size, instance.site_indices(problem.leaders, "leaders"))
    if problem.leader is not None:
        chosen = mask(size, instance.site_indices([problem.leader], "leader"))
        _within(problem, chosen, may_lead, "leader", "a site that may vote and lead")
        may_lead = chosen
        must_vote = must_vote | chosen
    _within(problem, must_vote, may_vote, "pinned_voters", "a site that may hold a voting replica")
    must_hold = must_hold | must_vote
    _within(problem, must_hold, may_hold, "pinned", "no forbidden site")
    for name, pins, limit in (
        ("pinned", _count(must_hold), most),
        ("pinned_voters", _count(must_vote), count),
    ):
        if pins > limit:
            raise InputError(
                "more pinned sites than asked for", field=name, value=pins, expected=f"<= {limit}"
            )
    least = max(least, _count(must_hold))

    # What follows from the counts alone is said outright, so that every method sees it.
    if _count(must_vote) == count:
        may_vote = must_vote.copy()
    elif _count(may_vote) == count:
        must_vote = may_vote.copy()
        must_hold = must_hold | must_vote
    if _count(must_hold) == most:
        may_hold = must_hold.copy()
    elif _count(may_hold) == least:
        must_hold = may_hold.copy()
    may_vote = may_vote & may_hold
    may_lead = may_lead & may_vote

    return Rules(
        replicas_min=least,
        replicas_max=most,
        voters=count,
        quorum=quorum,
        may_hold=may_hold,
        must_hold=must_hold,
        may_vote=may_vote,
        must_vote=must_vote,
        may_lead=may_lead,
        groups=_groups(problem, count, quorum, may_hold, may_vote),
        budget=problem.budget,
        cost_weight=float(problem.cost_weight),
    )


def _count(chosen: BoolArray) -> int:
    """How many sites: a mask has few elements, and this is the quickest way to count them."""
    return int(np.count_nonzero(chosen))


def _groups(
    problem: Problem, voters: int, quorum: int, may_hold: np.ndarray, may_vote: np.ndarray
) -> tuple[GroupRule, ...]:
    groups = []
    for rule in (*problem.diversity, *problem.objective.diversity(voters, quorum)):
        words = []
        if rule.cap is not None:
            words.append(f"at most {rule.cap} of the {rule.role} per {rule.level}")
        if rule.min_domains is not None:
            words.append(
                f"{rule.role} in at least {rule.min_domains} distinct {rule.level} domains"
            )
        groups.append(
            group_rule(
                problem.instance,
                level=rule.level,
                role=rule.role,
                cap=rule.cap,
                min_domains=rule.min_domains,
                why=" and ".join(words),
                bound=may_vote if rule.role == "voters" else may_hold,
            )
        )
    if problem.survive is not None:
        needed = max(quorum, voters - quorum + 1)
        if needed == voters and voters - needed == 0:
            raise InputError(
                f"with {voters} voters and quorum {quorum} no voter may be lost, so no "
                f"{problem.survive} can be survived",
                field="survive",
                value=problem.survive,
                expected="more voters (3 or more with majorities)",
            )
        groups.append(
            group_rule(
                problem.instance,
                level=problem.survive,
                role="voters",
                cap=voters - needed,
                min_domains=None,
                why=f"survive the loss of any one {problem.survive} "
                f"(at most {voters - needed} of {voters} voters in each)",
                bound=may_vote,
            )
        )
    return tuple(groups)


def _within(
    problem: Problem, inner: np.ndarray, outer: np.ndarray, field: str, expected: str
) -> None:
    stray = inner & ~outer
    if stray.any():
        raise InputError(
            "contradicts another constraint",
            field=field,
            value=problem.instance.sites[int(stray.argmax())],
            expected=expected,
        )

"""Rules of a plan that runs today, as they hold for questions about its next change."""

from __future__ import annotations

from collections.abc import Sequence

from placement.errors import InputError
from placement.problem import Problem

__all__ = ["LIFTED", "counted", "without_rules"]

LIFTED = {
    "leader": "leader",
    "leaders": "leaders",
    "pins": "pinned",
    "voter-pins": "pinned_voters",
    "forbidden": "forbidden",
    "non-voters": "non_voters",
    "diversity": "diversity",
    "survive": "survive",
    "budget": "budget",
}
"""Rules that can be left out, and their fields of :class:`placement.Problem`."""

_ALL = "all"


def counted(problem: Problem) -> Problem:
    """Return the question with numbers of replicas and voters in place of their names.

    The names of a plan that runs say what runs, and not that it must stay.
    """
    numbers = {
        name: len(given)
        for name, given in (("replicas", problem.replicas), ("voters", problem.voters))
        if isinstance(given, tuple) and isinstance(given[0], str)
    }
    return problem.replace(**numbers) if numbers else problem


def without_rules(problem: Problem, rules: Sequence[str]) -> Problem:
    """Return the question without some of its rules.

    Parameters
    ----------
    problem
        Of the plan that runs today.
    rules
        Keys of :data:`LIFTED`, or "all".

    Raises
    ------
    InputError
        For a rule that is none.
    """
    for rule in rules:
        if rule not in LIFTED and rule != _ALL:
            raise InputError(
                "no such rule",
                field="lift",
                value=rule,
                expected=f"some of {', '.join(LIFTED)}, or {_ALL}",
            )
    names = LIFTED if _ALL in rules else rules
    defaults = Problem.__dataclass_fields__
    return problem.replace(**{LIFTED[name]: defaults[LIFTED[name]].default for name in names})

"""Losses that a set of voters must survive while it is being changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from placement.model.configuration import Configuration
from placement.model.constraints import GroupRule
from placement.overtime.moves.quorum_sizes import QuorumSizes, quorums_of
from placement.problem import Problem

__all__ = ["Guard", "LossGuard", "SpreadGuard", "SurviveGuard", "common_guards", "voters_to_spare"]


def voters_to_spare(voters: int, quorums: QuorumSizes) -> int:
    """Return how many voters may be lost with both a commit and an election still possible."""
    return voters - max(quorums)


@dataclass(frozen=True, slots=True)
class LossGuard:
    """Guard that requires a quorum after the loss of any so many voters."""

    least: int

    def broken(self, voters: Sequence[int], quorums: QuorumSizes) -> str | None:
        """Return what is broken, in words, or None."""
        left = voters_to_spare(len(voters), quorums)
        if left >= self.least:
            return None
        return f"only {left} voters may be lost, not {self.least}"


@dataclass(frozen=True, slots=True)
class SurviveGuard:
    """Any one domain of a level may be lost.

    Attributes
    ----------
    level
        The level.
    labels
        Domain of each site; None: a separate domain.
    """

    level: str
    labels: tuple[str | None, ...]

    def broken(self, voters: Sequence[int], quorums: QuorumSizes) -> str | None:
        """Return what is broken, in words, or None."""
        held = Counter(self.labels[v] for v in voters if self.labels[v] is not None)
        most = max([*held.values(), 1], default=1)
        if len(voters) - most >= max(quorums):
            return None
        worst = next((name for name, count in held.items() if count == most), "a site")
        return f"the loss of {worst} ({self.level}) would stop commits or elections"


@dataclass(frozen=True, slots=True)
class SpreadGuard:
    """A diversity rule of the problem for voters."""

    rule: GroupRule

    def broken(self, voters: Sequence[int], quorums: QuorumSizes) -> str | None:
        """Return what is broken, in words, or None."""
        del quorums
        return None if self.rule.satisfied(tuple(voters)) else f"not kept: {self.rule.why}"


Guard = LossGuard | SurviveGuard | SpreadGuard


def common_guards(problem: Problem, ends: Sequence[Configuration]) -> tuple[Guard, ...]:
    """Return the guards that all of `ends` keep, and that every step between them should keep.

    Parameters
    ----------
    problem
        Whose `survive` and rules for voters are meant.
    ends
        Configurations before and after.
    """
    groups = list(problem.rules.of("voters"))
    guards: list[Guard] = []
    if problem.survive is not None:
        # Its group is a cap for v voters and m votes; on the way both change, the meaning does not.
        guards.append(SurviveGuard(problem.survive, problem.instance.labels(problem.survive)))
        groups.pop()
    guards.extend(SpreadGuard(group) for group in groups)
    quorums = [quorums_of(problem, end) for end in ends]
    kept = [
        guard
        for guard in guards
        if not any(guard.broken(e.voters, q) for e, q in zip(ends, quorums, strict=True))
    ]
    least = min(voters_to_spare(len(e.voters), q) for e, q in zip(ends, quorums, strict=True))
    return (LossGuard(least), *kept)

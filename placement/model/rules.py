"""Rules on site indices from a question: masks and numbers, refused if contradictory.

In two steps, because sweeps ask for one number of replicas after another: :func:`allowed_sites`
holds for every number, :func:`compile_rules` adds the number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from placement.errors import InputError
from placement.model.constraints import Diversity, GroupRule, Rules, group_rule, majority, mask
from placement.model.protocols import Protocol
from placement.support.checks import BoolArray, whole

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["AllowedSites", "allowed_sites", "compile_rules", "is_count", "voters_of_all"]


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
    least, most = whole(low, "replicas", minimum=1), whole(high, "replicas", minimum=1)
    if least > most:
        raise InputError(
            "not a possible range", field="replicas", value=value, expected="least <= most"
        )
    return least, most


def _by_name(value: object) -> TypeGuard[tuple[str, ...]]:
    return isinstance(value, tuple) and any(isinstance(item, str) for item in value)


def is_count(value: object) -> TypeGuard[int | tuple[int, int] | range]:
    """Return whether replicas are given as a number or a range of numbers, not by name."""
    if isinstance(value, tuple):
        return not _by_name(value)
    return isinstance(value, (int, range)) and not isinstance(value, bool)


def _quorum(problem: Problem, voters: int) -> int:
    """Return m: the question's, or the protocol's, or a majority."""
    of_protocol = (
        problem.protocol.quorum(voters) if isinstance(problem.protocol, Protocol) else None
    )
    if problem.quorum is None:
        return majority(voters) if of_protocol is None else of_protocol
    quorum = whole(problem.quorum, "quorum", minimum=1)
    if of_protocol is not None and quorum != of_protocol:
        raise InputError(
            "the quorum differs from that of the protocol",
            field="quorum",
            value=quorum,
            expected=f"{of_protocol}, as in {problem.protocol}, or no quorum",
        )
    return quorum


def _named_witnesses(problem: Problem, forbidden: BoolArray) -> BoolArray:
    """Return the witnesses by name as a mask, refusing sites that hold data or may not vote."""
    instance = problem.instance
    assert _by_name(problem.witnesses)
    given = mask(len(forbidden), instance.site_indices(problem.witnesses, "witnesses"))
    fixed = problem.replicas if _by_name(problem.replicas) else ()
    leader = () if problem.leader is None else (problem.leader,)
    for names, field in (
        (leader, "leader"),
        (problem.pinned, "pinned"),
        (problem.pinned_voters, "pinned_voters"),
        (fixed, "replicas"),
        (problem.forbidden, "forbidden"),
        (problem.non_voters, "non_voters"),
    ):
        taken = mask(len(forbidden), instance.site_indices(names, field))
        _within(problem, given, ~taken, "witnesses", f"a site that is not in {field}")
    return given


def _witness_count(problem: Problem, voters: int, given: BoolArray | None) -> int:
    """Return the number of witnesses: fewer than voters, and by name where voters are."""
    if given is None:
        if isinstance(problem.witnesses, tuple) and not problem.witnesses:
            return 0
        if isinstance(problem.witnesses, (str, tuple)):
            raise InputError(
                "not a number of witnesses, and no names",
                field="witnesses",
                value=problem.witnesses,
                expected="1 or ['a', 'b', …]",
            )
        count = whole(problem.witnesses, "witnesses")
        if count and _by_name(problem.voters):
            raise InputError(
                "the voters are given by name, and not which of them are witnesses",
                field="witnesses",
                value=count,
                expected="the witnesses by name, or a number of voters",
            )
    else:
        count = _count(given)
    if count >= voters:
        raise InputError(
            "no voter is left that holds a replica and leads",
            field="witnesses",
            value=count,
            expected=f"<= {voters - 1}, fewer than voters",
        )
    return count


@dataclass(frozen=True, slots=True)
class AllowedSites:
    """Roles that each site may and must take, for any number of replicas.

    Attributes
    ----------
    may_hold, must_hold, may_vote, must_vote, may_lead
        As in :class:`Rules`, read-only.
    fixed
        |R| when the replicas are given by name; else None.
    voters, quorum
        |V| and m.
    witnesses, may_witness, must_witness
        As in :class:`Rules`; what `must_hold` adds later is still in `may_witness`.
    pins
        Sites that are pinned: `must_hold` but for voters that have no choice.
    held, holders
        How many sites must hold a replica, and may.
    """

    may_hold: BoolArray
    must_hold: BoolArray
    may_vote: BoolArray
    must_vote: BoolArray
    may_lead: BoolArray
    fixed: int | None
    voters: int
    quorum: int
    witnesses: int
    may_witness: BoolArray | None
    must_witness: BoolArray | None
    pins: int
    held: int
    holders: int


def allowed_sites(problem: Problem) -> AllowedSites:
    """Return the rules about single sites as masks; refuse contradictions.

    Raises
    ------
    InputError
        For an unknown site, and for names that contradict each other.
    """
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
    fixed_count: int | None = None
    if _by_name(replicas):
        fixed = mask(size, instance.site_indices(replicas, "replicas"))
        _within(problem, must_hold, fixed, "pinned", "one of the fixed replicas")
        _within(problem, fixed, may_hold, "replicas", "no forbidden site")
        may_hold, must_hold = fixed, fixed.copy()
        fixed_count = _count(fixed)

    non_voters = mask(size, instance.site_indices(problem.non_voters, "non_voters"))
    given = None if not _by_name(problem.witnesses) else _named_witnesses(problem, forbidden)
    if given is not None:
        may_hold = may_hold & ~given
    may_vote = may_hold & ~non_voters
    must_vote = mask(size, instance.site_indices(problem.pinned_voters, "pinned_voters"))
    if _by_name(voters):
        fixed = mask(size, instance.site_indices(voters, "voters"))
        count = _count(fixed)
        if given is not None:
            _within(problem, given, fixed, "witnesses", "one of the fixed voters")
            fixed = fixed & ~given
        _within(problem, must_vote, fixed, "pinned_voters", "one of the fixed voters")
        _within(problem, fixed, may_vote, "voters", "a site that may hold a voting replica")
        may_vote, must_vote = fixed, fixed.copy()
    else:
        count = whole(voters, "voters", minimum=1)

    witnesses = _witness_count(problem, count, given)
    quorum = _quorum(problem, count)
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
    holding = count - witnesses  # voters that hold a replica
    if (pinned := _count(must_vote)) > holding:
        raise _too_many_pins("pinned_voters", pinned, holding)
    pins = _count(must_hold)

    # Consequences of the counts alone are stated here, so that every method uses them.
    if pinned == holding:
        may_vote = must_vote.copy()
    elif _count(may_vote) == holding:
        must_vote = may_vote.copy()
        must_hold = must_hold | must_vote
    may_lead = may_lead & may_vote
    for array in (may_hold, must_hold, may_vote, must_vote, may_lead):
        array.flags.writeable = False  # problems that differ in the number of replicas share them
    may_witness = ~forbidden & ~non_voters if given is None else given
    return AllowedSites(
        may_hold=may_hold,
        must_hold=must_hold,
        may_vote=may_vote,
        must_vote=must_vote,
        may_lead=may_lead,
        fixed=fixed_count,
        voters=count,
        quorum=quorum,
        witnesses=witnesses,
        may_witness=may_witness if witnesses else None,
        must_witness=given,
        pins=pins,
        held=_count(must_hold),
        holders=_count(may_hold),
    )


def compile_rules(problem: Problem, known: AllowedSites, before: Rules | None = None) -> Rules:
    """Add the rules that the number of replicas decides; refuse contradictions.

    Parameters
    ----------
    problem
        The question.
    known
        What :func:`allowed_sites` says of it.
    before
        Rules of a problem that differs from it in the number of replicas alone, if there is one:
        equal parts are taken from there.

    Raises
    ------
    InputError
        For numbers that contradict each other or the sites.
    """
    size = len(problem.instance.sites)
    if known.fixed is not None:
        least = most = known.fixed
    else:
        least, most = _range(problem.replicas)
        if least > size:
            raise InputError(
                "more replicas than sites", field="replicas", value=least, expected=f"<= {size}"
            )
        most = min(most, size)
    holding = known.voters - known.witnesses
    if holding > most:
        raise InputError(
            "more voters than replicas",
            field="voters",
            value=known.voters,
            expected=f"<= {most + known.witnesses}",
        )
    if known.pins > most:
        raise _too_many_pins("pinned", known.pins, most)
    least = max(least, holding, known.pins)

    may_hold, must_hold = known.may_hold, known.must_hold
    may_vote, may_lead = known.may_vote, known.may_lead
    # what follows from the counts alone, again
    if known.held == most:
        may_hold = must_hold
        may_vote = may_vote & may_hold
        may_lead = may_lead & may_vote
    elif known.holders == least:
        must_hold = may_hold
    may_witness, able = known.may_witness, may_vote
    if may_witness is not None:
        may_witness = may_witness & ~must_hold
        able = may_vote | may_witness
    alike = before is not None and before.may_hold is may_hold and before.may_vote is may_vote
    if before is not None and alike and may_witness is None:
        return before.with_size(least, most, must_hold, may_lead)
    return Rules(
        replicas_min=least,
        replicas_max=most,
        voters=known.voters,
        quorum=known.quorum,
        may_hold=may_hold,
        must_hold=must_hold,
        may_vote=may_vote,
        must_vote=known.must_vote,
        may_lead=may_lead,
        groups=_groups(problem, known.voters, known.quorum, may_hold, able),
        budget=problem.budget,
        cost_weight=float(problem.cost_weight),
        witnesses=known.witnesses,
        may_witness=may_witness,
        must_witness=known.must_witness,
    )


def _too_many_pins(field: str, pins: int, limit: int) -> InputError:
    return InputError(
        "more pinned sites than asked for", field=field, value=pins, expected=f"<= {limit}"
    )


def _count(chosen: BoolArray) -> int:
    """Return the number of sites of a mask: a mask has few elements, so that this is quickest."""
    return int(np.count_nonzero(chosen))


def _groups(
    problem: Problem, voters: int, quorum: int, may_hold: np.ndarray, may_vote: np.ndarray
) -> tuple[GroupRule, ...]:
    implied = problem.objective.diversity(voters, quorum)
    given = problem.instance
    groups = [
        group_rule(problem.instance, rule, may_vote if rule.role == "voters" else may_hold)
        for rule in (*problem.diversity, *implied)
    ]
    if problem.survive is not None:
        given.labels(problem.survive, "survive")  # refuses an unknown level by this name
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
                Diversity(problem.survive, "voters", cap=voters - needed),
                may_vote,
                f"survive the loss of any one {problem.survive} "
                f"(at most {voters - needed} of {voters} voters in each)",
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


def voters_of_all(replicas: object, witnesses: object) -> object:
    """Return the voters, as a number or by name, when every replica and every witness votes."""
    named = isinstance(replicas, tuple) and all(isinstance(name, str) for name in replicas)
    if isinstance(replicas, range) or (isinstance(replicas, tuple) and not named):
        _range(replicas)  # a range that is none is refused as such
        raise InputError(
            "a range of replicas leaves the number of voters open",
            field="voters",
            expected="a number, or the sites by name",
        )
    if isinstance(replicas, int):
        whole(replicas, "replicas", minimum=1)
    held = witnesses if isinstance(witnesses, tuple) else ()
    more = witnesses if isinstance(witnesses, int) else len(held)
    if isinstance(replicas, tuple):
        return len(replicas) + more if more > len(held) else replicas + held
    return replicas + more if isinstance(replicas, int) else 1  # the rules refuse other replicas

"""Constraints on a plan, in the user's words (`SiteRule`) and on site indices (`Rules`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal, TypeGuard

import numpy as np

from placement.errors import InputError, UnsupportedError
from placement.model.instance import Instance
from placement.model.protocols import Protocol
from placement.support.checks import BoolArray, IntArray, text, whole

if TYPE_CHECKING:
    from placement.io.formats.document import Document
    from placement.problem import Problem

Role = Literal["voters", "replicas"]

NO_DOMAIN = "\0"
"""First letter of the domain of a site without a label, which no rule binds."""


def majority(voters: int) -> int:
    """Votes that make a majority of `voters`: ⌈(v + 1)/2⌉."""
    return voters // 2 + 1


@dataclass(frozen=True, slots=True, eq=False)
class SiteRule(ABC):
    """Rule on the sites of a role, as a user writes it.

    A new rule is a class here, with its name in :data:`RULES`, and a key of a question. Methods and
    the checker of certificates read its `groups` alone.
    """

    level: str  #: failure-domain level of the instance (``site`` always exists)
    role: Role = "voters"  #: whom the rule binds: "voters" or "replicas"

    def __post_init__(self) -> None:
        text(self.level, "level")
        if not isinstance(self.role, str) or self.role not in ("voters", "replicas"):
            raise InputError(
                "unknown role", field="role", value=self.role, expected="'voters' or 'replicas'"
            )

    @abstractmethod
    def words(self) -> str:
        """Return the rule in the user's words."""

    @abstractmethod
    def groups(self, instance: Instance, bound: BoolArray, why: str = "") -> tuple[GroupRule, ...]:
        """Return the rule on site indices; `why`: in other words than its own.

        Raises
        ------
        InputError
            For an unknown level, or when a site that the rule binds (`bound`) has no label there.
        """

    def texts(self) -> tuple[tuple[str, str], ...]:
        """Return the keys of a question that give the rule, each with its text ``PLACE=K:ROLE``."""
        raise UnsupportedError(f"files cannot hold the rule '{self.words()}'")

    def document(self) -> dict[str, object]:
        """Return the rule for a plan file, JSON-ready."""
        raise UnsupportedError(f"files cannot hold the rule '{self.words()}'")


@dataclass(frozen=True, slots=True)
class Diversity(SiteRule):
    """Spread voters or replicas over the failure domains of a level.

    Parameters
    ----------
    level
        A failure-domain level of the instance (``site`` always exists).
    role
        Whom the rule binds: "voters" or "replicas".
    cap
        At most so many per domain. When neither `cap` nor `min_domains` is given: 1, the paper's
        case (Sharov et al., section 4, "Failure diversity").
    min_domains
        At least so many distinct domains.
    domain, least
        At least so many (`least`) in the domain of this name; a separate rule, given without
        `cap` and `min_domains`.

    Examples
    --------
    >>> Diversity("continent", "replicas", domain="EU", least=1).words()
    'at least 1 of the replicas in the continent EU'
    """

    keys: ClassVar[tuple[str, ...]] = ("cap", "distinct", "require")

    cap: int | None = None
    min_domains: int | None = None
    domain: str | None = None
    least: int | None = None

    def __post_init__(self) -> None:
        SiteRule.__post_init__(self)
        counts = {"cap": self.cap, "min_domains": self.min_domains, "least": self.least}
        if self.domain is not None or self.least is not None:
            if self.domain is None or self.least is None:
                missing = "domain" if self.domain is None else "least"
                words = "a rule about one domain needs its name and a number"
                raise InputError(words, field=missing, expected="both domain and least")
            text(self.domain, "domain")
            for field in ("cap", "min_domains"):
                if counts[field] is not None:
                    words = "a rule about one domain has no other number"
                    expected = "a second rule"
                    raise InputError(words, field=field, value=counts[field], expected=expected)
        elif self.cap is None and self.min_domains is None:
            counts["cap"] = 1
        for field, value in counts.items():
            if value is not None:
                object.__setattr__(self, field, whole(value, field, minimum=1))

    def words(self) -> str:
        """Return the rule in the user's words."""
        words = []
        if self.cap is not None:
            words.append(f"at most {self.cap} of the {self.role} per {self.level}")
        if self.min_domains is not None:
            words.append(
                f"{self.role} in at least {self.min_domains} distinct {self.level} domains"
            )
        if self.domain is not None:
            words.append(
                f"at least {self.least} of the {self.role} in the {self.level} {self.domain}"
            )
        return " and ".join(words)

    def texts(self) -> tuple[tuple[str, str], ...]:
        """Return ``--cap``, ``--distinct`` and ``--require`` with their texts."""
        places = (self.level, self.level, f"{self.level}:{self.domain}")
        numbers = (self.cap, self.min_domains, self.least)
        return tuple(
            (key, f"{place}={number}:{self.role}")
            for key, place, number in zip(self.keys, places, numbers, strict=True)
            if number is not None
        )

    @classmethod
    def of_text(cls, key: str, place: str, number: int, role: Role | None) -> Diversity | None:
        """Return the rule of a text of :meth:`texts`, in parts; None: the place is none."""
        if key == "cap":
            return cls(place, role or "voters", cap=number)
        if key == "distinct":
            return cls(place, role or "voters", min_domains=number)
        level, _, domain = place.partition(":")
        if not (level and domain):
            return None
        return cls(level, role or "replicas", domain=domain, least=number)

    def document(self) -> dict[str, object]:
        """Return the rule for a plan file, JSON-ready."""
        document = asdict(self)
        if self.domain is None:
            del document["domain"], document["least"]
        return document

    @classmethod
    def from_document(cls, document: Document) -> Diversity:
        """Return the rule that :meth:`document` wrote.

        Raises
        ------
        InputError
            For a value that is missing or wrong.
        """
        role = document.text("role", "voters")
        if role not in ("voters", "replicas"):
            raise document.refuse("role", "unknown role", "'voters' or 'replicas'")
        return cls(
            document.text("level"),
            role="replicas" if role == "replicas" else "voters",
            **document.fields(cls, ("cap", "min_domains", "domain", "least")),
        )

    def groups(self, instance: Instance, bound: BoolArray, why: str = "") -> tuple[GroupRule, ...]:
        """Return the one rule on site indices."""
        level, why = self.level, why or self.words()
        labels = instance.labels(level)
        named = []
        for site, label in enumerate(labels) if None in labels else ():
            if label is None:
                if bound[site]:
                    words = f"site {instance.sites[site]!r} has no {level}, which {why} needs"
                    expected = f"a {level} for every site that may be chosen (or forbid the site)"
                    raise InputError(words, field=f"domains[{level!r}]", expected=expected)
                label = f"{NO_DOMAIN}{site}"  # an unbound site without a label is a separate domain
            named.append(label)
        given = tuple(named) or tuple(label for label in labels if label is not None)
        numbers, array = _numbered(given)
        domain = -1
        if self.domain is not None:
            if self.domain not in numbers:
                words = f"the level {level} has no such domain"
                expected = "one of " + ", ".join(sorted(n for n in numbers if n[0] != NO_DOMAIN))
                raise InputError(words, field="domain", value=self.domain, expected=expected)
            domain = numbers[self.domain]
        found = GroupRule(
            level, self.role, array, tuple(numbers), self.cap, self.min_domains, why, domain,
            self.least or 0, self,
        )  # fmt: skip
        return (found,)


RULES: Mapping[str, type[Diversity]] = {"diversity": Diversity}
"""Rules that questions and plan files hold, by the key ``rule`` of their documents."""


@dataclass(frozen=True, eq=False)
class GroupRule(SiteRule):
    """A rule on site indices; its level is for messages."""

    role: Role
    labels: IntArray  #: domain number of each site, shape (sites,), 0 … domains − 1
    names: tuple[str, ...]  #: domain names by number, for messages
    cap: int | None  #: at most so many per domain; None: no cap
    min_domains: int | None  #: at least so many distinct domains; None: no such rule
    why: str  #: the rule in the user's words, for messages
    #: `domain`, `least`: at least `least` sites in this domain; -1 and 0: no such rule
    domain: int = -1
    least: int = 0
    rule: SiteRule | None = None  #: that of the question or its objective; None: its `survive`

    def words(self) -> str:
        """Return the rule in the user's words."""
        return self.why

    def groups(self, instance: Instance, bound: BoolArray, why: str = "") -> tuple[GroupRule, ...]:
        """Return the rule itself, for an instance with the same sites."""
        return (self,)

    def satisfied(self, sites: Sequence[int]) -> bool:
        """Return whether a complete choice of sites obeys the rule."""
        held = np.bincount(self.labels[np.asarray(sites, dtype=np.intp)], minlength=len(self.names))
        if self.cap is not None and held.max() > self.cap:
            return False
        return int(self.missing(held)) <= 0

    @property
    def has_minimum(self) -> bool:
        """Return whether the rule asks for sites: some number of domains, or in a named domain."""
        return self.min_domains is not None or self.least > 0

    def missing(self, held: IntArray) -> IntArray:
        """Return how many more sites the minimum needs, where the domains hold so many.

        Zero or less when there are enough, and where the rule has no minimum. `held` has shape
        (..., domains), the result shape (...).
        """
        if self.min_domains is not None:
            return np.asarray(self.min_domains - (held > 0).sum(axis=-1))
        if self.least:
            return np.asarray(self.least - held[..., self.domain])
        return np.zeros(held.shape[:-1], dtype=np.intp)

    def missing_after(self, held: IntArray, able: BoolArray) -> IntArray:
        """Return :meth:`missing` after one more able site joins, shape (..., sites)."""
        if self.least:
            gain = able & (self.labels == self.domain)
        else:
            gain = able & (held == 0)[..., self.labels]
        return np.asarray(self.missing(held)[..., np.newaxis] - gain)

    def caps_only(self, role: Role | None = None) -> GroupRule:
        """Return the cap alone, for its or another role: it binds subsets of the sites too."""
        return replace(self, role=role or self.role, min_domains=None, domain=-1, least=0)

    def infeasible_reason(self, room: IntArray, most: int) -> str:
        """Return why no choice of at most `most` sites meets the minimum; empty: that is no reason.

        `room` is the number of allowed sites in each domain, shape (domains,).
        """
        if self.least:
            needed, able = self.least, int(room[self.domain])
            limit = f"only {able} sites there may be chosen"
        else:
            needed, able = self.min_domains or 0, int((room > 0).sum())
            limit = f"the level {self.level} has only {able} domains with allowed sites"
        if needed <= min(able, most):
            return ""
        if able >= needed:
            limit = f"only {most} {self.role} are asked for"
        return f"{self.why}: {limit}"


@dataclass(frozen=True, eq=False)
class Rules:
    """All constraints of a problem on site indices: what methods read."""

    #: `replicas_min`, `replicas_max`: inclusive range of |R|
    replicas_min: int
    replicas_max: int
    voters: int  #: v = |V|, witnesses included
    quorum: int  #: m, the votes a commit waits for
    #: `may_hold`, `must_hold`: sites that may / must hold a replica, boolean, shape (sites,);
    #: must_hold ⊆ may_hold
    may_hold: BoolArray
    must_hold: BoolArray
    #: `may_vote`, `must_vote`: the same for votes; may_vote ⊆ may_hold, must_vote ⊆ must_hold
    may_vote: BoolArray
    must_vote: BoolArray
    may_lead: BoolArray  #: candidate leaders; ⊆ may_vote
    groups: tuple[GroupRule, ...] = ()  #: diversity rules
    budget: float | None = None  #: largest cost allowed; None: no budget
    cost_weight: float = 0.0  #: weight of money in the objective: ms·operations per unit of cost
    witnesses: int = 0  #: w, the number of voters outside R, which hold no replica
    #: `may_witness`, `must_witness`: sites that may / must vote without a replica, boolean, shape
    #: (sites,); None: no site. No site of them must hold a replica.
    may_witness: BoolArray | None = None
    must_witness: BoolArray | None = None

    @property
    def data_voters(self) -> int:
        """Return |V ∩ R|, the number of voters that hold a replica."""
        return self.voters - self.witnesses

    @property
    def able_voters(self) -> BoolArray:
        """Return the sites that may vote, with a replica or as a witness, shape (sites,)."""
        return self.may_vote if self.may_witness is None else self.may_vote | self.may_witness

    def witness_sites(self, replicas: Sequence[int] | IntArray) -> IntArray:
        """Return the sites beside some replicas that may vote as witnesses, ascending."""
        if self.may_witness is None:
            return np.empty(0, dtype=np.intp)
        free = self.may_witness.copy()
        free[np.asarray(replicas, dtype=np.intp)] = False
        return np.nonzero(free)[0]

    def of(self, role: Role) -> tuple[GroupRule, ...]:
        """Return the diversity rules of one role."""
        return tuple(group for group in self.groups if group.role == role)

    def obeyed(self, role: Role, chosen: IntArray) -> BoolArray:
        """Return whether each of many choices of sites obeys the diversity rules of a role.

        `chosen` has shape (choices, sites chosen); O(choices · (sites chosen + domains)).
        """
        good = np.ones(len(chosen), dtype=bool)
        rows = np.arange(len(chosen)).reshape(-1, 1)
        for group in self.of(role):
            held = np.zeros((len(chosen), len(group.names)), dtype=np.intp)
            np.add.at(held, (rows, group.labels[chosen]), 1)
            if group.cap is not None:
                good &= held.max(axis=1) <= group.cap
            good &= group.missing(held) <= 0
        return good

    @cached_property
    def nested_voter_caps(self) -> bool:
        """Return whether all rules of voters are caps on nested levels: greedy is exact."""
        return self._nested("voters")

    @cached_property
    def nested_replica_caps(self) -> bool:
        """Return whether the replicas' rules are caps on nested levels only."""
        return self._nested("replicas")

    def with_size(self, least: int, most: int, must_hold: BoolArray, may_lead: BoolArray) -> Rules:
        """Return these rules for another range of |R|, with what follows from it.

        Quick: whether levels are nested depends on neither, and stays known.
        """
        copy = object.__new__(Rules)
        copy.__dict__.update(
            self.__dict__,
            replicas_min=least,
            replicas_max=most,
            must_hold=must_hold,
            may_lead=may_lead,
        )
        return copy

    def _nested(self, role: Role) -> bool:
        groups = self.of(role)
        if any(group.has_minimum for group in groups):
            return False
        allowed = self.able_voters if role == "voters" else self.may_hold
        return laminar([group.labels for group in groups], allowed)


def laminar(labels: Sequence[IntArray], allowed: BoolArray) -> bool:
    """Return whether the domains of all levels, on `allowed` sites, are nested or disjoint."""
    if len(labels) < 2:
        return True
    blocks = {
        frozenset(np.nonzero(allowed & (level == label))[0].tolist())
        for level in labels
        for label in np.unique(level)
    }
    return all(
        not (one & other) or one <= other or other <= one for one in blocks for other in blocks
    )


@lru_cache(maxsize=64)  # rules name few levels, and sweeps and lease holders ask for them again
def _numbered(labels: tuple[str, ...]) -> tuple[dict[str, int], IntArray]:
    """Return the number of each label in the order of their sites, and that of every site."""
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    array = np.array([numbers[label] for label in labels], dtype=np.intp)
    array.flags.writeable = False
    return numbers, array


def mask(size: int, indices: Iterable[int]) -> BoolArray:
    """Boolean array of `size` that is true at `indices`."""
    result = np.zeros(size, dtype=bool)
    chosen = list(indices)
    if chosen:
        result[chosen] = True
    return result


# Rules on site indices from a question: masks and numbers, refused if contradictory


def _range(value: object) -> tuple[int, int]:
    """Inclusive range of |R| from a number, a pair or a Python range."""

    def no_range(expected: str) -> InputError:
        return InputError("not a possible range", field="replicas", value=value, expected=expected)

    low, high = value, value
    if isinstance(value, range):
        if len(value) == 0 or abs(value.step) != 1:
            raise no_range("a non-empty range of step 1")
        low, high = min(value), max(value)
    elif isinstance(value, tuple):
        if len(value) != 2:
            raise no_range("(least, most), or names of sites")
        low, high = value
    least, most = whole(low, "replicas", minimum=1), whole(high, "replicas", minimum=1)
    if least > most:
        raise no_range("least <= most")
    return least, most


def by_name(value: object) -> TypeGuard[tuple[str, ...]]:
    """Return whether replicas, voters or witnesses are given by name."""
    return isinstance(value, tuple) and any(isinstance(item, str) for item in value)


def is_count(value: object) -> TypeGuard[int | tuple[int, int] | range]:
    """Return whether replicas are given as a number or a range of numbers, not by name."""
    if isinstance(value, tuple):
        return not by_name(value)
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
        words = "the quorum differs from that of the protocol"
        expected = f"{of_protocol}, as in {problem.protocol}, or no quorum"
        raise InputError(words, field="quorum", value=quorum, expected=expected)
    return quorum


def _named_witnesses(problem: Problem, forbidden: BoolArray) -> BoolArray:
    """Return the witnesses by name as a mask, refusing sites that hold data or may not vote."""
    instance = problem.instance
    assert by_name(problem.witnesses)
    given = mask(len(forbidden), instance.site_indices(problem.witnesses, "witnesses"))
    fixed = problem.replicas if by_name(problem.replicas) else ()
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
            words = "not a number of witnesses, and no names"
            expected = "1 or ['a', 'b', …]"
            raise InputError(words, field="witnesses", value=problem.witnesses, expected=expected)
        count = whole(problem.witnesses, "witnesses")
        if count and by_name(problem.voters):
            words = "the voters are given by name, and not which of them are witnesses"
            expected = "the witnesses by name, or a number of voters"
            raise InputError(words, field="witnesses", value=count, expected=expected)
    else:
        count = _count(given)
    if count >= voters:
        words = "no voter is left that holds a replica and leads"
        expected = f"<= {voters - 1}, fewer than voters"
        raise InputError(words, field="witnesses", value=count, expected=expected)
    return count


def allowed_sites(problem: Problem) -> tuple[Rules, int]:
    """Return the rules about single sites, and the number of pins; refuse contradictions.

    They hold for any number of replicas, and have no rules about domains. The masks are read-only.
    Pins are the sites that must hold a replica but for voters that have no choice. What follows
    from the number of replicas is not in `must_hold` yet, and still in `may_witness`. InputError
    for an unknown site, and for names that contradict each other.
    """
    instance = problem.instance
    size = len(instance.sites)
    forbidden = mask(size, instance.site_indices(problem.forbidden, "forbidden"))
    may_hold = ~forbidden
    must_hold = mask(size, instance.site_indices(problem.pinned, "pinned"))

    replicas, voters = problem.replicas, problem.voters
    if isinstance(replicas, str) or isinstance(voters, str):
        field = "replicas" if isinstance(replicas, str) else "voters"
        words = "one string where a number or a list of names was expected"
        expected = "5 or ['a', 'b', …]"
        raise InputError(words, field=field, value=getattr(problem, field), expected=expected)
    if by_name(replicas):
        fixed = mask(size, instance.site_indices(replicas, "replicas"))
        _within(problem, must_hold, fixed, "pinned", "one of the fixed replicas")
        _within(problem, fixed, may_hold, "replicas", "no forbidden site")
        may_hold, must_hold = fixed, fixed.copy()

    non_voters = mask(size, instance.site_indices(problem.non_voters, "non_voters"))
    given = None if not by_name(problem.witnesses) else _named_witnesses(problem, forbidden)
    if given is not None:
        may_hold = may_hold & ~given
    may_vote = may_hold & ~non_voters
    must_vote = mask(size, instance.site_indices(problem.pinned_voters, "pinned_voters"))
    if by_name(voters):
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
        words = "a quorum larger than the number of voters"
        raise InputError(words, field="quorum", value=quorum, expected=f"<= {count}")

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
    rules = Rules(
        replicas_min=1,
        replicas_max=size,
        voters=count,
        quorum=quorum,
        may_hold=may_hold,
        must_hold=must_hold,
        may_vote=may_vote,
        must_vote=must_vote,
        may_lead=may_lead,
        budget=problem.budget,
        cost_weight=float(problem.cost_weight),
        witnesses=witnesses,
        may_witness=may_witness if witnesses else None,
        must_witness=given,
    )
    return rules, pins


def compile_rules(
    problem: Problem, allowed: tuple[Rules, int], before: Rules | None = None
) -> Rules:
    """Add the rules that the number of replicas decides to what :func:`allowed_sites` says.

    `before` are the rules of a problem that differs in the number of replicas alone: equal parts
    are taken from there. InputError for numbers that contradict each other or the sites.
    """
    size = len(problem.instance.sites)
    known, pins = allowed
    holders = _count(known.may_hold)
    if by_name(problem.replicas):
        least = most = holders
    else:
        least, most = _range(problem.replicas)
        if least > size:
            raise InputError(
                "more replicas than sites", field="replicas", value=least, expected=f"<= {size}"
            )
        most = min(most, size)
    holding = known.data_voters
    if holding > most:
        words = "more voters than replicas"
        expected = f"<= {most + known.witnesses}"
        raise InputError(words, field="voters", value=known.voters, expected=expected)
    if pins > most:
        raise _too_many_pins("pinned", pins, most)
    least = max(least, holding, pins)

    may_hold, must_hold = known.may_hold, known.must_hold
    may_vote, may_lead = known.may_vote, known.may_lead
    # what follows from the counts alone, again
    if _count(known.must_hold) == most:
        may_hold = must_hold
        may_vote = may_vote & may_hold
        may_lead = may_lead & may_vote
    elif holders == least:
        must_hold = may_hold
    may_witness, able = known.may_witness, may_vote
    if may_witness is not None:
        may_witness = may_witness & ~must_hold
        able = may_vote | may_witness
    alike = before is not None and before.may_hold is may_hold and before.may_vote is may_vote
    if before is not None and alike and may_witness is None:
        return before.with_size(least, most, must_hold, may_lead)
    return replace(
        known,
        replicas_min=least,
        replicas_max=most,
        may_hold=may_hold,
        must_hold=must_hold,
        may_vote=may_vote,
        may_lead=may_lead,
        groups=_groups(problem, known.voters, known.quorum, may_hold, able),
        may_witness=may_witness,
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
    given = problem.instance
    groups = [
        group if group.rule is rule else replace(group, rule=rule)
        for rule in (*problem.diversity, *problem.objective.diversity(given, voters, quorum))
        for group in rule.groups(given, may_vote if rule.role == "voters" else may_hold)
    ]
    if (level := problem.survive) is not None:
        given.labels(level, "survive")  # refuses an unknown level by this name
        spare = voters - max(quorum, voters - quorum + 1)
        if spare == 0:
            words = f"with {voters} voters and quorum {quorum} no voter may be lost, so no "
            expected = "more voters (3 or more with majorities)"
            raise InputError(
                f"{words}{level} can be survived", field="survive", value=level, expected=expected
            )
        why = f"survive the loss of any one {level} (at most {spare} of {voters} voters in each)"
        lost = Diversity(level, "voters", cap=spare).groups(given, may_vote, why)
        groups += [replace(group, rule=None) for group in lost]
    return tuple(groups)


def _within(
    problem: Problem, inner: np.ndarray, outer: np.ndarray, field: str, expected: str
) -> None:
    stray = inner & ~outer
    if stray.any():
        words = "contradicts another constraint"
        raise InputError(
            words, field=field, value=problem.instance.sites[int(stray.argmax())], expected=expected
        )


def voters_of_all(replicas: object, witnesses: object) -> object:
    """Return the voters, as a number or by name, when every replica and every witness votes."""
    named = isinstance(replicas, tuple) and all(isinstance(name, str) for name in replicas)
    if isinstance(replicas, range) or (isinstance(replicas, tuple) and not named):
        _range(replicas)  # a range that is none is refused as such
        words = "a range of replicas leaves the number of voters open"
        raise InputError(words, field="voters", expected="a number, or the sites by name")
    if isinstance(replicas, int):
        whole(replicas, "replicas", minimum=1)
    held = witnesses if isinstance(witnesses, tuple) else ()
    more = witnesses if isinstance(witnesses, int) else len(held)
    if isinstance(replicas, tuple):
        return len(replicas) + more if more > len(held) else replicas + held
    return replicas + more if isinstance(replicas, int) else 1  # the rules refuse other replicas

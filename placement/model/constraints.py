"""Constraints on a plan, in the user's words (`Diversity`) and on site indices (`Rules`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from placement.errors import InputError
from placement.model.instance import Instance
from placement.support.checks import BoolArray, IntArray, text, whole

if TYPE_CHECKING:
    from placement.io.formats.document import Document

__all__ = ["Diversity", "GroupRule", "Role", "Rules", "laminar", "majority"]

Role = Literal["voters", "replicas"]


def majority(voters: int) -> int:
    """Votes that make a majority of `voters`: ⌈(v + 1)/2⌉.

    Examples
    --------
    >>> [majority(v) for v in (1, 2, 3, 4, 5, 6, 7)]
    [1, 2, 2, 3, 3, 4, 4]
    """
    return voters // 2 + 1


@dataclass(frozen=True, slots=True)
class Diversity:
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

    level: str
    role: Role = "voters"
    cap: int | None = None
    min_domains: int | None = None
    domain: str | None = None
    least: int | None = None

    def __post_init__(self) -> None:
        text(self.level, "level")
        if not isinstance(self.role, str) or self.role not in ("voters", "replicas"):
            raise InputError(
                "unknown role", field="role", value=self.role, expected="'voters' or 'replicas'"
            )
        counts = {"cap": self.cap, "min_domains": self.min_domains, "least": self.least}
        if self.domain is not None or self.least is not None:
            if self.domain is None or self.least is None:
                missing = "domain" if self.domain is None else "least"
                raise InputError(
                    "a rule about one domain needs its name and a number",
                    field=missing,
                    expected="both domain and least",
                )
            text(self.domain, "domain")
            for field in ("cap", "min_domains"):
                if counts[field] is not None:
                    raise InputError(
                        "a rule about one domain has no other number",
                        field=field,
                        value=counts[field],
                        expected="a second rule",
                    )
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

    def document(self) -> dict[str, object]:
        """Return the rule for a plan file, JSON-ready."""
        document: dict[str, object] = {
            "level": self.level,
            "role": self.role,
            "cap": self.cap,
            "min_domains": self.min_domains,
        }
        if self.domain is not None:
            document |= {"domain": self.domain, "least": self.least}
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
            cap=document.whole("cap") if document.has("cap") else None,
            min_domains=document.whole("min_domains") if document.has("min_domains") else None,
            domain=document.text("domain") if document.has("domain") else None,
            least=document.whole("least") if document.has("least") else None,
        )


@dataclass(frozen=True, eq=False)
class GroupRule:
    """A `Diversity` on site indices.

    Attributes
    ----------
    role
        "voters" or "replicas".
    level
        The level it came from, for messages.
    labels
        Domain number of each site, shape (sites,), 0 … domains − 1.
    names
        Domain names by number, for messages.
    cap
        At most so many per domain; None: no cap.
    min_domains
        At least so many distinct domains; None: no such rule.
    why
        The rule in the user's words, for messages.
    domain, least
        At least `least` sites in this domain; -1 and 0: no such rule.
    """

    role: Role
    level: str
    labels: IntArray
    names: tuple[str, ...]
    cap: int | None
    min_domains: int | None
    why: str
    domain: int = -1
    least: int = 0

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
        """Return :meth:`missing` after one more site joins, for each site that could.

        Parameters
        ----------
        held
            Sites in each domain, shape (..., domains).
        able
            Sites that the rule counts, shape (sites,).

        Returns
        -------
        ndarray
            Shape (..., sites).
        """
        if self.least:
            gain = able & (self.labels == self.domain)
        else:
            gain = able & (held == 0)[..., self.labels]
        return np.asarray(self.missing(held)[..., np.newaxis] - gain)

    def caps_only(self, role: Role | None = None) -> GroupRule:
        """Return the cap of the rule alone; `role`: for another role than its own.

        A cap on replicas binds every subset of them, as the voters are; a minimum does not.
        """
        return replace(self, role=role or self.role, min_domains=None, domain=-1, least=0)

    def infeasible_reason(self, room: IntArray, most: int) -> str:
        """Return why no choice of at most `most` sites meets the minimum; empty: that is no reason.

        `room` is the number of allowed sites in each domain, shape (domains,).
        """
        if self.least > min(int(room[self.domain]), most):
            limit = (
                f"only {int(room[self.domain])} sites there may be chosen"
                if room[self.domain] < self.least
                else f"only {most} {self.role} are asked for"
            )
            return f"{self.why}: {limit}"
        domains = int((room > 0).sum())
        if self.min_domains is None or self.min_domains <= min(domains, most):
            return ""
        limit = (
            f"the level {self.level} has only {domains} domains with allowed sites"
            if domains < self.min_domains
            else f"only {most} {self.role} are asked for"
        )
        return f"{self.why}: {limit}"


@dataclass(frozen=True, eq=False)
class Rules:
    """All constraints of a problem on site indices: what methods read.

    Attributes
    ----------
    replicas_min, replicas_max
        Inclusive range of |R|.
    voters
        v = |V|, witnesses included.
    quorum
        m, the votes a commit waits for.
    may_hold, must_hold
        Sites that may / must hold a replica, boolean, shape (sites,); must_hold ⊆ may_hold.
    may_vote, must_vote
        The same for votes; may_vote ⊆ may_hold, must_vote ⊆ must_hold.
    may_lead
        Candidate leaders; ⊆ may_vote.
    groups
        Diversity rules.
    budget
        Largest cost allowed; None: no budget.
    cost_weight
        Weight of money in the objective: ms·operations per unit of cost.
    witnesses
        w, the number of voters outside R, which hold no replica.
    may_witness, must_witness
        Sites that may / must vote without a replica, boolean, shape (sites,); None: no site.
        No site of them must hold a replica.
    """

    replicas_min: int
    replicas_max: int
    voters: int
    quorum: int
    may_hold: BoolArray
    must_hold: BoolArray
    may_vote: BoolArray
    must_vote: BoolArray
    may_lead: BoolArray
    groups: tuple[GroupRule, ...] = ()
    budget: float | None = None
    cost_weight: float = 0.0
    witnesses: int = 0
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


def group_rule(instance: Instance, rule: Diversity, bound: BoolArray, why: str = "") -> GroupRule:
    """Put a diversity rule on site indices; `why`: in other words than its own.

    Raises
    ------
    InputError
        For an unknown level, or when a site that the rule binds (`bound`) has no label there.
    """
    level, why = rule.level, why or rule.words()
    labels = instance.labels(level)
    named = []
    for site, label in enumerate(labels) if None in labels else ():
        if label is None:
            if bound[site]:
                raise InputError(
                    f"site {instance.sites[site]!r} has no {level}, which {why} needs",
                    field=f"domains[{level!r}]",
                    expected=f"a {level} for every site that may be chosen (or forbid the site)",
                )
            label = f"\0{site}"  # an unbound site without a label is a separate domain
        named.append(label)
    given = tuple(named) or tuple(label for label in labels if label is not None)
    numbers, array = _numbered(given)
    domain = -1
    if rule.domain is not None:
        if rule.domain not in numbers:
            raise InputError(
                f"the level {level} has no such domain",
                field="domain",
                value=rule.domain,
                expected="one of " + ", ".join(sorted(n for n in numbers if n[0] != "\0")),
            )
        domain = numbers[rule.domain]
    return GroupRule(
        rule.role, level, array, tuple(numbers), rule.cap, rule.min_domains, why, domain,
        rule.least or 0,
    )  # fmt: skip


def mask(size: int, indices: Iterable[int]) -> BoolArray:
    """Boolean array of `size` that is true at `indices`."""
    result = np.zeros(size, dtype=bool)
    chosen = list(indices)
    if chosen:
        result[chosen] = True
    return result

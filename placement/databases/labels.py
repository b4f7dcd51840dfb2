"""Constraints on labels of nodes, and the sites that they allow (CockroachDB, TiDB, PD).

The texts have a sign, a key and a value, as in ``+region=us-east1``. One key has the names of
places. Another key is looked up in the table of localities, in the column of that name; without
such a column it says nothing on places, and a finding says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from placement.databases.deployment import Deployment, OpenReplicas, OpenRole
from placement.databases.findings import Findings
from placement.databases.localities import Localities
from placement.errors import InputError, refused
from placement.languages import YamlValue


@dataclass(frozen=True, slots=True)
class LabelTest:
    """A condition on the node of a replica: its value of a key is, or is not, one of some."""

    required: bool
    key: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        inner = "|".join(self.values)
        return ("+" if self.required else "-") + (f"{self.key}={inner}" if self.key else inner)


@dataclass(slots=True)
class PlacedReplicas:
    """Replicas of one role: by site, and replicas with several possible sites."""

    held: dict[str, int] = field(default_factory=dict)
    pools: list[tuple[tuple[str, ...], int]] = field(default_factory=list)

    @property
    def free(self) -> int:
        """Return the number of replicas without one site."""
        return sum(count for _, count in self.pools)

    @property
    def total(self) -> int:
        """Return the number of replicas."""
        return sum(self.held.values()) + self.free

    def add(self, sites: tuple[str, ...] | None, count: int) -> None:
        """Add replicas that may be at some sites; None: at all of them."""
        if count > 0 and sites is not None and len(sites) == 1:
            self.held[sites[0]] = self.held.get(sites[0], 0) + count
        elif count > 0:
            self.pools.append((sites or (), count))

    def open(self, role: OpenRole) -> tuple[OpenReplicas, ...]:
        """Return the replicas of which several sites are possible, but not all."""
        return tuple(OpenReplicas(sites, count, role) for sites, count in self.pools if sites)


@dataclass(frozen=True, slots=True)
class ConstraintClause:
    """Constraints of one field: for all replicas, or for some numbers of them."""

    common: tuple[LabelTest, ...] = ()
    counted: tuple[tuple[tuple[LabelTest, ...], int], ...] = ()

    @property
    def each(self) -> tuple[LabelTest, ...]:
        """Return all constraints."""
        return (*self.common, *(label for labels, _ in self.counted for label in labels))


@dataclass(slots=True)
class Labels:
    """Reader of the constraints of one configuration, and what there is to say of them."""

    source: str  #: the file, for messages
    subject: str  #: what the constraints are of, for messages
    key: str  #: of the label whose values are places: "region" unless told otherwise
    localities: Localities  #: sites by their names, with further labels in columns
    bare: bool = False  #: whether a constraint may have no key
    #: whether keys are compared without case, as PD does: tikv/pd 7179657d (April 2024),
    #: pkg/core/store.go, GetLabelValue. Values are compared with case there.
    folds: bool = False
    _said: dict[str, dict[str, None]] = field(default_factory=dict)

    def _say(self, rule: str, words: str) -> None:
        self._said.setdefault(rule, {})[words] = None

    def refuse(self, name: str, message: str, value: object, expected: str) -> InputError:
        """Return the error for a value of a field."""
        return refused(self.source, name, message, value, expected)

    def folded(self, key: str) -> str:
        """Return a key as the table writes it, where keys are compared without case."""
        if not self.folds:
            return key
        known = (self.key, *(name for row in self.localities.rows for name in sorted(row.facts)))
        return next((one for one in known if one.lower() == key.lower()), key.lower())

    def conjunction(self, texts: Iterable[YamlValue], name: str) -> tuple[LabelTest, ...]:
        """Return the constraints of texts: sign, key and value each. Words with # are none."""
        found = []
        for text in texts:
            word = text.strip() if isinstance(text, str) else ""
            if word.startswith("#"):
                continue
            key, equals, value = word[1:].partition("=")
            if not equals:
                key, value = "", key
            bad = word[:1] not in ("+", "-") or not value.strip() or "=" in value
            if bad or not (key.strip() or self.bare):
                raise self.refuse(name, "not a constraint", text, "+key=value or -key=value")
            found.append(LabelTest(word[0] == "+", self.folded(key.strip()), (value.strip(),)))
        return tuple(found)

    def clause(self, value: YamlValue | None, name: str) -> ConstraintClause:
        """Return the constraints of a field: a list, or a table with numbers, also those <= 0."""
        if isinstance(value, str):
            hint = "a list [a, b] or a table {a: 1, b: 2}"
            raise self.refuse(name, "not constraints", value, hint)
        if not isinstance(value, dict):
            return ConstraintClause(self.conjunction(value or [], name))
        counted = []
        for words, number in value.items():
            text = number if isinstance(number, str) else ""
            digits = text.removeprefix("-")
            if not digits.isdecimal() or len(digits) > 9:
                hint = f"a whole number for {words!r}"
                raise self.refuse(name, "not a number of replicas", number, hint)
            counted.append((self.conjunction(words.split(","), name), int(text)))
        return ConstraintClause(counted=tuple(counted))

    def sites(
        self, labels: Sequence[LabelTest], name: str, *, leads: bool = False
    ) -> tuple[str, ...] | None:
        """Return the sites that a conjunction allows; None where it does not speak of places.

        A conjunction that no node meets becomes a finding, and allows all sites. `leads`: it is
        about leaders alone, and forbids no replica.
        """
        allowed, told = {*self.localities.sites}, False
        words = ",".join(map(str, labels))
        for label in sorted(labels, key=lambda label: label.key != self.key):
            known = self._with(label, name)
            if label.key == self.key and not label.required and not leads:
                self._say("forbidden-places", str(label))
            if known is None:
                self._say("other-labels", str(label))
            elif label.key != self.key and told and not allowed & known:
                self._say("table-differs", words)
            else:
                told, allowed = True, allowed & known
        if not allowed or _clash(labels):
            self._say("contradiction", words)
            return None
        everywhere = len(allowed) == len(self.localities.sites)
        return tuple(sorted(allowed)) if told and not everywhere else None

    def _with(self, label: LabelTest, name: str) -> set[str] | None:
        """Return the sites that a label allows; None where the table does not know its key."""
        rows = [row for row in self.localities.rows if label.key in row.facts]
        if label.key == self.key:
            found = {self.localities.site_of(one, self.source, name) for one in label.values}
        elif rows:
            found = {row.site for row in rows if row.facts[label.key] in label.values}
        else:
            return None
        return found if label.required else {*self.localities.sites} - found

    def placed(
        self, clause: ConstraintClause, total: int, name: str, common: Sequence[LabelTest] = ()
    ) -> PlacedReplicas:
        """Return `total` replicas by place; `common` holds for each of them too."""
        found = PlacedReplicas()
        for labels, count in clause.counted:
            found.add(self.sites((*labels, *common), name), count)
        rest = self.sites((*clause.common, *common), name)
        if rest is not None or not clause.counted:
            found.add(rest, total - found.total)
        return found

    def findings(self) -> Findings:
        """Return what there is to say of all constraints that were read."""
        found = Findings("labels", self.subject)
        for rule in found.rules:
            if rule in self._said:
                found.add(rule, words="; ".join(self._said[rule]), key=self.key)
        return found


def _clash(labels: Sequence[LabelTest]) -> bool:
    """Return whether no value of some key can be all that the constraints ask for."""
    for key in {label.key for label in labels} - {""}:
        here = [label for label in labels if label.key == key]
        wanted = [{*label.values} for label in here if label.required]
        barred = {value for label in here if not label.required for value in label.values}
        if wanted and not set.intersection(*wanted) - barred:
            return True
    return False


@dataclass(frozen=True, slots=True)
class RoleRule:
    """Replicas of one role with their constraints, as PD takes them and TiDB makes them."""

    role: str  #: "leader", "voter", "follower" or "learner"
    count: int
    labels: Sequence[LabelTest]
    field: str  #: the field that says it, for messages
    special: str = ""  #: a role of ROLES, or empty


def deployment_of_rules(
    system: str, rules: Iterable[RoleRule], labels: Labels, *, name: str = "", kept: str = ""
) -> Deployment:
    """Return the deployment of rules that add up; a rule for the leader names the first leader."""
    voting, others, leading = PlacedReplicas(), PlacedReplicas(), PlacedReplicas()
    roles: dict[str, Counter[str]] = {}
    for rule in rules:
        sites = labels.sites(rule.labels, rule.field)
        (others if rule.role == "learner" else voting).add(sites, rule.count)
        if rule.role == "leader":
            leading.add(sites, 1)
        if rule.special and rule.count > 0 and sites is not None and len(sites) == 1:
            roles.setdefault(sites[0], Counter())[rule.special] += rule.count
    deployment = Deployment.of(
        system,
        voting.held,
        others.held,
        leaders=tuple(leading.held),
        free_voters=voting.free,
        free_non_voters=others.free,
        open=(*voting.open("voter"), *others.open("non-voter")),
        name=name,
        kept=kept,
    )
    held = (replace(one, special=tuple(roles.get(one.site, {}).items())) for one in deployment.held)
    return replace(deployment, held=tuple(held))

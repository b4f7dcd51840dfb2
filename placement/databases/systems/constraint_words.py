"""Constraints on labels of nodes, and the sites that they allow (CockroachDB, TiDB, PD).

The texts have a sign, a key and a value, as in ``+region=us-east1``. One key has the names of
places. Another key is looked up in the table of localities, in the column of that name; without
such a column it says nothing on places, and a finding says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from placement.databases.deployment import Deployment, OpenReplicas, OpenRole
from placement.databases.findings import Finding
from placement.databases.localities import Localities
from placement.errors import InputError
from placement.languages.yaml_texts import YamlValue

__all__ = ["ConstraintClause", "LabelTest", "Labels", "PlacedReplicas", "counts_of", "with_roles"]


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
    """Replicas of one role: by site, and those of which several sites are possible."""

    held: dict[str, int] = field(default_factory=dict)
    pools: list[tuple[tuple[str, ...], int]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Return the number of replicas."""
        return sum(self.held.values()) + sum(count for _, count in self.pools)

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
    def conjunctions(self) -> tuple[tuple[LabelTest, ...], ...]:
        """Return all conjunctions."""
        return (self.common, *(labels for labels, _ in self.counted))


@dataclass(slots=True)
class Labels:
    """Reader of the constraints of one configuration, and what there is to say of them.

    Attributes
    ----------
    source, subject
        File, and what the constraints are of, for messages.
    key
        Key of the label whose values are places: "region" unless told otherwise.
    localities
        Sites by their names, with further labels in columns.
    bare
        Whether a constraint may have no key.
    folds
        Whether keys are compared without case, as PD does: tikv/pd 7179657d (April 2024),
        pkg/core/store.go, GetLabelValue. Values are compared with case there.
    """

    source: str
    subject: str
    key: str
    localities: Localities
    bare: bool = False
    folds: bool = False
    _others: dict[str, None] = field(default_factory=dict)
    _never: dict[str, None] = field(default_factory=dict)
    _clashes: dict[str, None] = field(default_factory=dict)
    _differ: dict[str, None] = field(default_factory=dict)

    def refuse(self, name: str, message: str, value: object, expected: str) -> InputError:
        """Return the error for a value of a field."""
        return InputError(message, source=self.source, field=name, value=value, expected=expected)

    def conjunction(self, texts: Iterable[YamlValue], name: str) -> tuple[LabelTest, ...]:
        """Return the constraints of texts; words with # are none.

        Raises
        ------
        InputError
            For a text without sign, without key, or with more than one equals sign.
        """
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

    def folded(self, key: str) -> str:
        """Return a key as the table writes it, where keys are compared without case."""
        known = {name for row in self.localities.rows for name in row.facts} if self.folds else ()
        same = (one for one in (self.key, *sorted(known)) if one.lower() == key.lower())
        return next(same, key.lower()) if self.folds else key

    def clause(self, value: YamlValue | None, name: str) -> ConstraintClause:
        """Return the constraints of a field: a list, or a table with numbers."""
        if isinstance(value, str):
            raise self.refuse(
                name, "not constraints", value, "a list [a, b] or a table {a: 1, b: 2}"
            )
        if isinstance(value, dict):
            counts = counts_of(value, self, name)
            each = ((self.conjunction(text.split(","), name), n) for text, n in counts.items())
            return ConstraintClause(counted=tuple(each))
        return ConstraintClause(self.conjunction(value or [], name))

    def sites(
        self, labels: Sequence[LabelTest], name: str, *, leads: bool = False
    ) -> tuple[str, ...] | None:
        """Return the sites that a conjunction allows; None where it does not speak of places.

        A conjunction that no node meets becomes a finding, and allows all sites. `leads`: it is
        about leaders alone, and forbids no replica.
        """
        allowed = set(self.localities.sites)
        told = False
        words = ",".join(map(str, labels))
        for label in labels:
            if label.key != self.key:
                continue
            told = True
            named = {self.localities.site_of(one, self.source, name) for one in label.values}
            allowed = allowed & named if label.required else allowed - named
            if not label.required and not leads:
                self._never[str(label)] = None
        for label in labels:
            if label.key == self.key:
                continue
            known = self._with(label)
            if known is None:
                self._others[str(label)] = None
            elif told and not allowed & known:
                self._differ[words] = None
            else:
                told, allowed = True, allowed & known
        if not allowed or self._clash(labels):
            self._clashes[words] = None
            return None
        return (
            tuple(sorted(allowed)) if told and len(allowed) < len(self.localities.sites) else None
        )

    def _with(self, label: LabelTest) -> set[str] | None:
        """Return the sites with a label by the table of localities; None where it has none."""
        rows = [row for row in self.localities.rows if label.key in row.facts]
        if not rows:
            return None
        found = {row.site for row in rows if row.facts[label.key] in label.values}
        return found if label.required else set(self.localities.sites) - found

    def _clash(self, labels: Sequence[LabelTest]) -> bool:
        """Return whether no value of some key can be all that the constraints ask for."""
        for key in {label.key for label in labels} - {""}:
            here = [label for label in labels if label.key == key]
            wanted = [set(label.values) for label in here if label.required]
            barred = {value for label in here if not label.required for value in label.values}
            if wanted and not set.intersection(*wanted) - barred:
                return True
        return False

    def placed(
        self, clause: ConstraintClause, total: int, name: str, common: Sequence[LabelTest] = ()
    ) -> PlacedReplicas:
        """Return `total` replicas by place; `common` holds for each of them too."""
        found = PlacedReplicas()
        if clause.counted:
            for labels, count in clause.counted:
                found.add(self.sites((*labels, *common), name), count)
            common_sites = self.sites(common, name)
            if common_sites is not None:
                found.add(common_sites, total - found.total)
            return found
        found.add(self.sites((*clause.common, *common), name), total)
        return found

    def findings(self) -> list[Finding]:
        """Return what there is to say of all constraints that were read."""
        found = []
        for severity, rule, words, text, remedy in (
            ("error", "contradiction", self._clashes, "no node can meet", "take one of them out"),
            (
                "warning",
                "table-differs",
                self._differ,
                "the table of localities gives other labels to the site of",
                "correct the constraint or the table",
            ),
            (
                "note",
                "forbidden-places",
                self._never,
                "forbids",
                "give --forbid these sites too",
            ),
            (
                "note",
                "other-labels",
                self._others,
                "constraints on other labels than places, which lint does not check:",
                f"add a column with the label to the table of localities, or choose the key of "
                f"places (now {self.key!r}) with --set locality_key=",
            ),
        ):
            if words:
                listed = "; ".join(words)
                found.append(Finding(rule, severity, f"{self.subject}: {text} {listed}", remedy))  # type: ignore[arg-type]  # a literal
        return found


def with_roles(deployment: Deployment, roles: Mapping[str, Mapping[str, int]]) -> Deployment:
    """Return a deployment whose replicas have special roles, by site and role."""
    held = (replace(one, special=tuple(roles.get(one.site, {}).items())) for one in deployment.held)
    return replace(deployment, held=tuple(held))


def counts_of(value: dict[str, YamlValue], labels: Labels, name: str) -> dict[str, int]:
    """Return the numbers of a table of constraints, as they stand: also those <= 0."""
    found = {}
    for key, number in value.items():
        text = number if isinstance(number, str) else ""
        digits = text[1:] if text[:1] == "-" else text
        if not digits.isdecimal() or len(digits) > 9:
            raise labels.refuse(
                name, "not a number of replicas", number, f"a whole number for {key!r}"
            )
        found[key] = int(text)
    return found

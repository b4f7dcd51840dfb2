"""Constraints of CockroachDB and TiDB: a sign, a key and a value, as in ``+region=us-east1``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placement.databases.localities import Localities
from placement.errors import InputError
from placement.languages.yaml_texts import YamlValue

__all__ = ["Place", "PlaceConstraint", "constraint", "counts_of", "only_key", "place_counts"]


@dataclass(frozen=True, slots=True)
class PlaceConstraint:
    """A condition on the node of a replica: it has, or has not, a value of a key."""

    required: bool
    key: str
    value: str

    def __str__(self) -> str:
        inner = f"{self.key}={self.value}" if self.key else self.value
        return ("+" if self.required else "-") + inner


@dataclass(frozen=True, slots=True)
class Place:
    """Source of constraints, for messages, and their subject.

    Attributes
    ----------
    source, field
        File and field.
    key
        Key of the locality tier whose values are places: "region" unless told otherwise.
    localities
        Sites by their names.
    """

    source: str
    field: str
    key: str
    localities: Localities

    def refuse(self, message: str, value: object, expected: str) -> InputError:
        """Return the error for a value of this field."""
        return InputError(
            message, source=self.source, field=self.field, value=value, expected=expected
        )

    def site(self, name: str) -> str:
        """Return the site of a name."""
        return self.localities.site_of(name, self.source, self.field)


def constraint(text: str, place: Place) -> PlaceConstraint:
    """Return one constraint.

    Raises
    ------
    InputError
        For a text without sign, or with more than one equals sign.
    """
    body = text[1:].strip()
    if text[:1] not in ("+", "-") or not body or body.count("=") > 1:
        raise place.refuse("not a constraint", text, "+key=value or -key=value")
    key, _, value = body.rpartition("=")
    return PlaceConstraint(text[0] == "+", key.strip(), value.strip())


def only_key(texts: Sequence[YamlValue], place: Place) -> tuple[str | None, list[PlaceConstraint]]:
    """Return the site that a conjunction requires, and the constraints that forbid places.

    Raises
    ------
    InputError
        For a constraint that is about something else than places: it has no counterpart here.
    """
    site: str | None = None
    forbidden = []
    for text in texts:
        if not isinstance(text, str):
            raise place.refuse("not a constraint", text, "+key=value or -key=value")
        one = constraint(text, place)
        if one.key != place.key:
            raise place.refuse(
                f"a constraint on something else than the key {place.key!r}",
                text,
                f"+{place.key}=NAME (another key of places: --set locality_key=…)",
            )
        if not one.required:
            forbidden.append(one)
        elif site is not None:
            raise place.refuse("two places for one replica", list(map(str, texts)), "one place")
        else:
            site = place.site(one.value)
    return site, forbidden


def counts_of(value: dict[str, YamlValue], place: Place) -> dict[str, int]:
    """Return the numbers of a table of constraints, as they stand: also those <= 0."""
    found = {}
    for key, number in value.items():
        text = number if isinstance(number, str) else ""
        digits = text[1:] if text[:1] == "-" else text
        if not digits.isdecimal() or len(digits) > 9:
            raise place.refuse("not a number of replicas", number, f"a whole number for {key!r}")
        found[key] = int(text)
    return found


def place_counts(
    value: YamlValue, total: int, place: Place
) -> tuple[dict[str, int], list[PlaceConstraint]]:
    """Return replicas by site, and the constraints that forbid places.

    A table gives a number for each place. A list holds for all `total` replicas.
    """
    if isinstance(value, str):
        raise place.refuse("not constraints", value, "a list [a, b] or a table {a: 1, b: 2}")
    if isinstance(value, list):
        site, forbidden = only_key(value, place)
        return ({} if site is None else {site: total}), forbidden
    held: dict[str, int] = {}
    forbidden = []
    for text, count in counts_of(value, place).items():
        site, never = only_key(text.split(","), place)
        forbidden += never
        if site is not None and count > 0:
            held[site] = held.get(site, 0) + count
    return held, forbidden

"""Zone configurations of CockroachDB: their statements, their rules, and the roles they give."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from placement.databases.findings import Finding
from placement.databases.localities import Localities
from placement.databases.systems.constraint_words import (
    Place,
    constraint,
    counts_of,
    only_key,
    place_counts,
)
from placement.errors import InputError
from placement.io.formats.tables import parse_csv
from placement.languages.sql_text import TokenStream
from placement.languages.yaml_texts import YamlValue, parse_flow

__all__ = [
    "Zone",
    "ZoneRoles",
    "ZoneTarget",
    "effective_zone",
    "zone_findings",
    "zone_roles",
    "zones_of",
]

_NUMBERS = ("num_replicas", "num_voters")
_HEADER = re.compile(r"^\s*target\s*\|\s*raw_config_sql\s*$", re.MULTILINE)
_DEFAULT_REPLICAS = 3


@dataclass(frozen=True, slots=True)
class ZoneTarget:
    """Target of a zone configuration: its kind ("DATABASE", …) and the parts of its name."""

    kind: str
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the parts, separated by dots."""
        return ".".join(self.parts)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Zone:
    """A zone configuration.

    Attributes
    ----------
    target
        What it is of.
    source
        File and row.
    values
        Fields as they are written; only those that it sets.
    """

    target: ZoneTarget
    source: str
    values: dict[str, str] = field(default_factory=dict)

    def number(self, name: str) -> int | None:
        """Return a number; None where the field is not set."""
        text = self.values.get(name)
        if text is None:
            return None
        digits = text[1:] if text[:1] == "-" else text
        if not digits.isdecimal() or len(digits) > 9:
            raise InputError("not a whole number", source=self.source, field=name, value=text)
        return int(text)

    def flow(self, name: str) -> YamlValue | None:
        """Return a field of constraints; None where it is not set or empty."""
        text = self.values.get(name)
        if text is None or not text.strip():
            return None
        value = parse_flow(text, self.source, name)
        return value or None

    @property
    def replicas(self) -> int:
        """Return num_replicas, or the default of the server."""
        found = self.number("num_replicas")
        return _DEFAULT_REPLICAS if found is None else found

    @property
    def voters(self) -> int:
        """Return num_voters; all replicas vote where it is not set (or 0)."""
        return self.number("num_voters") or self.replicas


# --- statements ------------------------------------------------------------------------------


def zones_of(text: str, source: str) -> list[Zone]:
    """Return the zone configurations in a text: statements, or what SHOW prints.

    Raises
    ------
    InputError
        With file and row, for a text that is neither.
    """
    first = text.lstrip().split("\n", 1)[0].strip()
    for delimiter in (",", "\t"):
        if first.split(delimiter) == ["target", "raw_config_sql"]:
            table = parse_csv(text, source, delimiter)
            return [
                zone
                for number, cells in enumerate(table.rows)
                for zone in _statements(str(cells[1]), table.at(number))
            ]
    header = _HEADER.search(text)
    if header is not None:
        text = _table_text(text, header)
    found = list(_statements(text, source))
    if not found:
        raise InputError(
            "no zone configuration",
            source=source,
            expected="SHOW ZONE CONFIGURATIONS (table, CSV or TSV), or ALTER … CONFIGURE ZONE",
        )
    return found


def _table_text(text: str, header: re.Match[str]) -> str:
    """Return the second column of a table of text, in the rows where it stands."""
    cut = header.group(0).index("|")
    kept = []
    for line in text[header.end() :].split("\n"):
        if re.fullmatch(r"\(\d+ rows?\)", line.strip()):
            break
        rule = re.fullmatch(r"[-+\s]*", line) is not None
        # psql marks a line that goes on with a plus
        kept.append("" if rule else re.sub(r"\s\+\s*$", "", line[cut + 1 :]))
    return "\n" * text.count("\n", 0, header.end()) + "\n".join(_with_ends(kept))


def _with_ends(lines: Sequence[str]) -> list[str]:
    """Put a semicolon before each statement, since a table has none."""
    return [re.sub(r"^\s*ALTER\s", "; ALTER ", line) for line in lines]


def _statements(text: str, source: str) -> list[Zone]:
    stream = TokenStream(text, source)
    found = []
    while stream.next is not None:
        if stream.accept(";"):
            continue
        if stream.accept("SHOW"):
            stream.skip_statement()
            continue
        found.append(_statement(stream))
    return found


def _statement(stream: TokenStream) -> Zone:
    where = stream.where()
    stream.expect("ALTER")
    target = _target(stream)
    stream.expect("CONFIGURE", "ZONE")
    values: dict[str, str] = {}
    if stream.accept("DISCARD"):
        return Zone(target, where)
    stream.expect("USING")
    while True:
        name = stream.name("a field of a zone configuration")
        while stream.accept("."):
            name += "." + stream.name("the rest of a field")
        stream.expect("=")
        if stream.accept("COPY", "FROM", "PARENT"):
            values.pop(name, None)
        else:
            sign = "-" if stream.accept("-") else ""
            if name in values:
                raise InputError("set twice", source=stream.where(), field=name, expected="once")
            values[name] = sign + stream.take("a value").value
        if not stream.accept(","):
            break
    if stream.next is not None:
        stream.expect(";")
    return Zone(target, where, values)


def _target(stream: TokenStream) -> ZoneTarget:
    kind = stream.name("DATABASE, TABLE, INDEX, PARTITION or RANGE").upper()
    if kind not in ("DATABASE", "TABLE", "INDEX", "PARTITION", "RANGE"):
        raise InputError(
            "unknown target",
            source=stream.where(),
            value=kind,
            expected="DATABASE, TABLE, INDEX, PARTITION or RANGE",
        )
    parts = [stream.name("a name")]
    while True:
        if stream.accept("."):
            parts.append(stream.name("a name"))
        elif stream.accept("@"):
            parts.append("@" + stream.name("the name of an index"))
        elif kind == "PARTITION" and (stream.accept("OF", "INDEX") or stream.accept("OF", "TABLE")):
            parts.append("of " + stream.name("a name"))
        else:
            return ZoneTarget(kind, tuple(parts))


# --- choosing --------------------------------------------------------------------------------


def effective_zone(zones: Sequence[Zone], database: str, table: str, source: str) -> Zone:
    """Return the zone configuration of a database or table, with the inherited fields.

    Raises
    ------
    InputError
        When there is none of that name, or none is named and there are several.
    """
    named = [zone for zone in zones if zone.target.kind != "RANGE"]
    if database or table:
        wanted = _wanted(database, table)
        found = [zone for zone in named if zone.target in wanted]
        shown = wanted[0].name
    else:
        found, shown = (named or list(zones)), ""
    if len(found) != 1:
        raise InputError(
            "no such zone configuration" if shown else "several zone configurations",
            source=source,
            field="--database",
            value=shown,
            expected="one of " + ", ".join(str(zone.target) for zone in zones),
        )
    chosen = found[0]
    values: dict[str, str] = {}
    for zone in zones:
        if zone.target == ZoneTarget("RANGE", ("default",)):
            values = dict(zone.values)
    if chosen.target.kind != "DATABASE":
        above = ZoneTarget("DATABASE", chosen.target.parts[:1])
        for zone in zones:
            if zone.target == above:
                values |= zone.values
    return Zone(chosen.target, chosen.source, values | chosen.values)


def _wanted(database: str, table: str) -> list[ZoneTarget]:
    if not table:
        return [ZoneTarget("DATABASE", (database,))]
    parts = tuple(part for part in (database, *table.split(".")) if part)
    wanted = [ZoneTarget("TABLE", parts)]
    if len(parts) == 2:  # SHOW prints the schema too
        wanted.append(ZoneTarget("TABLE", (parts[0], "public", parts[1])))
    return wanted


# --- rules of the server ---------------------------------------------------------------------


def zone_findings(zone: Zone, key: str, localities: Localities) -> tuple[Finding, ...]:
    """Return the rules of the server that a zone configuration breaks.

    The parser does not check them; the server refuses the statement, or never meets it.
    """
    found: list[Finding] = []

    def wrong(rule: str, evidence: str, remedy: str) -> None:
        found.append(Finding(rule, "error", f"{zone.target}: {evidence}", remedy))

    replicas, voters = zone.number("num_replicas"), zone.number("num_voters")
    if replicas is not None and (replicas < 1 or (replicas == 2 and not voters)):
        wrong("num-replicas", f"num_replicas = {replicas}", "1, 3 or more replicas")
    if voters is not None and (voters <= 0 or voters == 2):
        wrong("num-voters", f"num_voters = {voters}", "1, 3 or more voters")
    if voters is not None and voters > zone.replicas:
        wrong(
            "voters-exceed-replicas",
            f"num_voters = {voters} and num_replicas = {zone.replicas}",
            "num_replicas counts all replicas, those that vote too: raise it",
        )
    required: dict[str, set[str]] = {}
    forbidden: dict[str, set[str]] = {}
    for name, total in (("constraints", zone.replicas), ("voter_constraints", zone.voters)):
        value = zone.flow(name)
        if value is None:
            continue
        place = Place(zone.source, name, key, localities)
        table = counts_of(value, place) if isinstance(value, dict) else {}
        for text, count in table.items():
            if count <= 0:
                wrong("count", f"{name} asks for {count} replicas at {text}", "a number above 0")
        asked = sum(count for count in table.values() if count > 0)
        if asked > total:
            limit = "num_replicas" if name == "constraints" else "num_voters"
            wrong(
                "too-many-constraints",
                f"{name} ask for {asked} replicas and {limit} is {total}",
                f"raise {limit} to {asked}, or ask for fewer",
            )
        texts: list[YamlValue] = [text for words in table for text in words.split(",")]
        texts += value if isinstance(value, list) else []
        for text in map(str, texts):
            one = constraint(text, place)
            (required if one.required else forbidden).setdefault(name, set()).add(str(one)[1:])
    if forbidden.get("voter_constraints"):
        wrong(
            "voters-forbidden",
            "voter_constraints forbid " + ", ".join(sorted(forbidden["voter_constraints"])),
            "voter_constraints may only require (+); forbid in constraints",
        )
    both = required.get("voter_constraints", set()) & forbidden.get("constraints", set())
    if both:
        wrong(
            "contradiction",
            f"{', '.join(sorted(both))} is required of voters and forbidden to all replicas",
            "take one of the two out",
        )
    if zone.flow("voter_constraints") is not None and voters is None:
        wrong("voters-not-counted", "voter_constraints without num_voters", "set num_voters")
    if isinstance(zone.flow("constraints"), dict) and replicas is None:
        evidence = "constraints with numbers, without num_replicas"
        wrong("replicas-not-counted", evidence, "set num_replicas")
    if zone.flow("lease_preferences") is not None:
        needed = "voter_constraints" if voters is not None else "constraints"
        if zone.flow(needed) is None:
            wrong("leases-need-constraints", f"lease_preferences without {needed}", f"set {needed}")
    return tuple(found)


# --- roles -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ZoneRoles:
    """Roles that a zone configuration gives, by site."""

    voters: dict[str, int]
    non_voters: dict[str, int]
    leaders: tuple[str, ...]
    free_voters: int
    free_non_voters: int
    findings: tuple[Finding, ...]


def zone_roles(zone: Zone, key: str, localities: Localities) -> ZoneRoles:
    """Return the roles that the configuration decides.

    Raises
    ------
    InputError
        For a constraint that is not about places, or about one that is no site.
    """
    findings: list[Finding] = []
    total, votes = max(0, zone.replicas), max(0, min(zone.voters, zone.replicas))
    held, never = place_counts(
        zone.flow("constraints") or {}, total, Place(zone.source, "constraints", key, localities)
    )
    given = zone.flow("voter_constraints")
    voting, _ = place_counts(
        given or {}, votes, Place(zone.source, "voter_constraints", key, localities)
    )
    if never:
        findings.append(
            Finding(
                "forbidden-places",
                "note",
                f"{zone.target} forbids {', '.join(sorted(set(map(str, never))))}; the roles do "
                "not keep that",
                "give the same sites to `placement solve --forbid`",
            )
        )
    if votes == total:
        voting = {site: max(held.get(site, 0), voting.get(site, 0)) for site in {*held, *voting}}
    asked = sum(max(held.get(s, 0), voting.get(s, 0)) for s in {*held, *voting})
    if asked > total:
        findings.append(
            Finding(
                "unsatisfiable",
                "error",
                f"{zone.target}: constraints and voter_constraints together need {asked} replicas, "
                f"and num_replicas is {total}",
                f"set num_replicas to {asked}, or make voter_constraints a part of constraints",
            )
        )
    others = {
        site: count - voting.get(site, 0)
        for site, count in held.items()
        if count > voting.get(site, 0)
    }
    placed = sum(others.values())
    if placed > total - votes:  # some of them vote, and nothing says which
        findings.append(
            Finding(
                "voters-without-place",
                "warning",
                f"{zone.target}: {placed} replicas have a place, {total - votes} of them do not "
                "vote, and the constraints do not say which",
                "set voter_constraints for every voter",
            )
        )
        others = {}
    return ZoneRoles(
        voting,
        others,
        _leaders(zone, key, localities),
        max(0, votes - sum(voting.values())),
        max(0, total - votes - sum(others.values())),
        tuple(findings),
    )


def _leaders(zone: Zone, key: str, localities: Localities) -> tuple[str, ...]:
    value = zone.flow("lease_preferences")
    place = Place(zone.source, "lease_preferences", key, localities)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, list) for one in value):
        raise place.refuse("not a list of lists", value, f"[[+{key}=a], [+{key}=b]]")
    leaders = []
    for one in value:
        assert isinstance(one, list)
        site, never = only_key(one, place)
        if never or site is None:
            raise place.refuse("a preference without a place", one, f"[+{key}=NAME]")
        leaders.append(site)
    return tuple(dict.fromkeys(leaders))

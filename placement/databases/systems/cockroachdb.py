"""CockroachDB: zone configurations.

The database keeps `num_replicas` replicas, `num_voters` of which vote. `constraints` place all
replicas, `voter_constraints` those that vote, `lease_preferences` name the regions of the
leaseholder in order. It moves replicas by itself after the statement: learners first, and votes
by joint consensus. The parser checks none of the rules of the server, so they are restated here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from placement.databases.deployment import Deployment, OpenRole
from placement.databases.findings import Findings
from placement.databases.labels import ConstraintClause, Labels, PlacedReplicas
from placement.databases.servers import MovePath
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.errors import refused, require
from placement.io.formats.tables import parse_csv
from placement.languages import TokenStream, YamlValue, comment, parse_flow, sql_name, sql_string
from placement.methods.options import Setting

_HEADER = re.compile(r"^\s*target\s*\|\s*raw_config_sql\s*$", re.MULTILINE)
_DEFAULT_REPLICAS = 3
_PLACING = ("num_replicas", "num_voters", "constraints", "voter_constraints", "lease_preferences")
_FIELDS = (*_PLACING, "range_min_bytes", "range_max_bytes", "gc.ttlseconds", "global_reads")
_KINDS = ("DATABASE", "TABLE", "INDEX", "PARTITION", "RANGE")
_INPUT = "SHOW ZONE CONFIGURATIONS (table, CSV or TSV), or ALTER … CONFIGURE ZONE statements"


@dataclass(frozen=True, slots=True)
class _ZoneTarget:
    """Target of a zone configuration: its kind ("DATABASE", …) and its names."""

    kind: str
    parts: tuple[str, ...]
    index: str = ""
    partition: str = ""

    @property
    def name(self) -> str:
        """Return the name without the kind."""
        name = ".".join(self.parts) + (f"@{self.index}" if self.index else "")
        if not self.partition:
            return name
        return f"{self.partition} OF {'INDEX' if self.index else 'TABLE'} {name}"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def sql(self) -> str:
        """Return the target as SQL."""
        if self.kind == "RANGE":
            return str(self)
        quoted = _ZoneTarget(
            self.kind,
            tuple(map(sql_name, self.parts)),
            self.index and sql_name(self.index),
            self.partition and sql_name(self.partition),
        )
        return str(quoted)

    @property
    def above(self) -> tuple[_ZoneTarget, ...]:
        """Return the targets that it inherits from, the farthest first."""
        found = [_ZoneTarget("RANGE", ("default",))]
        if self.kind in ("TABLE", "INDEX", "PARTITION"):
            found.append(_ZoneTarget("DATABASE", self.parts[:1]))
        if self.kind in ("INDEX", "PARTITION"):
            found.append(_ZoneTarget("TABLE", self.parts))
        if self.kind == "PARTITION" and self.index:
            found.append(_ZoneTarget("INDEX", self.parts, self.index))
        return tuple(found)


@dataclass(frozen=True)
class _Zone:
    """A zone configuration: its target, file and row, and the fields that it sets, as written."""

    target: _ZoneTarget
    source: str
    values: Mapping[str, str | None] = field(default_factory=dict)

    def number(self, name: str) -> int | None:
        """Return a number; None where the field is not set."""
        text = self.values.get(name)
        if text is None:
            return None
        digits = text.removeprefix("-")
        if not digits.isdecimal() or len(digits) > 9:
            raise refused(self.source, name, "not a whole number", text, "")
        return int(text)

    def flow(self, name: str) -> YamlValue | None:
        """Return a field of constraints; None where it is not set or empty."""
        text = self.values.get(name) or ""
        return (parse_flow(text, self.source, name) or None) if text.strip() else None

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


def _zones_of(text: str, source: str) -> list[_Zone]:
    """Return the zone configurations in a text: statements, or what SHOW prints."""
    first = text.lstrip().split("\n", 1)[0].strip()
    for delimiter in (",", "\t"):
        if first.split(delimiter) == ["target", "raw_config_sql"]:
            table = parse_csv(text, source, delimiter)
            rows = [(str(cells[1]), table.at(k)) for k, cells in enumerate(table.rows)]
            return [zone for words, where in rows for zone in _statements(words, where)]
    if header := _HEADER.search(text):
        text = _table_text(text, header)
    found = list(_statements(text, source))
    require(found, "", "no zone configuration", expected=_INPUT, source=source)
    return found


def _table_text(text: str, header: re.Match[str]) -> str:
    """Return the second column of a table of text, in the rows where it stands, as statements."""
    cut = header.group(0).index("|")
    kept = []
    for line in text[header.end() :].split("\n"):
        if re.fullmatch(r"\(\d+ rows?\)", line.strip()):
            break
        # psql marks a line that goes on with a plus; a table has no semicolons
        cell = "" if re.fullmatch(r"[-+\s]*", line) else re.sub(r"\s\+\s*$", "", line[cut + 1 :])
        kept.append(re.sub(r"^\s*ALTER\s", "; ALTER ", cell))
    return "\n" * text.count("\n", 0, header.end()) + "\n".join(kept)


def _statements(text: str, source: str) -> Iterator[_Zone]:
    stream = TokenStream(text, source)
    while stream.next is not None:
        if stream.accept(";"):
            continue
        if stream.next.value.upper() == "ALTER":
            yield _statement(stream)
        else:
            stream.skip_statement()  # nothing else changes a zone configuration


def _statement(stream: TokenStream) -> _Zone:
    where = stream.where()
    stream.expect("ALTER")
    kind = stream.name(", ".join(_KINDS)).upper()
    require(kind in _KINDS, "", "unknown target", kind, " or ".join(_KINDS), source=stream.where())
    partition = ""
    if kind == "PARTITION":
        partition = stream.name("the name of a partition")
        stream.expect("OF")
        if not stream.accept("INDEX"):
            stream.expect("TABLE")
    parts, index = [stream.name("a name")], ""
    while stream.accept("."):
        parts.append(stream.name("a name"))
    if stream.accept("@"):
        index = stream.name("the name of an index")
    target = _ZoneTarget(kind, tuple(parts), index, partition)
    if not stream.accept("CONFIGURE", "ZONE"):
        message = "a statement of multi-region SQL, or no zone configuration: it is not read"
        show = "the output of SHOW ZONE CONFIGURATIONS, which has what the server made of it"
        hint = f"ALTER … CONFIGURE ZONE, or {show}"
        raise refused(stream.where(), "", message, str(target), hint)
    values: dict[str, str | None] = {}
    if stream.accept("DISCARD"):
        return _Zone(target, where, {"": None})
    stream.expect("USING")
    while not values or stream.accept(","):
        name = stream.name("a field of a zone configuration")
        while stream.accept("."):
            name += "." + stream.name("the rest of a field")
        if name not in _FIELDS:
            known = "one of " + ", ".join(_FIELDS)
            raise stream.refuse("unknown field of a zone configuration", name, known)
        if name in values:
            raise stream.refuse("set twice", name, "once")
        stream.expect("=")
        if stream.accept("COPY", "FROM", "PARENT"):
            values[name] = None
        else:
            sign = "-" if stream.accept("-") else ""
            values[name] = sign + stream.take("a value").value
    if stream.next is not None:
        stream.expect(";")
    return _Zone(target, where, values)


def _effective_zone(zones: Sequence[_Zone], database: str, table: str, source: str) -> _Zone:
    """Return the zone configuration of a target, with the fields that it inherits.

    Statements follow each other: each changes what it names. It is an error when there is none of
    that name, or none is named and there are several.
    """
    applied: dict[_ZoneTarget, _Zone] = {}
    for zone in zones:
        if "" in zone.values:  # DISCARD
            applied.pop(zone.target, None)
            continue
        before = applied.get(zone.target, zone).values
        applied[zone.target] = _Zone(zone.target, zone.source, {**before, **zone.values})
    named = [target for target in applied if target.kind != "RANGE"]
    wanted: list[tuple[str, tuple[str, ...]]] = [("DATABASE", (database,))]
    if table:
        parts = tuple(part for part in (database, *table.split(".")) if part)
        wanted = [("TABLE", parts)]
        if len(parts) == 2:  # SHOW prints the schema too
            wanted.append(("TABLE", (parts[0], "public", parts[1])))
    found = [target for target in named if (target.kind, target.parts) in wanted]
    if database and not table:
        found = found or [target for target in applied if database in (target.name, str(target))]
    elif not table:
        found = named or list(applied)
    if len(found) != 1:
        message = "several zone configurations" if applied else "no zone configuration is left"
        if database or table:
            message = "no such zone configuration"
        hint = "one of " + ", ".join(map(str, applied)) if applied else "one that is set"
        raise refused(source, "--database", message, table or database, hint)
    values: dict[str, str | None] = {}
    for target in (*found[0].above, found[0]):
        if target in applied:
            values |= {k: v for k, v in applied[target].values.items() if v is not None}
    return _Zone(found[0], applied[found[0]].source, values)


# --- roles -----------------------------------------------------------------------------------


def _read(texts: Texts, request: Request) -> Reading:
    zones = [zone for source, text in texts for zone in _zones_of(text, source)]
    zone = _effective_zone(zones, request.name, request.text("table"), texts[0][0])
    key, subject = request.text("locality_key"), str(zone.target)
    labels = Labels(zone.source, subject, key, request.localities, bare=True)
    findings = Findings("cockroachdb", subject)
    replicas, voters = zone.number("num_replicas"), zone.number("num_voters")
    if replicas is not None and (replicas < 1 or (replicas == 2 and not voters)):
        findings.add("num-replicas", count=replicas)
    if voters is not None and (voters <= 0 or voters == 2):
        findings.add("num-voters", count=voters)
    if voters is not None and voters > zone.replicas:
        findings.add("voters-exceed-replicas", voters=voters, replicas=zone.replicas)
    forbidden: set[str] = set()
    for name, total in (("constraints", zone.replicas), ("voter_constraints", zone.voters)):
        clause = labels.clause(zone.flow(name), name)
        for words, count in clause.counted:
            if count <= 0:
                place = ",".join(map(str, words))
                findings.add("count", field=name, count=count, place=place)
        asked = sum(count for _, count in clause.counted if count > 0)
        if asked > total:
            limit = "num_replicas" if name == "constraints" else "num_voters"
            findings.add("too-many-constraints", field=name, asked=asked, limit=limit, total=total)
        if name == "voter_constraints":
            forbidden = {str(one)[1:] for one in clause.each if not one.required}
    if forbidden:
        findings.add("voters-forbidden", places=", ".join(sorted(forbidden)))
    if zone.flow("voter_constraints") is not None and voters is None:
        findings.add("voters-not-counted")
    if isinstance(zone.flow("constraints"), dict) and replicas is None:
        findings.add("replicas-not-counted")
    needed = "constraints" if voters is None else "voter_constraints"
    if zone.flow("lease_preferences") is not None and zone.flow(needed) is None:
        findings.add("leases-need-constraints", needed=needed)
    deployment = _roles(zone, labels, findings)
    findings += labels.findings()
    if str(zone.values.get("global_reads")).upper() == "TRUE":
        findings.add("global-reads")
    if not deployment.leaders:
        said = zone.flow("lease_preferences") is not None
        findings.add("preference-not-known" if said else "no-leader-preference")
    return Reading(deployment, tuple(findings))


def _roles(zone: _Zone, labels: Labels, findings: Findings) -> Deployment:
    """Return the roles that the configuration decides."""
    total, votes = max(0, zone.replicas), max(0, min(zone.voters, zone.replicas))
    clause = labels.clause(zone.flow("constraints"), "constraints")
    voter_clause = labels.clause(zone.flow("voter_constraints"), "voter_constraints")
    every, voting = labels.placed(clause, total, "constraints"), PlacedReplicas()
    if voter_clause != ConstraintClause():
        voting = labels.placed(voter_clause, votes, "voter_constraints", clause.common)
    both = {*every.held, *voting.held}
    highest = {site: max(every.held.get(site, 0), voting.held.get(site, 0)) for site in both}
    if clause.counted:  # a placed voter may be one of those that have several sites
        every = PlacedReplicas(every.held, _less(every.pools, voting.held))
    if votes == total:  # what holds for all replicas holds for the voters
        more = {site: n - voting.held.get(site, 0) for site, n in highest.items()}
        several = _less(voting.pools, more) or every.pools
        voting = PlacedReplicas({site: n for site, n in highest.items() if n}, several)
        every = PlacedReplicas()
    asked = sum(highest.values())
    if asked > total:
        findings.add("unsatisfiable", asked=asked, total=total)
    others = PlacedReplicas()
    for site, count in every.held.items():
        others.add((site,), count - voting.held.get(site, 0))
    free_votes, free = max(0, votes - sum(voting.held.values())), max(0, total - votes)
    pools = [*_within(voting.pools, free_votes).open("voter")]
    left = free_votes + free - sum(pool.replicas for pool in pools)
    if others.held and voting.total < votes:  # some of them may vote
        findings.add("voters-without-place", placed=others.total, others=total - votes)
        single = [((site,), count) for site, count in others.held.items()]
        pools += _within(single, left).open("either")
        others = PlacedReplicas()
    elif not (clause.counted and voting.pools):
        role: OpenRole = "either" if voting.total < votes else "non-voter"
        most = left if role == "either" else max(0, free - others.total)
        pools += _within(every.pools, most).open(role)
    able = {*voting.held, *(site for pool in pools for site in pool.sites)}
    if sum(pool.replicas for pool in pools) < free_votes:
        able |= {*labels.localities.sites}
    fields = {name: value for name in _PLACING if (value := zone.values.get(name)) is not None}
    return Deployment.of(
        "cockroachdb",
        voting.held,
        others.held,
        **_leaders(zone, labels, able, findings),
        free_voters=free_votes,
        free_non_voters=max(0, free - others.total),
        open=tuple(pools),
        name=zone.target.name,
        kept=_configure(zone.target, fields) if fields else "",
    )


_Pools = Sequence[tuple[tuple[str, ...], int]]


def _less(pools: _Pools, held: Mapping[str, int]) -> list[tuple[tuple[str, ...], int]]:
    """Return open replicas without those that placed replicas can stand for."""
    rest = ((sites, n - sum(held.get(site, 0) for site in sites)) for sites, n in pools)
    return [(sites, n) for sites, n in rest if n > 0]


def _within(pools: _Pools, most: int) -> PlacedReplicas:
    """Return open replicas, no more than there are: the constraints may ask for too many."""
    found = PlacedReplicas()
    for sites, count in pools:
        taken = min(count, most - found.total)
        if taken > 0:
            found.pools.append((sites, taken))
    return found


def _leaders(
    zone: _Zone, labels: Labels, able: set[str], findings: Findings
) -> dict[str, tuple[object, ...]]:
    """Return the order of leaders with ranks: a preference may leave several of the able sites."""
    value = zone.flow("lease_preferences")
    if value is None:
        return {}
    if not isinstance(value, list) or not all(isinstance(one, list) for one in value):
        hint = f"[[+{labels.key}=a], [+{labels.key}=b]]"
        raise labels.refuse("lease_preferences", "not a list of lists", value, hint)
    ranks: dict[str, int] = {}
    for rank, one in enumerate(value, 1):
        assert isinstance(one, list)
        words = labels.conjunction(one, "lease_preferences")
        sites = labels.sites(words, "lease_preferences", leads=True)
        if sites is None:
            continue
        if len(sites) > 1 and not able.intersection(sites):
            findings.add("preference-without-voter", words=",".join(map(str, words)))
        if len(sites) == 1 or not able.issuperset(labels.localities.sites):
            for site in sites:
                if site in able or len(sites) == 1:
                    ranks.setdefault(site, rank)
    return {"leaders": tuple(ranks), "ranks": tuple(ranks.values())}


# --- writing ---------------------------------------------------------------------------------


def _configure(target: _ZoneTarget, fields: Mapping[str, str]) -> str:
    """Return the statement that sets fields of a target."""
    width = max(map(len, fields))
    lines = [
        f"  {name:<{width}} = {value if name.startswith('num_') else sql_string(value)}"
        for name, value in fields.items()
    ]
    return f"ALTER {target.sql} CONFIGURE ZONE USING\n" + ",\n".join(lines) + ";\n"


def _refuses(deployment: Deployment, request: Request) -> list[str]:
    reasons = []
    if deployment.voters == 2:
        reasons.append("num_voters may not be 2: one or at least three replicas vote")
    table = request.text("table")
    if not request.name and not table:
        reasons.append("no database is named (--database)")
    if table and not (table.count(".") < 2 and all(table.split("."))):
        reasons.append(f"the table {table!r} is not a name, or a schema and a name with one dot")
    return reasons


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    key, table = request.text("locality_key"), request.text("table")

    def at(site: str) -> str:
        return f"+{key}={request.localities.only(site).name}"

    target = _ZoneTarget("DATABASE", (request.name,))
    if table:
        target = _ZoneTarget(
            "TABLE", (*([request.name] if request.name else []), *table.split("."))
        )
    # JSON is YAML, with every key in quotes; the leases are a list of lists
    fields = {
        "num_replicas": str(deployment.replicas),
        "num_voters": str(deployment.voters),
        "constraints": json.dumps({at(one.site): one.replicas for one in deployment.held}),
        "voter_constraints": json.dumps({at(s): n for s, n in deployment.voters_at.items()}),
        "lease_preferences": json.dumps([[at(site)] for site in deployment.leaders]),
    }
    changes = path.changes(deployment) if path is not None else ()
    lines = [
        comment("placement of replicas, voters and leaseholder for CockroachDB"),
        comment("one statement; the server moves replicas by itself, learners first, and changes"),
        comment("votes by joint consensus, so that no step leaves a range below its quorum"),
        *(comment(f"changes: {words}") for words in changes),
        _configure(target, fields)[:-1],
        comment("afterwards, until the replicas are where they should be:"),
        f"SHOW ZONE CONFIGURATION FROM {target.sql};",
    ]
    note = "a database with a PRIMARY REGION refuses this statement: its zone configurations are "
    return Script("\n".join(lines) + "\n", (f"{note}the system's own there",))


SYSTEM = DatabaseSystem(
    name="cockroachdb",
    title="CockroachDB",
    inputs=_INPUT,
    read=_read,
    refuses=_refuses,
    write=_write,
    says="voters and non-voters per region, the order of leaseholders",
    cannot="flexible quorums; two voters; multi-region SQL (SURVIVE …) is not written",
    validated="cockroachdb-parser v0.25.2 (grammar); server rules restated, no server was run",
    keeps_text=True,
    settings={
        "locality_key": Setting("region", "key of the locality tier whose values are places"),
        "table": Setting("", "the table instead of the database, as schema.table"),
    },
)

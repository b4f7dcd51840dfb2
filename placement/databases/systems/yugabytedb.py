"""YugabyteDB: tablespaces with a placement of replicas and the order of leaders.

A placement names cloud, region and zone of every block. The region is the locality; cloud and zone
are columns of the table of localities.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from placement.databases.deployment import Deployment, OpenReplicas, OpenRole, SiteReplicas
from placement.databases.findings import Findings
from placement.databases.localities import Locality, is_plain
from placement.databases.servers import MovePath
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.texts import one_document
from placement.errors import require
from placement.io.formats.document import Document, parse_json
from placement.languages import TokenStream, comment, sql_name, sql_string

_PLACE = ("cloud", "region", "zone")
_Place = tuple[str, str, str]
_Spaces = dict[str, tuple[str, dict[str, str]]]
"""Source and options of each tablespace."""


# --- reading ---------------------------------------------------------------------------------


def _read(texts: Texts, request: Request) -> Reading:
    spaces: _Spaces = {}
    for source, text in texts:
        _take_spaces(text, source, spaces)
    kinds = ("tablespace", "tablespaces")
    name = request.choose(spaces, kinds, "CREATE TABLESPACE", texts[0][0])
    source, options = spaces[name]
    require("replica_placement" in options, "replica_placement", "not given", source=source)
    findings = Findings("yugabytedb")
    voting = _placement(options, "replica_placement", source, request, findings)
    reading = _Blocks(0)
    if "read_replica_placement" in options:
        reading = _placement(options, "read_replica_placement", source, request, findings)
        if reading.ranks:
            findings.add("leader-without-vote")
    ranks = sorted({*voting.ranks.values(), *voting.every_rank})
    if ranks != list(range(1, len(ranks) + 1)):
        findings.add("preferences-not-contiguous", values=", ".join(map(str, ranks)))
    held = []
    for site in sorted({*voting.zones, *reading.zones}):
        votes, others = voting.zones.get(site, {}), reading.zones.get(site, {})
        labels = sorted({*votes, *others})
        zones = tuple(SiteReplicas(z, votes.get(z, 0), others.get(z, 0)) for z in labels)
        counts = sum(votes.values()), sum(others.values())
        held.append(SiteReplicas(site, *counts, zones=zones if len(zones) > 1 else ()))
    deployment = Deployment(
        "yugabytedb",
        tuple(held),
        tuple(voting.ranks),
        ranks=tuple(voting.ranks.values()),
        free_voters=voting.free,
        free_non_voters=reading.free,
        open=(*voting.open("voter"), *reading.open("non-voter")),
        name=name,
        kept=_statement("CREATE", name, options),
    )
    return Reading(deployment, tuple(findings))


@dataclass
class _Blocks:
    """Blocks of a placement: replicas by site and zone, and preferences by site."""

    total: int
    zones: dict[str, dict[str, int]] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    every_rank: list[int] = field(default_factory=list)
    anywhere: int = 0

    @property
    def free(self) -> int:
        """Return the number of replicas of which several sites are possible."""
        return max(0, self.total - sum(sum(zones.values()) for zones in self.zones.values()))

    def open(self, role: OpenRole) -> tuple[OpenReplicas, ...]:
        """Return the replicas above the numbers of the blocks: they go inside the blocks."""
        if not self.free or self.anywhere or not self.zones:
            return ()
        return (OpenReplicas(tuple(self.zones), self.free, role),)


def _triple(row: Locality) -> _Place:
    """Return cloud, region and zone of a row: columns, or parts of its name."""
    name, cloud, zone = row.place
    parts = name.split(".")
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 and not zone else (cloud, name, zone)


def _site(
    place: _Place, block: Document, request: Request, strange: Mapping[bool, dict[str, None]]
) -> str:
    """Return the site of cloud, region and zone, which together are a place.

    A place that the table does not have goes to `strange`, by whether it is surely wrong.
    """
    cloud, region, zone = place
    known = [(_triple(row), row.site) for row in request.localities.rows]
    for triple, site in known:
        if triple[2] and triple[1:] == place[1:] and triple[0] in ("", cloud):
            return site
    here = [(triple, site) for triple, site in known if triple[1] == region]
    listed = [triple for triple, _ in here if triple[2] and zone != "*"]
    if listed:
        elsewhere = [triple[1] for triple, _ in known if triple[2] == zone and triple[1] != region]
        zones = ", ".join(sorted({triple[2] for triple in listed}))
        words = f"{'.'.join(place)} (the table has {region} with {zones}"
        words += f", and {zone} with {elsewhere[0]})" if elsewhere else ")"
        wrong = bool(elsewhere) or all(triple[0] not in ("", cloud) for triple in listed)
        strange[wrong][words] = None
    sites = {site for _, site in here}
    if len(sites) == 1:
        return sites.pop()
    return request.localities.site_of(region, block.source, block.key("region"))


def _take_spaces(text: str, source: str, spaces: _Spaces) -> None:
    """Take the tablespaces of statements; the last statement of each counts."""
    stream = TokenStream(text, source)
    while stream.next is not None:
        where = stream.where()
        drop, create = stream.accept("DROP", "TABLESPACE"), stream.accept("CREATE", "TABLESPACE")
        if not (drop or create or stream.accept("ALTER", "TABLESPACE")):
            stream.skip_statement()
            continue
        if drop:
            stream.accept("IF", "EXISTS")
        name = stream.folded_name("the name of a tablespace")
        if drop:
            spaces.pop(name, None)
            continue
        before = {} if create else spaces.get(name, ("", {}))[1]
        if create:
            if stream.accept("OWNER"):
                stream.name("an owner")
            stream.expect("WITH")
        elif stream.accept("RESET", "("):
            gone = set()
            while not stream.accept(")"):
                gone.add(stream.name("an option").lower())
                stream.accept(",")
            spaces[name] = (where, {key: one for key, one in before.items() if key not in gone})
            continue
        elif not stream.accept("SET"):  # OWNER TO, RENAME TO
            stream.skip_statement()
            continue
        stream.expect("(")
        options: dict[str, str] = {}
        while not options or stream.accept(","):
            option = stream.name("an option").lower()
            stream.expect("=")
            require(option not in options, option, "given twice", expected="once", source=where)
            options[option] = stream.take("a value").value
        stream.expect(")")
        spaces[name] = (where, before | options)
        stream.skip_statement()


def _document(options: Mapping[str, str], option: str, source: str) -> Document:
    value = parse_json(options[option], f"{source}: {option}")
    return one_document(source, value, "a placement", option)


def _place_of(block: Document) -> _Place:
    return block.text("cloud"), block.text("region"), block.text("zone")


def _placement(
    options: dict[str, str], option: str, source: str, request: Request, findings: Findings
) -> _Blocks:
    """Return the blocks of a placement."""
    document = _document(options, option, source)
    document.only(("num_replicas", "placement_blocks", "placement_uuid"))
    found = _Blocks(document.whole("num_replicas"))
    strange: dict[bool, dict[str, None]] = {True: {}, False: {}}
    asked = 0
    for block in document.tables("placement_blocks"):
        block.only((*_PLACE, "min_num_replicas", "leader_preference"))
        count, place = block.whole("min_num_replicas"), _place_of(block)
        block.need(1 <= count <= 1000, "min_num_replicas", "out of range", "1 or more")
        asked += count
        if place[1] == "*":
            found.anywhere += count
            continue
        site = _site(place, block, request, strange)
        zones, label = found.zones.setdefault(site, {}), ".".join(place)
        zones[label] = zones.get(label, 0) + count
        if block.has("leader_preference"):
            rank = block.whole("leader_preference")
            block.need(1 <= rank <= 1000, "leader_preference", "out of range", "1, 2, 3, …")
            found.every_rank.append(rank)
            found.ranks[site] = min(rank, found.ranks.get(site, rank))
    for wrong, words in strange.items():
        if words:
            how, places = "" if wrong else "warning", "; ".join(words)
            findings.add("zone-not-in-table", how, option=option, places=places)
    document.need(1 <= found.total <= 1000, "num_replicas", "out of range", "1 or more")
    if asked > found.total:
        findings.add("too-many-blocks", option=option, asked=asked, total=found.total)
    return found


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> list[str]:
    reasons = []
    rows = {site: request.localities.of_site(site) for site in deployment.sites}
    lacking = [site for site, held in rows.items() if not all(all(_triple(row)) for row in held)]
    if lacking:
        reasons.append(
            "the table of localities has no cloud and zone for "
            f"{', '.join(lacking)}: a block names both"
        )
    names = (part for held in rows.values() for row in held for part in _triple(row) if part)
    bad = [name for name in dict.fromkeys(names) if not is_plain(name)]
    if bad:
        reasons.append(
            f"YugabyteDB has no escape for {', '.join(map(repr, bad))} in a block: letters, "
            "digits, '_', '.' and '-' (--localities)"
        )
    return reasons


def _places(one: SiteReplicas, votes: bool, request: Request) -> dict[_Place, int]:
    """Return replicas by cloud, region and zone: the zones as read, or those of the table."""
    total = one.voters if votes else one.non_voters
    found = {
        _triple(Locality(zone.site, one.site)): zone.voters if votes else zone.non_voters
        for zone in one.zones
    }
    if not found or sum(found.values()) != total:
        rows = request.localities.of_site(one.site)
        counts = [total // len(rows) + (k < total % len(rows)) for k in range(len(rows))]
        found = dict(zip(map(_triple, rows), counts, strict=True))
    return {place: count for place, count in found.items() if count}


def _ranks_before(deployment: Deployment, present: Deployment) -> dict[_Place, object]:
    """Return the preference of each present block, where the order of sites does not change."""
    if present.system != "yugabytedb" or present.tiers != deployment.tiers:
        return {}
    spaces: _Spaces = {}
    _take_spaces(present.kept, "kept", spaces)
    return {
        _place_of(block): block.values.get("leader_preference")
        for _, options in spaces.values()
        for block in _document(options, "replica_placement", "kept").tables("placement_blocks")
    }


def _blocks(
    deployment: Deployment, votes: bool, request: Request, before: Mapping[_Place, object]
) -> str:
    blocks = []
    ranks = {site: rank for rank, tier in enumerate(deployment.tiers, 1) for site in tier}
    for one in deployment.held:
        for place, count in _places(one, votes, request).items():
            block = {**dict(zip(_PLACE, place, strict=True)), "min_num_replicas": count}
            rank = before.get(place, ranks.get(one.site))
            blocks.append(block | ({"leader_preference": rank} if votes and rank else {}))
    counts = (deployment.voters_at if votes else deployment.non_voters_at).values()
    return json.dumps({"num_replicas": sum(counts), "placement_blocks": blocks})


def _statement(verb: str, name: str, options: Mapping[str, str]) -> str:
    """Return the statement that makes a tablespace, or changes it."""
    lines = [f"{verb} TABLESPACE {sql_name(name)} {'WITH' if verb == 'CREATE' else 'SET'} ("]
    lines += [f"  {option}={sql_string(value)}," for option, value in options.items()]
    return "\n".join(lines)[:-1] + ");\n"


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    before = _ranks_before(deployment, path.present if path else deployment)
    options = {"replica_placement": _blocks(deployment, True, request, before)}
    if deployment.non_voters_at:
        options["read_replica_placement"] = _blocks(deployment, False, request, {})
    changes = path.changes(deployment) if path is not None else ()
    lines = [
        comment("replicas, leaders in order and read replicas of the tables in a tablespace; the"),
        comment("server moves the tablets by itself"),
        *(comment(f"changes: {words}") for words in changes),
        _statement("CREATE" if path is None else "ALTER", request.name, options),
    ]
    notes = ["moves are asynchronous; a tablespace that cannot be satisfied is refused if in use"]
    if deployment.non_voters_at:
        notes.append("read_replica_placement is early access")
    elif path is not None and path.present.non_voters_at:
        notes.append(
            "the statement sets no read_replica_placement: the present read replicas stay until "
            "that option is reset"
        )
    crowded = [
        f"{'.'.join(place)} {count}"
        for one in deployment.held
        for votes in (True, False)
        for place, count in _places(one, votes, request).items()
        if count > 1
    ]
    if crowded:
        notes.append(
            f"several replicas in one zone ({', '.join(crowded)}) need as many nodes there, and "
            "are lost with it: give the table of localities a row for each zone"
        )
    return Script("\n".join(lines), tuple(notes))


SYSTEM = DatabaseSystem(
    name="yugabytedb",
    title="YugabyteDB",
    inputs="CREATE TABLESPACE and ALTER TABLESPACE … SET statements",
    read=_read,
    refuses=_refuses,
    write=_write,
    named=("tablespace", r"(?!pg_|PG_).+"),
    says="voters and read replicas per zone, the order of leaders",
    cannot="a quorum other than the majority; places without cloud and zone",
    validated="syntax only, not run against a server (ALTER form: PostgreSQL's parser, pglast 8.7)",
    keeps_text=True,
    expresses=frozenset({"ties", "zones"}),
)

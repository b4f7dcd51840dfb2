"""YugabyteDB: tablespaces with a placement of replicas and the order of leaders.

A placement names cloud, region and zone of every block. The region is the locality; cloud and zone
are columns of the table of localities.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from placement.databases.deployment import Deployment, OpenReplicas, OpenRole, SiteReplicas
from placement.databases.findings import Finding, Severity
from placement.databases.localities import Locality, is_plain
from placement.databases.server_moves import MovePath
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.errors import InputError
from placement.io.formats.document import Document, parse_json
from placement.languages.sql_text import TokenStream, comment, sql_name, sql_string

__all__ = ["SYSTEM"]

_KEYS = ("cloud", "region", "zone", "min_num_replicas", "leader_preference")


# --- reading ---------------------------------------------------------------------------------


def _read(texts: Texts, request: Request) -> Reading:
    spaces: dict[str, tuple[str, dict[str, str]]] = {}
    for source, text in texts:
        _take_spaces(text, source, spaces)
    kinds = ("tablespace", "tablespaces")
    name = request.choose(spaces, kinds, "CREATE TABLESPACE", texts[0][0])
    source, options = spaces[name]
    if "replica_placement" not in options:
        raise InputError("not given", source=source, field="replica_placement")
    findings: list[Finding] = []
    voting = _placement(options, "replica_placement", source, request, findings)
    reading = _Blocks(0)
    if "read_replica_placement" in options:
        reading = _placement(options, "read_replica_placement", source, request, findings)
        if reading.ranks:
            findings.append(
                Finding(
                    "leader-without-vote",
                    "error",
                    "read_replica_placement has a leader_preference: read replicas never lead",
                    "remove it",
                )
            )
    order = voting.ranks
    ranks = sorted(set(order.values()) | set(voting.every_rank))
    if ranks != list(range(1, len(ranks) + 1)):
        findings.append(
            Finding(
                "preferences-not-contiguous",
                "error",
                f"leader_preference has the values {', '.join(map(str, ranks))}",
                "1, 2, 3, … without a hole",
            )
        )
    held = []
    for site in sorted({*voting.zones, *reading.zones}):
        votes, others = voting.zones.get(site, {}), reading.zones.get(site, {})
        labels = sorted({*votes, *others})
        zones = tuple(SiteReplicas(z, votes.get(z, 0), others.get(z, 0)) for z in labels)
        held.append(
            SiteReplicas(
                site,
                sum(votes.values()),
                sum(others.values()),
                zones=zones if len(zones) > 1 else (),
            )
        )
    deployment = Deployment(
        "yugabytedb",
        tuple(held),
        tuple(order),
        ranks=tuple(order.values()),
        free_voters=voting.free,
        free_non_voters=reading.free,
        open=(*voting.open("voter"), *reading.open("non-voter")),
        name=name,
        kept=_statement("CREATE", name, list(options.items())),
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


def _triple(row: Locality) -> tuple[str, str, str]:
    """Return cloud, region and zone of a row: columns, or parts of its name."""
    cloud, zone = row.facts.get("cloud", ""), row.facts.get("zone", "")
    parts = row.name.split(".")
    if len(parts) == 3 and not zone:
        return parts[0], parts[1], parts[2]
    return cloud, row.name, zone


def _site(
    block: Document, request: Request, source: str, strange: dict[Severity, dict[str, None]]
) -> str:
    """Return the site of cloud, region and zone, which together are a place."""
    place = (block.text("cloud"), block.text("region"), block.text("zone"))
    known = [(_triple(row), row.site) for row in request.localities.rows]
    for triple, site in known:
        if triple[2] and triple[1:] == place[1:] and triple[0] in ("", place[0]):
            return site
    here = [(triple, site) for triple, site in known if triple[1] == place[1]]
    listed = [triple for triple, _ in here if triple[2] and place[2] != "*"]
    if listed:
        elsewhere = [
            triple for triple, _ in known if triple[2] == place[2] and triple[1] != place[1]
        ]
        zones = ", ".join(sorted({triple[2] for triple in listed}))
        wrong = bool(elsewhere) or all(triple[0] not in ("", place[0]) for triple in listed)
        words = f"{'.'.join(place)} (the table has {place[1]} with {zones}"
        words += f", and {place[2]} with {elsewhere[0][1]})" if elsewhere else ")"
        (strange["error"] if wrong else strange["warning"])[words] = None
    sites = {site for _, site in here}
    if len(sites) == 1:
        return sites.pop()
    return request.localities.site_of(place[1], source, block.key("region"))


def _take_spaces(text: str, source: str, spaces: dict[str, tuple[str, dict[str, str]]]) -> None:
    """Take the tablespaces of statements; the last statement of each counts."""
    stream = TokenStream(text, source)
    while stream.next is not None:
        where = stream.where()
        if stream.accept("DROP", "TABLESPACE"):
            stream.accept("IF", "EXISTS")
            spaces.pop(stream.folded_name("the name of a tablespace"), None)
            continue
        create = stream.accept("CREATE", "TABLESPACE")
        if not create and not stream.accept("ALTER", "TABLESPACE"):
            stream.skip_statement()
            continue
        name = stream.folded_name("the name of a tablespace")
        if create:
            if stream.accept("OWNER"):
                stream.name("an owner")
            stream.expect("WITH")
        elif stream.accept("RESET", "("):
            left = dict(spaces.get(name, ("", {}))[1])
            while not stream.accept(")"):
                left.pop(stream.name("an option").lower(), None)
                stream.accept(",")
            spaces[name] = (where, left)
            continue
        elif not stream.accept("SET"):  # OWNER TO, RENAME TO
            stream.skip_statement()
            continue
        stream.expect("(")
        options: dict[str, str] = {}
        while True:
            option = stream.name("an option").lower()
            stream.expect("=")
            if option in options:
                raise InputError("given twice", source=where, field=option, expected="once")
            options[option] = stream.take("a value").value
            if not stream.accept(","):
                stream.expect(")")
                break
        before = {} if create else spaces.get(name, ("", {}))[1]
        spaces[name] = (where, before | options)
        stream.skip_statement()


def _placement(
    options: dict[str, str], option: str, source: str, request: Request, findings: list[Finding]
) -> _Blocks:
    """Return the blocks of a placement."""
    value = parse_json(options[option], f"{source}: {option}")
    if not isinstance(value, dict):
        raise InputError("not a placement", source=source, field=option, value=value)
    document = Document(source, option, value)
    document.only(("num_replicas", "placement_blocks", "placement_uuid"))
    found = _Blocks(document.whole("num_replicas"))
    strange: dict[Severity, dict[str, None]] = {"error": {}, "warning": {}}
    asked = 0
    for block in document.tables("placement_blocks"):
        block.only(_KEYS)
        count = block.whole("min_num_replicas")
        if not 1 <= count <= 1000:
            raise block.refuse("min_num_replicas", "out of range", "1 or more")
        asked += count
        place = tuple(block.text(key) for key in ("cloud", "region", "zone"))
        if place[1] == "*":
            found.anywhere += count
            continue
        site = _site(block, request, source, strange)
        zones = found.zones.setdefault(site, {})
        label = ".".join(place)
        zones[label] = zones.get(label, 0) + count
        if block.has("leader_preference"):
            rank = block.whole("leader_preference")
            if not 1 <= rank <= 1000:
                raise block.refuse("leader_preference", "out of range", "1, 2, 3, …")
            found.every_rank.append(rank)
            found.ranks[site] = min(rank, found.ranks.get(site, rank))
    findings += [
        Finding(
            "zone-not-in-table",
            severity,
            f"{option} names places that the table of localities does not have: {'; '.join(words)}",
            "correct the block or the table: without a server there no tablet is placed",
        )
        for severity, words in strange.items()
        if words
    ]
    if not 1 <= found.total <= 1000:
        raise document.refuse("num_replicas", "out of range", "1 or more")
    if asked > found.total:
        findings.append(
            Finding(
                "too-many-blocks",
                "error",
                f"the blocks of {option} ask for {asked} replicas and num_replicas is "
                f"{found.total}",
                f"num_replicas: {asked}",
            )
        )
    return found


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> tuple[str, ...]:
    if deployment.read is not None:
        return ("every tablet has a leader, and the placement is of a store without one",)
    reasons = []
    if deployment.commit is not None:
        reasons.append(
            f"commits wait for a majority, not for {deployment.commit} of {deployment.voters}"
        )
    if not request.name or request.name.lower().startswith("pg_"):
        reasons.append(f"{request.name!r} is no name of a tablespace (--database)")
    lacking = [
        site
        for site in deployment.sites
        if not all(all(_triple(row)) for row in request.localities.of_site(site))
    ]
    if lacking:
        reasons.append(
            "the table of localities has no cloud and zone for "
            f"{', '.join(lacking)}: a block names both"
        )
    names = [
        part
        for site in deployment.sites
        for row in request.localities.of_site(site)
        for part in _triple(row)
        if part
    ]
    bad = [name for name in dict.fromkeys(names) if not is_plain(name)]
    if bad:
        reasons.append(
            f"YugabyteDB has no escape for {', '.join(map(repr, bad))} in a block: letters, "
            "digits, '_', '.' and '-' (--localities)"
        )
    return tuple(reasons)


def _places(one: SiteReplicas, votes: bool, request: Request) -> dict[tuple[str, str, str], int]:
    """Return replicas by cloud, region and zone: the zones as read, or those of the table."""
    total = one.voters if votes else one.non_voters
    if one.zones:
        found = {
            _triple(Locality(zone.site, one.site)): zone.voters if votes else zone.non_voters
            for zone in one.zones
        }
        found = {place: count for place, count in found.items() if count}
        if sum(found.values()) == total:
            return found
    rows = request.localities.of_site(one.site)
    counts = [total // len(rows) + (k < total % len(rows)) for k in range(len(rows))]
    return {_triple(row): n for row, n in zip(rows, counts, strict=True) if n}


def _ranks_before(deployment: Deployment, present: Deployment | None) -> dict[object, object]:
    """Return the preference of each present block, where the order of sites does not change."""
    if present is None or present.system != "yugabytedb" or present.tiers != deployment.tiers:
        return {}
    spaces: dict[str, tuple[str, dict[str, str]]] = {}
    _take_spaces(present.kept, "kept", spaces)
    texts = (options["replica_placement"] for _, options in spaces.values())
    values = (parse_json(text, "kept") for text in texts)
    return {
        (block.text("cloud"), block.text("region"), block.text("zone")): block.values.get(
            "leader_preference"
        )
        for value in values
        if isinstance(value, dict)
        for block in Document("kept", "", value).tables("placement_blocks")
    }


def _blocks(
    deployment: Deployment, votes: bool, request: Request, before: dict[object, object]
) -> str:
    blocks = []
    ranks = {site: rank for rank, tier in enumerate(deployment.tiers, 1) for site in tier}
    for one in deployment.held:
        for (cloud, region, zone), count in _places(one, votes, request).items():
            block: dict[str, object] = {
                "cloud": cloud,
                "region": region,
                "zone": zone,
                "min_num_replicas": count,
            }
            rank = before.get((cloud, region, zone), ranks.get(one.site))
            if votes and rank is not None:
                block["leader_preference"] = rank
            blocks.append(block)
    counts = (deployment.voters_at if votes else deployment.non_voters_at).values()
    return json.dumps({"num_replicas": sum(counts), "placement_blocks": blocks})


def _statement(verb: str, name: str, options: list[tuple[str, str]]) -> str:
    """Return the statement that makes a tablespace, or changes it."""
    lines = [f"{verb} TABLESPACE {sql_name(name)} {'WITH' if verb == 'CREATE' else 'SET'} ("]
    lines += [f"  {option}={sql_string(value)}," for option, value in options]
    return "\n".join(lines)[:-1] + ");\n"


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    before = _ranks_before(deployment, path.present if path else deployment)
    options = [("replica_placement", _blocks(deployment, True, request, before))]
    if deployment.non_voters_at:
        options.append(("read_replica_placement", _blocks(deployment, False, request, {})))
    lines = [
        comment("replicas, leaders in order and read replicas of the tables in a tablespace; the"),
        comment("server moves the tablets by itself"),
    ]
    if path is not None:
        lines += [
            comment(f"changes: {words}")
            for words in path.present.differences(deployment) or ("none",)
        ]
    lines.append(_statement("CREATE" if path is None else "ALTER", request.name, options)[:-1])
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
    return Script("\n".join(lines) + "\n", tuple(notes))


SYSTEM = DatabaseSystem(
    name="yugabytedb",
    title="YugabyteDB",
    inputs="CREATE TABLESPACE and ALTER TABLESPACE … SET statements",
    read=_read,
    refuses=_refuses,
    write=_write,
    says="voters and read replicas per zone, the order of leaders",
    cannot="a quorum other than the majority; places without cloud and zone",
    validated="syntax only, not run against a server (ALTER form: PostgreSQL's parser, pglast 8.7)",
    keeps_text=True,
    expresses=frozenset({"ties", "zones"}),
)

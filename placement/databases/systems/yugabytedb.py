"""YugabyteDB: tablespaces with a placement of replicas and the order of leaders.

A placement names cloud, region and zone of every block. The region is the locality; cloud and zone
are columns of the table of localities.
"""

from __future__ import annotations

import json

from placement.databases.deployment import Deployment
from placement.databases.findings import Finding
from placement.databases.localities import name_refusal
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
    voters, free, order = _placement(options, "replica_placement", source, request, findings)
    others: dict[str, int] = {}
    free_others = 0
    if "read_replica_placement" in options:
        others, free_others, never = _placement(
            options, "read_replica_placement", source, request, findings
        )
        if never:
            findings.append(
                Finding(
                    "leader-without-vote",
                    "error",
                    "read_replica_placement has a leader_preference: read replicas never lead",
                    "remove it",
                )
            )
    ranks = sorted(set(order.values()))
    if ranks != list(range(1, len(ranks) + 1)):
        findings.append(
            Finding(
                "preferences-not-contiguous",
                "error",
                f"leader_preference has the values {', '.join(map(str, ranks))}",
                "1, 2, 3, … without a hole",
            )
        )
    return Reading(
        Deployment.of(
            "yugabytedb",
            voters,
            others,
            leaders=tuple(sorted(order, key=lambda site: order[site])),
            free_voters=free,
            free_non_voters=free_others,
            name=name,
        ),
        tuple(findings),
    )


def _take_spaces(text: str, source: str, spaces: dict[str, tuple[str, dict[str, str]]]) -> None:
    """Take the tablespaces of statements; the last statement of each counts."""
    stream = TokenStream(text, source)
    while stream.next is not None:
        where = stream.where()
        create = stream.accept("CREATE", "TABLESPACE")
        if not create and not stream.accept("ALTER", "TABLESPACE"):
            stream.skip_statement()
            continue
        token = stream.take("the name of a tablespace")
        # bare names are folded to lower case
        name = token.value if token.kind == "name" else token.value.lower()
        if create:
            if stream.accept("OWNER"):
                stream.name("an owner")
            stream.expect("WITH")
        else:
            stream.expect("SET")
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
) -> tuple[dict[str, int], int, dict[str, int]]:
    """Return replicas by site, those without a place, and the preferences by site."""
    value = parse_json(options[option], f"{source}: {option}")
    if not isinstance(value, dict):
        raise InputError("not a placement", source=source, field=option, value=value)
    document = Document(source, option, value)
    total = document.whole("num_replicas")
    held: dict[str, int] = {}
    order: dict[str, int] = {}
    asked = 0
    for block in document.tables("placement_blocks"):
        block.only(_KEYS)
        region, count = block.text("region"), block.whole("min_num_replicas")
        for key in ("cloud", "zone"):
            block.text(key)
        if not 1 <= count <= 1000:
            raise block.refuse("min_num_replicas", "out of range", "1 or more")
        asked += count
        if region == "*":
            continue  # anywhere
        site = request.localities.site_of(region, source, block.key("region"))
        held[site] = held.get(site, 0) + count
        if block.has("leader_preference"):
            rank = block.whole("leader_preference")
            order[site] = min(rank, order.get(site, rank))
    if not 1 <= total <= 1000:
        raise document.refuse("num_replicas", "out of range", "1 or more")
    if asked > total:
        findings.append(
            Finding(
                "too-many-blocks",
                "error",
                f"the blocks of {option} ask for {asked} replicas and num_replicas is {total}",
                f"num_replicas: {asked}",
            )
        )
    return held, max(0, total - sum(held.values())), order


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
    for one in deployment.held:
        row = request.localities.only(one.site)
        for name in (row.name, row.facts.get("cloud", ""), row.facts.get("zone", "")):
            if not name:
                reasons.append(
                    f"the table of localities has no cloud and zone for {one.site}: a block names "
                    "both"
                )
                break
            reason = name_refusal(name, "YugabyteDB")
            if reason is not None:
                reasons.append(reason)
    return tuple(reasons)


def _blocks(counts: dict[str, int], request: Request, order: tuple[str, ...]) -> str:
    blocks = []
    for site, count in counts.items():
        row = request.localities.only(site)
        block: dict[str, object] = {
            "cloud": row.facts["cloud"],
            "region": row.name,
            "zone": row.facts["zone"],
            "min_num_replicas": count,
        }
        if site in order:
            block["leader_preference"] = order.index(site) + 1
        blocks.append(block)
    return json.dumps({"num_replicas": sum(counts.values()), "placement_blocks": blocks})


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    options = [("replica_placement", _blocks(deployment.voters_at, request, deployment.leaders))]
    if deployment.non_voters_at:
        options.append(("read_replica_placement", _blocks(deployment.non_voters_at, request, ())))
    lines = [
        comment("replicas, leaders in order and read replicas of the tables in a tablespace; the"),
        comment("server moves the tablets by itself"),
    ]
    if path is not None:
        lines += [
            comment(f"changes: {words}")
            for words in path.present.differences(deployment) or ("none",)
        ]
    name = sql_name(request.name)
    lines.append(
        f"CREATE TABLESPACE {name} WITH (" if path is None else f"ALTER TABLESPACE {name} SET ("
    )
    lines += [f"  {option}={sql_string(value)}," for option, value in options]
    lines[-1] = lines[-1][:-1] + ");"
    notes = ["moves are asynchronous; a tablespace that cannot be satisfied is refused if in use"]
    if deployment.non_voters_at:
        notes.append("read_replica_placement is early access")
    elif path is not None and path.present.non_voters_at:
        notes.append(
            "the statement sets no read_replica_placement: the present read replicas stay until "
            "that option is reset"
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
    operations={
        "SELECT with yb_read_from_followers = on": "weak read",
        "SELECT": "strong read: the leader answers from its lease, without votes",
        "write of one row or one tablet": "single-group transaction",
        "transaction over several tablets": "multi-group transaction",
    },
)

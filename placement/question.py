"""The question of a user: one schema of its keys, and the file that holds it.

Every field of :class:`Question` is a key of ``question.toml`` and an option of the command line.
The metadata of a field (:class:`Key`) makes the reader and the writer of the file, the options and
their help, the JSON schema for editors and the table of the documentation. A key is added by one
field here; ``placement.cli`` turns the values into a :class:`placement.Problem`.

Values are kept as a user writes them: numbers as numbers, lists as tuples of texts, a table such as
``cap = {country = 1}`` as texts ``("country=1",)``. Names of sites and measures are checked when
the problem is made, because only an instance knows them.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placement.errors import Gathered, InputError, nearest, refused

LARGEST_NUMBER = 1e12
"""Largest number of ms, seconds, GB or money accepted: sums and products of a few stay finite."""

LARGEST_SIZE = 1_000_000
"""Largest number of sites, intervals, rows or steps accepted."""

_MOVE = 1e9

_FILE_ONLY = ("rtt", "demand_table", "site_table")
"""Keys of the table [instance] of a file, which no option has."""

GROUPS = {
    "instance": "instance",
    "question": "question",
    "constraints": "constraints",
    "prices": "prices (per month, in one currency)",
    "today": "what runs today",
    "moves": "moves (from the configuration of --today)",
    "measures": "measures (cost, p99(writes), within 100 ms, …)",
    "tail": "tail latency",
    "method": "method",
}
"""Groups of keys, with their titles in the help; a table of the file may have the name of one."""


@dataclass(frozen=True, slots=True)
class Key:
    """Type, unit, help and place of a key of a question."""

    #: "text"; "number"; "whole"; "size": a number, range or list of sites; "list": texts; "names":
    #: sites, which one text separates by commas; "table": texts NAME=VALUE
    kind: str
    group: str  #: a key of GROUPS
    help: str  #: what the key says, with its unit
    metavar: str = ""  #: placeholder of the value
    least: float = 0  #: range of a number
    most: float = LARGEST_NUMBER
    above: bool = False  #: whether `least` itself is excluded
    infinite: bool = False  #: whether infinity is a value
    choices: tuple[str, ...] = ()  #: the texts that are accepted; empty: any
    field: str = ""  #: of Problem and of plan files; empty: none of that name
    short: bool = False  #: whether `-h` shows the option; `--help` shows all
    #: whether the value may name a file, which is looked for beside the question file
    file: bool = False
    alias: tuple[str, ...] = ()  #: further options of the same meaning
    needs: str = ""  #: key without which the option does nothing, and is refused
    name: str = ""  #: key in the file and option of the command line, with underscores
    default: Any = None  #: value if the key is absent

    @property
    def option(self) -> str:
        """The option of the command line; empty for a key of the file alone."""
        return "" if self.name in _FILE_ONLY else "--" + self.name.replace("_", "-")

    @property
    def several(self) -> bool:
        """Whether the value is a tuple of texts: the option may be repeated."""
        return self.kind in ("size", "list", "names", "table")


def _key(kind: str, group: str, help: str, metavar: str = "", **more: Any) -> Any:
    default = more.pop("default", () if kind in ("size", "list", "names", "table") else None)
    key = Key(kind, group, help, metavar, **more)
    return dataclasses.field(default=default, metadata={"key": key})


# fmt: off
@dataclass(frozen=True, kw_only=True)
class Question:
    """A question as a user writes it; the metadata of the fields is the schema."""

    instance: str | None = _key("text", "instance", "a bundled data set (placement show "
        "datasets), or a path", "INSTANCE", file=True)
    rtt: str | None = _key("text", "instance", "table of round-trip times in ms", "FILE", file=True)
    demand_table: str | None = _key("text", "instance", "table of operations per client", "FILE",
        file=True)
    site_table: str | None = _key("text", "instance", "table of sites: coordinates, failure "
        "domains", "FILE", file=True)
    mix: str | None = _key("text", "instance", "operation mix of a data set's workload", "MIX")
    workload_seed: int = _key("whole", "instance", "seed of a data set's workload (default 0)", "N",
        most=2**63 - 1, default=0)
    scale_demand: tuple[str, ...] = _key("table", "instance", "multiply the demand of a client "
        "by F; may be repeated", "CLIENT=F")
    without: tuple[str, ...] = _key("names", "instance", "sites to leave out; the clients there "
        "stay", "SITES")
    wait: tuple[str, ...] = _key("table", "instance", "wait of an operation in place of its "
        "votes, for example 'single_group=leader: quorum of voters + 1 of voters outside "
        "region'; may be repeated (placement show protocols)", "OPERATION=WAIT")

    replicas: tuple[str, ...] = _key("size", "question", "number, range or list of sites",
        "N|LO..HI|SITES", field="replicas", short=True)
    voters: tuple[str, ...] = _key("size", "question", "number or list of sites (default: every "
        "replica votes)", "N|SITES", field="voters", short=True)

    leader: str | None = _key("text", "constraints", "the site that must lead", "SITE",
        field="leader", short=True)
    quorum: int | None = _key("whole", "constraints", "votes a commit waits for (default: a "
        "majority)", "M", least=1, most=LARGEST_SIZE, field="quorum")
    votes: tuple[str, ...] = _key("names", "constraints", "sites without a vote, as a database "
        "writes them; the same as --no-vote SITE,…", "SITE=0,…")
    witnesses: tuple[str, ...] = _key("size", "constraints", "voters that hold no replica: "
        "number or list of sites (default: 0)", "W|SITES", field="witnesses")
    leaders: tuple[str, ...] = _key("names", "constraints", "candidate leaders", "SITES",
        field="leaders")
    pin: tuple[str, ...] = _key("names", "constraints", "sites that must hold a replica", "SITES",
        field="pinned", short=True)
    pin_voter: tuple[str, ...] = _key("names", "constraints", "sites that must vote", "SITES",
        field="pinned_voters")
    forbid: tuple[str, ...] = _key("names", "constraints", "sites that may not hold a replica",
        "SITES", field="forbidden", short=True)
    no_vote: tuple[str, ...] = _key("names", "constraints", "sites that may hold a replica but "
        "not vote", "SITES", field="non_voters")
    survive: str | None = _key("text", "constraints", "keep a quorum after the loss of any one "
        "domain of LEVEL, for example country", "LEVEL", field="survive", short=True)
    cap: tuple[str, ...] = _key("table", "constraints", "at most K voters (replicas) per domain "
        "of a level", "LEVEL=K[:replicas]", short=True)
    distinct: tuple[str, ...] = _key("table", "constraints", "voters (replicas) in at least K "
        "domains of a level", "LEVEL=K[:replicas]")
    require: tuple[str, ...] = _key("table", "constraints", "at least K replicas (voters) in a "
        "named domain, for example continent:EU=1", "LEVEL:DOMAIN=K[:voters]")
    keep_diversity: str | None = _key("text", "constraints", "keep the diversity of the present "
        "plan: at every level at most as many voters per domain, and replicas in at least as "
        "many domains", "PLAN", file=True)
    protocol: str | None = _key("text", "constraints", "commit protocol, for example "
        "epaxos:slow=0.05 (placement show protocols lists them)", "NAME[:PARAMETER=VALUE,…]",
        field="protocol")
    decay: float = _key("number", "constraints", "decay of older intervals, T >= 1", "T", least=1,
        infinite=True, default=1.0, field="decay")
    budget: float | None = _key("number", "constraints", "largest cost of the replicas, in money "
        "per month", "X", field="budget")
    cost_weight: float = _key("number", "constraints", "weight of the cost in the objective, in "
        "ms·operations per unit of money (default 0)", "W", default=0.0, field="cost_weight")

    prices: str | None = _key("text", "prices", "prices of each site: a CSV with site and "
        "storage (per replica), storage_gb (per GB), machines, machines_non_voting, requests "
        "(per million); a JSON price list of AWS or Azure; or one price per replica for all",
        "FILE|X", file=True, short=True)
    storage_unit: str | None = _key("text", "prices", "unit of the prices of storage in --prices "
        "(default: of one replica; of one GB in a column storage_gb)", needs="prices",
        choices=("replica-month", "GB-month"))
    transfer: str | None = _key("text", "prices", "prices per GB sent: a CSV (from, to, price; "
        "or square), a JSON price list of AWS or Azure, or 'aws': the list of 2022 in the "
        "package skyplane", "FILE|aws", file=True)
    zones: str | None = _key("text", "prices", "the names in --transfer are domains of LEVEL, "
        "not sites", "LEVEL", needs="transfer")
    marginal_gb: float | None = _key("number", "prices", "monthly volume in GB that selects the "
        "price, if --transfer has volume tiers", "GB", needs="transfer")
    client_sites: str | None = _key("text", "prices", "place of each client for the prices of "
        "traffic: a CSV (client, site), the site with the smallest RTT, or the internet; a "
        "client with the name of a site is at this site", "FILE|nearest|internet", file=True)
    gb_per_op: tuple[str, ...] = _key("table", "prices", "GB that one operation moves; OP is an "
        "operation, or read or write for all of them", "OP=GB,…")
    written_gb: float | None = _key("number", "prices", "GB written per month, which the leader "
        "ships to each replica", "GB")
    interval_hours: float | None = _key("number", "prices", "hours that one interval of demand "
        "covers (default: all intervals are one month)", "H", above=True)
    stored_gb: float | None = _key("number", "prices", "GB that one replica holds", "GB")
    replication: str | None = _key("text", "prices", "sender of a write to the replicas: the "
        "leader, or the site of the client (gateway)", choices=("leader", "gateway"))

    database: str | None = _key("text", "today", "database whose own output --today is, for "
        "example cockroachdb", "SYSTEM", needs="today")
    today: str | None = _key("text", "today", "present configuration: a plan file; a JSON or "
        "TOML file with leader, voters and replicas; a deployment of db read; or, with "
        "--database, the output of a database", "FILE", file=True, short=True, alias=("--from",))
    tiers: str | None = _key("text", "today", "volume tiers for a second bill of the plan's "
        "traffic: a CSV with from, up_to_gb (blank: no limit) and price", "FILE", file=True)

    max_moves: int | None = _key("whole", "moves", "most changes: a site that gains or loses a "
        "replica or a vote, another leader; a replica that goes to another site is two changes",
        "K", most=LARGEST_SIZE)
    move_price: tuple[str, ...] = _key("table", "moves", "price of a change, in ms added to the "
        "latency of one period of the demand; PART is add, remove, promote, demote or leader; "
        "one number: the price of every part", "PART=MS,…")
    move_horizon: float | None = _key("number", "moves", "periods of the demand over which the "
        "prices are spread (default 1)", "PERIODS", above=True)
    copy_gb: float | None = _key("number", "moves", "most GB copied to sites without a replica; "
        "needs --replica-gb", "GB", most=_MOVE)
    replica_gb: float | None = _key("number", "moves", "GB of one replica", "GB", most=_MOVE)

    minimise: str | None = _key("text", "measures", "measure to minimise (default: mean), for "
        "example 'cost' or 'p99(writes)'", "MEASURE", short=True)
    maximise: str | None = _key("text", "measures", "share in time to maximise, for example "
        "'within 100 ms'", "SHARE")
    keep: tuple[str, ...] = _key("list", "measures", "limit on a measure, for example "
        "'p99(writes) <= 150 ms'; may be repeated", "LIMIT", short=True)
    outage: tuple[str, ...] = _key("table", "measures", "probability of an outage, for 'mean "
        "over outages': NAME is a site, LEVEL:DOMAIN, or 'any LEVEL' for each of a level; may be "
        "repeated", "NAME=P")

    percentile: float | None = _key("number", "tail", "minimise the P-th percentile of all "
        "operations instead of their mean (99, 99.9)", "P", most=100, above=True)
    distributions: str | None = _key("text", "tail", "distributions of RTTs: src, dst and p10, "
        "p50, p99 …, or rtt and count, or rtt", "FILE", file=True)
    client_distributions: str | None = _key("text", "tail", "distributions of RTTs from clients "
        "to sites, if they are in a separate file", "FILE", file=True, needs="distributions")
    spread: float | None = _key("number", "tail", "instead of --distributions: one family for "
        "all pairs, with a standard deviation of V times the RTT", "V", most=100)
    family: str | None = _key("text", "tail", "family of distributions of --spread (default "
        "lognormal)", choices=("lognormal", "gamma"), needs="spread")
    bin_width: float | None = _key("number", "tail", "width of the bins of RTTs in ms (default 1)",
        "MS", above=True)
    rtt_horizon: float | None = _key("number", "tail", "end of the last bin in ms: longer RTTs "
        "count as longer than any limit", "MS", above=True, alias=("--horizon",))

    method: str = _key("text", "method", "method to use (default exact); placement show methods "
        "lists all", "NAME", default="exact")
    time_limit: float | None = _key("number", "method", "time limit in seconds (default: no limit)",
        "S", short=True)
    gap: float = _key("number", "method", "stop when the relative gap is at most G (default 0: "
        "prove the optimum)", "G", most=1, default=0.0)
    seed: int = _key("whole", "method", "seed of the method's random choices (default 0)", "N",
        most=2**63 - 1, default=0)
    threads: int = _key("whole", "method", "threads (default 1)", "N", least=1, most=1024,
        default=1)
    set: tuple[str, ...] = _key("table", "method", "setting of the method (placement show "
        "methods NAME lists them), or a key of the question: --set keep+='cost <= 4000' adds to "
        "it", "NAME=VALUE")

    # fmt: on
    source: str = ""  #: file that the question came from; empty: none
    lines: Mapping[str, int] = dataclasses.field(default_factory=dict)  #: line of each key in it

    def given(self) -> Iterator[tuple[Key, Any]]:
        """Yield the keys that are not at their default, with their values."""
        for key in KEYS.values():
            value = getattr(self, key.name)
            if value != key.default:
                yield key, value

    def at(self, key: str) -> str:
        """Return the place of a key, for messages."""
        line = self.lines.get(key)
        return f"{self.source}, line {line}" if line else self.source

    def words(self) -> list[str]:
        """Return the question as words of the command line, the instance first."""
        found = [] if self.instance is None else [self.instance]
        for key, value in self.given():
            if key.option and key.name != "instance":
                for one in value if key.several else (value,):
                    found += [key.option, plain(one)]
        return found


KEYS: dict[str, Key] = {
    field.name: dataclasses.replace(
        field.metadata["key"], name=field.name, default=field.default
    )
    for field in dataclasses.fields(Question)
    if "key" in field.metadata
}
"""All keys of a question, by name."""

_IN_TABLES = {
    "instance": {
        "source": "instance", "rtt": "rtt", "demand": "demand_table",
        "sites": "site_table",
    },
    "prices": {"file": "prices"},
    "method": {"name": "method"},
}  # fmt: skip
"""Names of keys inside the tables of the file, where they differ from the names of options."""

_HEADER = re.compile(r"\s*\[\s*([\w-]+)\s*\]")
_ASSIGNED = re.compile(r"\s*(?:\"([^\"]+)\"|([\w-]+))\s*(?:\.[\w\" -]+)?=")


def plain(value: object) -> str:
    """Return a value as an option takes it; a float so that it reads back as the same float."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)


# --- reading ---------------------------------------------------------------------------------


def read_question(
    path: str | Path, *, others: Callable[[str], str] | None = None
) -> Question:
    """Read a question file, which is TOML.

    `others` names the verbs that have an option of a given name, for keys that are none here. All
    errors of the file are one message, each with its line.
    """
    from placement.io.formats.document import read_document
    from placement.io.formats.files import read_text

    values = read_document(path).values
    text = read_text(path)
    return question_from(values, source=str(path), lines=_lines(text), others=others, files=True)


def question_from(
    values: Mapping[str, object],
    *,
    source: str = "",
    lines: Mapping[str, int] | None = None,
    others: Callable[[str], str] | None = None,
    files: bool = False,
) -> Question:
    """Return the question of a table of keys, as a file or a page holds it.

    The keys are those of :class:`Question`, at the top or in tables with the names of
    :data:`GROUPS`; `source` and `lines` are the file, and the line of each key in it. With `files`,
    the files that the question names must be there. All errors are one message.
    """
    errors = Gathered()
    found: dict[str, Any] = {}
    places = dict(lines or {})
    lines_of: dict[str, int] = {}

    def refuse(name: str, message: str, value: object, expected: str = "") -> None:
        line = places.get(name)
        where = f"{source}, line {line}" if line else source
        errors.add(refused(where, name, message, value, expected))

    for name, key, value in _assignments(values):
        if key is None:
            known = [*KEYS, *GROUPS, *(one for table in _IN_TABLES.values() for one in table)]
            mine = name.rpartition(".")[2]
            verbs = "" if others is None else others(mine.replace("_", "-"))
            hint = f" (an option of {verbs})" if verbs else nearest(mine, known)
            refuse(name, f"unknown key{hint}", value)
            continue
        if key.name in found:
            refuse(name, "the key is given twice", value, "once")
            continue
        try:
            found[key.name] = _value(key, value)
        except InputError as error:
            refuse(name, error.message, value, error.expected)
            continue
        if name in places:
            lines_of[key.name] = places[name]
        if key.name == "instance" and str(found["instance"]).lower().endswith(".toml"):
            expected = "an instance: a data set, or a path"
            refuse(name, "a question inside a question", value, expected)
        if key.file:
            found[key.name] = _beside(source, found[key.name])
            if files and key.metavar in ("FILE", "PLAN") and not Path(found[key.name]).exists():
                refuse(name, "no such file", value)
    errors.check()
    return Question(**found, source=source, lines=lines_of)


def _assignments(values: Mapping[str, object]) -> Iterator[tuple[str, Key | None, object]]:
    """Yield the name in the file, the key (None: unknown) and the value of each assignment."""
    for name, value in values.items():
        if name in GROUPS and isinstance(value, Mapping):
            renamed: Mapping[str, str] = _IN_TABLES.get(name, {})
            for inner, given in value.items():
                target = str(renamed.get(inner, inner))
                key = KEYS.get(target)
                right = key is not None and key.group == name
                yield f"{name}.{inner}", key if right else None, given
        else:
            hidden = name in _FILE_ONLY
            yield name, None if hidden else KEYS.get(name), value


def _lines(text: str) -> dict[str, int]:
    """Return the line of each key; those of tables as TABLE.KEY."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = header[1] + "."
            found.setdefault(header[1], number)
        elif key := _ASSIGNED.match(line):
            found.setdefault(table + (key[1] or key[2]), number)
    return found


def _value(key: Key, value: object) -> Any:
    """Return the value of a key of the file as :class:`Question` holds it."""
    if key.kind == "whole" or key.kind == "number":
        return _number(key, value)
    if key.kind == "text":
        if key.name == "prices" and _is_number(value):
            return plain(value)
        if not isinstance(value, str) or not value.strip():
            raise InputError("empty" if isinstance(value, str) else "wrong type", expected="text")
        if key.choices and value not in key.choices:
            words = f"unknown value{nearest(value, key.choices)}"
            raise InputError(words, expected="one of " + ", ".join(key.choices))
        return value
    if key.kind == "size" and isinstance(value, int) and not isinstance(value, bool):
        return (str(value),)
    if isinstance(value, str):
        return (value,)
    if key.kind == "table" and key.name == "move_price" and _is_number(value):
        return (plain(value),)
    if key.kind == "table" and isinstance(value, Mapping):
        return tuple(_pairs(value))
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return tuple(value)
    if key.kind == "size" and isinstance(value, list) and value and all(map(_is_number, value)):
        return (",".join(map(plain, value)),)
    raise InputError("wrong type", expected=_expected(key))


def _pairs(table: Mapping[str, object]) -> Iterator[str]:
    for name, value in table.items():
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, str) and not _is_number(one):
                raise InputError("wrong type", expected="NAME = VALUE with a number or a text")
            yield f"{name}={plain(one)}"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(key: Key, value: object) -> float | int:
    whole = key.kind == "whole"
    if not _is_number(value) or (whole and not isinstance(value, int)):
        raise InputError("wrong type", expected=_expected(key))
    assert isinstance(value, (int, float))
    if key.infinite and value == math.inf:
        return value
    if not key.least <= value <= key.most or (key.above and value == key.least):
        raise InputError("out of range", expected=_expected(key))
    return value if whole else float(value)


def _expected(key: Key) -> str:
    """Return what the values of a key are, in words."""
    if key.kind in ("whole", "number"):
        kind = "a whole number" if key.kind == "whole" else "a number"
        return f"{kind} {'>' if key.above else '>='} {key.least:g} and <= {key.most:g}"
    return {
        "text": "text",
        "size": 'a number, a range "3..7", or a list of sites',
        "list": "a text, or a list of texts",
        "names": "a list of sites",
        "table": f'a table or a list of texts "{key.metavar}"',
    }[key.kind]


def _beside(source: str, value: str) -> str:
    """Return the path of a file that is named in a question, relative to the question's folder."""
    if not source:
        return value
    path = Path(source).parent / value
    try:
        return os.path.normpath(path) if path.exists() else value
    except (OSError, ValueError):
        return value


# --- writing ---------------------------------------------------------------------------------


def toml_text(question: Question) -> str:
    """Return the text of a question file, which :func:`read_question` reads back."""
    top: list[str] = []
    tables: dict[str, list[str]] = {}
    given = list(question.given())
    several = {
        group
        for group in ("instance", "prices")
        if sum(key.group == group for key, _ in given) > 1
        or any(key.name in _FILE_ONLY for key, _ in given)
    }
    names = {key: name for table in _IN_TABLES.values() for name, key in table.items()}
    for key, value in given:
        nested = key.group in several
        name = names.get(key.name, key.name) if nested else key.name
        rows = tables.setdefault(key.group, []) if nested else top
        rows.append(f"{name} = {_toml(key, value)}")
    blocks = ["\n".join(top)] if top else []
    blocks += ["\n".join([f"[{group}]", *rows]) for group, rows in tables.items()]
    return "\n\n".join(blocks) + "\n"


def file_value(key: Key, value: Any) -> Any:
    """Return a value as a file holds it: a number, a text, or a list of texts."""
    if not key.several:
        return value
    if key.kind == "size" and len(value) == 1 and value[0].isdecimal() and len(value[0]) < 19:
        return int(value[0])
    return value[0] if len(value) == 1 and key.kind != "names" else list(value)


def _toml(key: Key, value: Any) -> str:
    found = file_value(key, value)
    if isinstance(found, list):
        return "[" + ", ".join(map(_text, found)) + "]"
    return _text(found) if isinstance(found, str) else plain(found)


def _text(value: str) -> str:
    """Return a text as TOML writes it: the escapes of JSON, and one more."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# --- the schema elsewhere --------------------------------------------------------------------


def json_schema() -> dict[str, object]:
    """Return the JSON schema of question files, for editors."""
    properties: dict[str, Any] = {
        name: _schema(key)
        for name, key in KEYS.items()
        if name not in _FILE_ONLY
    }
    for group in GROUPS:
        inner = {name: _schema(key) for name, key in KEYS.items() if key.group == group}
        for name, target in _IN_TABLES.get(group, {}).items():
            inner[name] = _schema(KEYS[target])
        if group == "instance":
            for name in ("instance", "demand_table", "site_table"):
                inner.pop(name)
        table = {"type": "object", "properties": inner, "additionalProperties": False}
        plain_one = properties.get(group)
        properties[group] = table if plain_one is None else {"anyOf": [plain_one, table]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Question of placement",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _schema(key: Key) -> dict[str, object]:
    texts = {"type": "array", "items": {"type": "string"}}
    text: dict[str, object] = {"type": "string"}
    found: dict[str, object]
    if key.kind in ("whole", "number"):
        found = {"type": "integer" if key.kind == "whole" else "number"}
        found["exclusiveMinimum" if key.above else "minimum"] = key.least
        if not key.infinite:
            found["maximum"] = key.most
    elif key.kind == "text":
        found = {"enum": list(key.choices)} if key.choices else text
    elif key.kind == "size":
        found = {"anyOf": [{"type": "integer"}, text, texts]}
    elif key.kind == "table":
        values = {"type": ["string", "number", "array"]}
        found = {"anyOf": [text, texts, {"type": "object", "additionalProperties": values}]}
    else:
        found = {"anyOf": [text, texts]}
    return {**found, "description": key.help}


def options_table(group: str) -> str:
    """Return the options of a group as a table in Markdown, for the documentation."""
    rows = ["| key and option | value | meaning |", "|---|---|---|"]
    for key in KEYS.values():
        if key.group == group and key.name not in ("instance", *_FILE_ONLY):
            value = (key.metavar or ", ".join(key.choices)).replace("|", "\\|")
            rows.append(f"| `{key.option}` | `{value}` | {key.help.replace('|', chr(92) + '|')} |")
    return "\n".join(rows) + "\n"

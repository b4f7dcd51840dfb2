"""Conformance suite for systems of databases: what reader and writer of any of them must do.

    from placement.testing.databases import DATABASE_CHECKS, check_database

    @pytest.mark.parametrize("check", DATABASE_CHECKS, ids=lambda check: check.__name__)
    def test_my_database(check):
        check(placement.databases.load_system("my-database"), seed=0, count=200)

Generated deployments are written and read again. Names that try to leave their quotes are names
again afterwards, or are refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from placement.databases.deployment import Deployment
from placement.databases.findings import broken
from placement.databases.localities import Localities, Locality
from placement.databases.system import (
    DatabaseSystem,
    Request,
    Script,
    load_system,
    read_deployment,
    write_deployment,
)
from placement.errors import InputError, PlacementError, UnsupportedError
from placement.model.constraints import majority
from placement.testing.conformance import ConformanceError

_SITES = ("us-east-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-south-1", "sa-east-1")
_MOST_AT_A_SITE = 3

_HOSTILE = (
    "x'", "x''", 'x"', "x`", "x\\", "x\\'", "x;", "x; DROP DATABASE app; --", "x' OR '1'='1",
    "x'); DROP TABLE t; --", "x */ DROP /* y", "-- x", "x--", "# x", "$(reboot)", "`reboot`",
    "x\ny", "x\r\ny", "x\ty", "x,y", "x=y", "x:y", "x: y", "{x}", "[x]", "x}", "x]", "+x", "-x",
    "*", "%", "x%s", "\u2028", "\u202ex", "é", "東京", "x y", " x", "x ", ".", "..", "/", "../x",
    "/*T![placement] x */", "&amp;", "<x>", "x|y", "x>y", "x&y", "!x", "~x", "x?", "@x", "^x",
    "null", "true", "1", "1e9", "NULL", "SELECT", "select", "x\x1b[31m", "x\x7f", '"x"', "'x'",
    "\\", "\\\\", "'", '"', "`", ";", "x" * 300,
)  # fmt: skip
"""Names that leave their quotes where an exporter forgets to escape."""


@dataclass(frozen=True, slots=True)
class DeploymentWorld:
    """A generated deployment, and the names that it is written with."""

    deployment: Deployment
    localities: Localities
    name: str = "app"


def _localities(system: DatabaseSystem) -> Localities:
    rows = []
    for s, site in enumerate(_SITES):
        for k in range(_MOST_AT_A_SITE if system.servers else 1):
            name = f"{site}-n{k + 1}" if system.servers else f"r{s}.{site}"
            facts = {
                "cloud": "aws", "region": site, "zone": f"{site}a", "nodes": "9",
                "host": f"10.0.{s}.{k + 1}", "id": str(s * _MOST_AT_A_SITE + k + 1),
            }  # fmt: skip
            rows.append(Locality(name, site, facts))
    return Localities(_SITES, tuple(rows))


def _deployment(rng: random.Random) -> Deployment:
    """Return a deployment with a leader, and sometimes a failover order, votes, learners."""
    chosen = rng.sample(_SITES, rng.randint(1, len(_SITES)))
    voters = {site: rng.choice((1, 1, 1, 2, 3)) for site in chosen}
    others = {
        site: rng.randint(1, _MOST_AT_A_SITE - voters.get(site, 0))
        for site in _SITES
        if rng.random() < 0.2 and voters.get(site, 0) < _MOST_AT_A_SITE
    }
    votes = sum(voters.values())
    commit = None
    if rng.random() < 0.2:
        commit = rng.randint(1, votes)
    order = rng.sample(chosen, rng.randint(0, len(chosen)))
    return Deployment.of("plan", voters, others, leaders=order, commit=commit)


def stores_without_leader(seed: int, count: int) -> Iterator[Deployment]:
    """Yield generated deployments of stores whose requests name their quorums."""
    rng = random.Random(seed)
    for _ in range(count):
        chosen = rng.sample(_SITES, rng.randint(1, 4))
        voters = {site: rng.randint(1, 3) for site in chosen}
        votes = sum(voters.values())
        levels = [q for q in (1, 2, 3, majority(votes), votes) if q <= votes]
        yield Deployment.of("plan", voters, read=rng.choice(levels), commit=rng.choice(levels))


def deployment_worlds(
    system: DatabaseSystem, seed: int = 0, count: int = 100
) -> Iterator[DeploymentWorld]:
    """Yield generated deployments: one in four for a store without a leader."""
    rng = random.Random(seed)
    names = _localities(system)
    leaderless = stores_without_leader(seed, count)
    for number in range(count):
        deployment = next(leaderless) if number % 4 == 3 else _deployment(rng)
        yield DeploymentWorld(deployment, names)


def hostile_names(seed: int = 0, count: int = 100) -> Iterator[str]:
    """Yield names that try to leave their quotes: a fixed list, then random mixtures of it."""
    yield from _HOSTILE[:count]
    rng = random.Random(seed)
    for _ in range(count - len(_HOSTILE)):
        yield "".join(rng.choice(_HOSTILE) for _ in range(rng.randint(1, 4)))


def _demand(condition: bool, system: DatabaseSystem, what: object, message: str) -> None:
    if not condition:
        raise ConformanceError(f"{system.name!r}: {message}: {what!r}")


def _written(
    system: DatabaseSystem,
    deployment: Deployment,
    request: Request,
    present: Deployment | None = None,
) -> Script | None:
    """Return the text; None where the system refuses, which needs a reason."""
    try:
        return write_deployment(system, deployment, request, present)
    except UnsupportedError as error:
        _demand(len(str(error).split()) > 6, system, deployment, "refuses without a reason")
        return None
    except InputError as error:
        _demand(bool(error.field), system, deployment, "an error that names no field")
        return None


def _same(
    system: DatabaseSystem, world: DeploymentWorld, request: Request, script: Script
) -> Deployment:
    reading = read_deployment(system, (("written", script.text),), request)
    said = system.keeps(world.deployment)
    differences = said.differences(reading.deployment)
    _demand(not differences, system, world.deployment, f"write and read differ ({differences})")
    _demand(
        not broken(reading.findings), system, reading.findings, "finds its own text to be broken"
    )
    _demand(
        bool(script.notes) or said.roles == world.deployment.roles,
        system,
        world.deployment,
        "leaves something out without a note",
    )
    return reading.deployment


def check_round_trip(system: DatabaseSystem, seed: int = 0, count: int = 100) -> None:
    """Check that a written deployment is read again, and that the rest is refused or noted.

    What was read is written and read once more, and has not changed.
    """
    taken = 0
    for world in deployment_worlds(system, seed, count):
        request = system.request(world.localities, world.name)
        script = _written(system, world.deployment, request)
        if script is None:
            continue
        taken += 1
        again = write_deployment(system, world.deployment, request)
        _demand(again == script, system, world.deployment, "writes two texts for one deployment")
        _demand(script.text.endswith("\n"), system, script.text, "the last line has no end")
        found = _same(system, world, request, script)
        once_more = _written(
            system, found, system.request(world.localities, found.name or world.name)
        )
        if once_more is None:
            raise ConformanceError(f"{system.name!r}: does not write what it read: {found!r}")
        _same(system, world, request, once_more)
    _demand(taken > 0, system, count, "refuses every deployment")


def check_moves(system: DatabaseSystem, seed: int = 0, count: int = 100) -> None:
    """Check that a text with steps from a present deployment states the same placement."""
    before: Deployment | None = None
    for world in deployment_worlds(system, seed, count):
        request = system.request(world.localities, world.name)
        script = _written(system, world.deployment, request)
        if script is None:
            continue
        now = _same(system, world, request, script)
        if before is not None:
            moved = _written(system, world.deployment, request, before)
            if moved is not None:
                _same(system, world, request, moved)
        before = now


def check_names_stay_data(system: DatabaseSystem, seed: int = 0, count: int = 100) -> None:
    """A hostile name of a database or a place is refused, or read again as it was."""
    for name in hostile_names(seed, count):
        plain = _localities(system)
        if not name.strip():
            continue
        rows = tuple(
            Locality(name if i == 0 else row.name, row.site, row.facts)
            for i, row in enumerate(plain.rows)
        )
        for localities, database in ((plain, name), (Localities(_SITES, rows), "app")):
            request = system.request(localities, database)
            for deployment in (
                Deployment.of("plan", dict.fromkeys(_SITES[:3], 1), leaders=_SITES[:2]),
                Deployment.of("plan", dict.fromkeys(_SITES[:3], 1), read=2, commit=2),
            ):
                script = _written(system, deployment, request)
                if script is not None:
                    world = DeploymentWorld(deployment, localities, database)
                    found = _same(system, world, request, script)
                    if found.name:
                        _demand(found.name == database, system, name, "reads another name")


def check_bad_texts(system: DatabaseSystem, seed: int = 0, count: int = 100) -> None:
    """A text that is no configuration, or half of one, is an error that names the file."""
    request = system.request(_localities(system), "app")
    texts = ["", " ", "\n", "{}", "[]", "null", "1", "x", "'", '"', "{", "[[[", "ALTER", "a: b"]
    texts += ["\0", "é\n" * 9]
    for world in deployment_worlds(system, seed, max(8, count // 20)):
        script = _written(system, world.deployment, system.request(world.localities, "app"))
        if script is not None:
            text = script.text
            texts += [text[: len(text) * part // 7] for part in range(1, 7)]
            texts += [text.replace("1", "-1"), text.replace("1", "x"), text + text]
    for text in texts:
        try:
            read_deployment(system, (("some.file", text),), request)
        except InputError as error:
            _demand("some.file" in str(error), system, text, f"no file in the error {error}")
        except PlacementError as error:
            _demand(False, system, text, f"an error that is not about input: {error!r}")


def check_described(system: DatabaseSystem, seed: int = 0, count: int = 100) -> None:
    """Check that a system declares its inputs, its outputs, its limits and its validation."""
    del seed, count
    words = (system.name, system.title, system.inputs, system.says, system.cannot)
    for text in (*words, system.validated):
        _demand(bool(text.strip()), system, words, "leaves a description empty")


DATABASE_CHECKS: tuple[Callable[..., None], ...] = (
    check_round_trip,
    check_moves,
    check_names_stay_data,
    check_bad_texts,
    check_described,
)
"""All checks: callables (system, seed, count) that raise ConformanceError."""


def check_database(system: DatabaseSystem | str, *, seed: int = 0, count: int = 100) -> None:
    """Run every check on a system (or its name) with `count` drawn deployments and names.

    ConformanceError with the first check that fails.
    """
    chosen = load_system(system) if isinstance(system, str) else system
    for check in DATABASE_CHECKS:
        check(chosen, seed=seed, count=count)

"""Registry of database systems: readers and writers of the configuration of one database.

A system is an entry point of the group ``placement.databases``::

    [project.entry-points."placement.databases"]
    my-database = "my_package.my_module:SYSTEM"
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from placement.databases.deployment import Deployment
from placement.databases.findings import Finding
from placement.databases.localities import Localities, name_refusals
from placement.errors import InputError, UnsupportedError, refused, require
from placement.methods.options import Setting, all_settings
from placement.support.checks import text
from placement.support.entry_points import Group

if TYPE_CHECKING:
    from placement.databases.servers import MovePath

Texts = Sequence[tuple[str, str]]
"""Inputs: pairs of a file's name, for messages, and its content."""


@dataclass(frozen=True, slots=True)
class Request:
    """Names and settings that reading and writing need beside the text.

    Attributes
    ----------
    localities
        Names of places.
    name
        What is placed: a database, a keyspace, a cluster. Empty: the only one that there is.
    settings
        Of the system, by name; all of them, checked.
    """

    localities: Localities
    name: str = ""
    settings: Mapping[str, bool | int | float | str] = dataclasses.field(default_factory=dict)

    def text(self, setting: str) -> str:
        """Return a setting as text."""
        return str(self.settings[setting])

    def choose(self, known: Collection[str], kinds: tuple[str, str], make: str, source: str) -> str:
        """Return the deployment with a given name in a source, or the only deployment.

        Parameters
        ----------
        known
            Names in the source.
        kinds
            Word for one of them, and for several.
        make
            Statement that makes one.
        source
            Where they are, for messages.

        Raises
        ------
        InputError
            When the name is not among them, and without a name when there is not exactly one.
        """
        found = [name for name in known if name == self.name] if self.name else list(known)
        if len(found) != 1:
            one, several = kinds
            words = f"no such {one}" if self.name else f"several {several}, or none"
            expected = "one of " + ", ".join(known) if known else f"{make} …"
            raise refused(source, "--database", words, self.name, expected)
        return found[0]


@dataclass(frozen=True, slots=True)
class Reading:
    """A configuration as read.

    Attributes
    ----------
    deployment
        The roles.
    findings
        Rules of the database itself that the configuration breaks, and what the roles leave out.
    """

    deployment: Deployment
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """A configuration as written.

    Attributes
    ----------
    text
        The statements or the document; it ends with a line feed.
    notes
        What the reader must know, a sentence each: what the system cannot be told, what to do
        after a failover.
    """

    text: str
    notes: tuple[str, ...] = ()


def _no_reason(deployment: Deployment, request: Request) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class DatabaseSystem:
    """A database whose placement configuration can be read and written.

    Attributes
    ----------
    name
        What users type.
    title
        Name of the product.
    inputs
        What `read` accepts.
    read
        Texts of a configuration -> roles and findings.
    write
        A deployment that is not refused, and the steps from the present one (None where it is not
        known) -> text. Reading the text again gives `said` of the deployment.
    says, cannot
        What the configuration can and cannot say, for `placement db export --list` and the page.
    validated
        On what the written text was tried, with version, or that it was not.
    refuses
        A deployment -> why it cannot be said, beside what the fields below say.
    settings
        Settings of reading and writing, by name.
    order
        How much of the order of leaders the configuration keeps.
    said
        A deployment -> what the configuration keeps of it, where that is not told by `order`. Where
        that is less, the script has a note that says so.
    keeps_text
        Whether `kept` of a deployment that was read is a configuration that `read` takes: export
        returns it where no role has changed.
    expresses
        Of special roles (:data:`placement.databases.deployment.ROLES`), "ties" of leaders,
        "zones" inside a site, "adapts" and "elect": what the writer can say. The rest is refused.
    commits
        "majority": under a leader, by a majority; "leader": under a leader, by any number of
        votes; "any": also without a leader. The rest is refused.
    named
        Word for what must be named (--database) and the form of its name; no word, nothing.
    servers
        What the name of a server has to be, and whether a name is that, where the configuration
        names servers. The table of localities then has a row for each server, several for one
        site; else a row for each place.
    """

    name: str
    title: str
    inputs: str
    read: Callable[[Texts, Request], Reading]
    write: Callable[[Deployment, Request, MovePath | None], Script]
    says: str
    cannot: str
    validated: str
    refuses: Callable[[Deployment, Request], Sequence[str]] = _no_reason
    settings: Mapping[str, Setting] = dataclasses.field(default_factory=dict)
    order: Literal["all", "first", "none"] = "all"
    said: Callable[[Deployment], Deployment] | None = None
    keeps_text: bool = False
    expresses: frozenset[str] = frozenset()
    commits: Literal["majority", "leader", "any"] = "majority"
    named: tuple[str, str] = ("", "")
    servers: tuple[str, Callable[[str], object]] | None = None

    def keeps(self, deployment: Deployment) -> Deployment:
        """Return what the configuration keeps of a deployment."""
        if self.said is not None:
            return self.said(deployment)
        if self.order == "all":
            return deployment
        leaders = deployment.leaders[: self.order == "first"]
        return dataclasses.replace(deployment, leaders=leaders, ranks=())

    def request(
        self, localities: Localities, name: str = "", settings: Mapping[str, object] | None = None
    ) -> Request:
        """Return the request with every setting present and checked.

        Raises
        ------
        InputError
            For an unknown setting, or a value that it does not take.
        """
        checked = all_settings(self.settings, settings or {}, self.title)
        return Request(localities, name, MappingProxyType(checked))


SYSTEMS = Group(
    "placement.databases",
    "system",
    lambda found: found if isinstance(found, DatabaseSystem) else None,
    "a DatabaseSystem",
)
"""All registered systems."""


SHORT_NAMES = MappingProxyType({"crdb": "cockroachdb", "postgres": "postgresql"})
"""Short name that operators type -> the name that the system is registered under."""


def available() -> tuple[str, ...]:
    """Names of all registered systems, sorted; imports none of them."""
    return SYSTEMS.names()


def load_system(name: str) -> DatabaseSystem:
    """Return the system registered under a name, or under the one of `SHORT_NAMES`.

    Raises
    ------
    InputError
        When there is none, with the closest name that there is.
    UnsupportedError
        When the registered object is no system, or its module cannot be imported.
    """
    asked = text(name, "system")
    return SYSTEMS.load(SHORT_NAMES.get(asked, asked))


def read_deployment(system: DatabaseSystem, texts: Texts, request: Request) -> Reading:
    """Read a configuration; a text that cannot be understood is refused by file and field."""
    require(texts, "files", "no file", expected=system.inputs)
    return system.read(texts, request)


def write_deployment(
    system: DatabaseSystem,
    deployment: Deployment,
    request: Request,
    present: Deployment | None = None,
) -> Script:
    """Write a deployment in the language of a system.

    With the deployment that runs at `present`, the text has the steps from it, in a safe order.
    What cannot be said in this system is refused with every reason: UnsupportedError.
    """
    from placement.databases.servers import path_between

    if present is None and (unchanged := _as_read(system, deployment, request)) is not None:
        return unchanged
    reasons = [*_common_refusals(deployment, system, request), *system.refuses(deployment, request)]
    if reasons:
        raise UnsupportedError(
            f"{system.title} cannot express this placement: " + "; ".join(dict.fromkeys(reasons))
        )
    deployment, path = _in_terms_of(system, deployment), None
    if present is not None:
        path = path_between(_in_terms_of(system, present), deployment)
    script = system.write(deployment, request, path)
    if system.order == "all" or len(deployment.leaders) <= (system.order == "first"):
        return script
    what = "failover order" if system.order == "first" else "setting that prefers a leader"
    order = ", ".join(deployment.leaders)
    note = f"{system.title} has no {what}; the plan's order of leaders is {order}"
    return Script(script.text, (*script.notes, note))


def _in_terms_of(system: DatabaseSystem, deployment: Deployment) -> Deployment:
    """Return a deployment without what another system calls its servers and says beside them."""
    if deployment.system == system.name:
        return deployment
    members = tuple(
        dataclasses.replace(one, identity="", address="", kept={}) for one in deployment.members
    )
    return dataclasses.replace(deployment, members=members, kept="")


def _as_read(system: DatabaseSystem, deployment: Deployment, request: Request) -> Script | None:
    """Return the configuration as it was read, where that still says the same; else None."""
    same = deployment.system == system.name and request.name in ("", deployment.name)
    if not (system.keeps_text and same and deployment.kept):
        return None
    try:
        kept = read_deployment(system, (("kept", deployment.kept),), request).deployment
    except InputError:  # names of places that the table no longer has
        return None
    if kept.roles != deployment.roles:
        return None
    return Script(deployment.kept, ("the configuration as it was read: no role has changed",))


def _common_refusals(deployment: Deployment, system: DatabaseSystem, request: Request) -> list[str]:
    """Return why no system of this kind can say a deployment."""
    from placement.databases.servers import server_refusals

    reasons: list[str] = []
    if deployment.read is not None and system.commits != "any":
        reasons.append("it has a leader, and the placement is of a store without one")
    elif deployment.commit is not None and system.commits == "majority":
        reasons.append(
            f"commits wait for a majority, not for {deployment.commit} of {deployment.voters}"
        )
    features: list[tuple[str, str]] = [
        (role, f"{count} of the replicas at {one.site} have the role {role}")
        for one in deployment.held
        for role, count in one.special
    ]
    zones = [one.site for one in deployment.held if one.zones]
    features += [("zones", f"{site} has zones, and replicas in each") for site in zones]
    for feature, is_there, words in (
        ("ties", deployment.ranks, f"leaders are equally preferred: {deployment.order}"),
        ("adapts", deployment.least, "commits wait for fewer votes after a loss"),
        ("elect", deployment.elect, f"a new leader needs {deployment.elect} votes"),
    ):
        features += [(feature, words)] * bool(is_there)
    reasons += [words for feature, words in features if feature not in system.expresses]
    if free := deployment.free_voters + deployment.free_non_voters:
        reasons.append(f"{free} replicas have no place")
    if not deployment.voters:
        reasons.append("no replica votes")
    for site in deployment.leaders:
        if site not in deployment.voters_at:
            reasons.append(f"{site} should lead and holds no voter")
    if deployment.quorum > deployment.voters:
        reasons.append(f"{deployment.quorum} votes are asked of {deployment.voters} voters")
    what, form = system.named
    if what and not re.fullmatch(form or ".+", request.name, re.DOTALL):
        reasons.append(f"{request.name!r} is not the name of a {what} (--database)")
    if system.servers is not None:
        kind, fits = system.servers
        reasons += server_refusals(deployment, request.localities, fits, kind)
    elif "zones" not in system.expresses:
        more = [str(request.settings[key]) for key in ("locality_key",) if key in request.settings]
        reasons += name_refusals(request.localities, deployment.sites, system.title, *more)
    return reasons

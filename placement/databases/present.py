"""The configuration that runs today, from any file that says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import InputError, located
from placement.evaluation.moves import CurrentSites
from placement.model.configuration import Configuration
from placement.model.instance import Instance

if TYPE_CHECKING:
    from placement.databases.deployment import Deployment
    from placement.plan import Plan

_EXPECTED = (
    "a plan, a deployment that was read from a database, JSON or TOML with leader, voters and "
    'replicas; or database = "SYSTEM" (--database) beside it for the output of a database'
)


def read_present(instance: Instance, path: str, *, database: str | None = None) -> Configuration:
    """Return the configuration of a file on the sites of an instance.

    The file is a plan; JSON or TOML with `leader`, `voters` and `replicas`; a deployment that
    ``placement db read`` wrote; or the output of a `database`, a system. The error about another
    file names the option that would make it right.
    """
    if database is not None:
        from placement.databases.localities import load_localities
        from placement.databases.system import load_system, read_deployment
        from placement.io.formats.files import read_text

        system = load_system(database)
        request = system.request(load_localities(None, instance.sites), "", {})
        reading = read_deployment(system, [(path, read_text(path))], request)
        with located(path):
            return _of_deployment(instance, reading.deployment)
    from placement.databases.deployment import load_deployment

    try:
        plan = _plan_of(path)
        if plan is None:
            return _of_deployment(instance, load_deployment(path)[0])
        leader = plan.leader or next((s for s in instance.sites if s in plan.voters), "")
        return CurrentSites(leader, plan.voters, plan.replicas).on(instance)
    except InputError as error:
        expected = _EXPECTED if error.field == "format" else error.expected
        raise error.at("" if error.source else path, expected=expected) from None


def _plan_of(path: str) -> Plan | None:
    """Return the plan of a file, which has a configuration; None for a file of another kind."""
    from placement.io.formats.document import read_document
    from placement.io.plan_file import FORMAT, load_plan

    document = read_document(path, _EXPECTED)
    if document.values.get("format") != FORMAT:
        return None
    plan = load_plan(path)
    if plan.configuration is None:
        raise InputError("a plan without a configuration", source=path, field="status",
                         value=plan.status.value, expected=_EXPECTED)  # fmt: skip
    return plan


def read_running(instance: Instance | None, path: str) -> Plan:
    """Return what runs today as a plan: the plan of a file, or its configuration evaluated.

    Raises
    ------
    InputError
        As :func:`read_present`, and without an instance for a file that is no plan.
    """
    from placement.databases.deployment import load_deployment
    from placement.plan import evaluate
    from placement.problem import Problem

    plan = _plan_of(path)
    if plan is not None:
        return plan
    if instance is None:
        raise InputError(
            "a file without its instance", source=path, field="--instance", expected="INSTANCE"
        )
    here = read_present(instance, path)
    quorum = load_deployment(path)[0].commit
    sizes = len(here.replicas), len(here.voters)
    problem = Problem(instance, replicas=sizes[0], voters=sizes[1], quorum=quorum)
    return evaluate(problem, here, method="as read")


def _of_deployment(instance: Instance, deployment: Deployment) -> Configuration:
    """Return the sites of a deployment with their roles."""
    from placement.databases.deployment import check_sites

    check_sites(deployment, instance.sites)
    for one in deployment.held:
        if one.replicas > 1 or {"arbiter", "witness"} & {*one.role_names}:
            words = "several replicas at a site, or a voter without data"
            expected = "one replica with data; `placement db evaluate` takes others"
            raise InputError(words, field=one.site, value=one.counts, expected=expected)
    voters = [one.site for one in deployment.held if one.voters]
    if not voters or deployment.free_voters or deployment.free_non_voters:
        words = "the configuration does not name the sites of its voters"
        expected = "a configuration whose replicas are at named sites"
        raise InputError(words, field="voters", value=voters, expected=expected)
    led = [name for name in deployment.leaders if name in voters]
    if not led and deployment.read is None and len(voters) > 1:
        expected = "the site of the leader, first in the list"
        raise InputError("nothing says who leads", field="leaders", expected=expected)
    replicas = tuple(one.site for one in deployment.held)
    return CurrentSites((led or voters)[0], tuple(voters), replicas).on(instance)

"""Exported texts of generated deployments and hostile names."""

from placement.databases import Deployment, load_system
from placement.databases.system import write_deployment
from placement.errors import InputError, UnsupportedError
from placement.testing.databases import deployment_worlds, hostile_names

PLAIN = {"us-east-1": 1, "us-west-2": 1, "eu-west-1": 1}


def written(system, deployment, localities, name, **settings):
    try:
        request = system.request(localities, name, settings)
        return write_deployment(system, deployment, request).text
    except (InputError, UnsupportedError):
        return None


def plans(name, count, **settings):
    system = load_system(name)
    found = [
        written(system, world.deployment, world.localities, "app", **settings)
        for world in deployment_worlds(system, 7, count)
    ]
    return [text for text in found if text is not None]


def hostile(name, count, *, leader=True, voters=PLAIN, **settings):
    """Return the texts of one deployment for databases with hostile names."""
    system = load_system(name)
    names = next(iter(deployment_worlds(system))).localities
    deployment = Deployment.of("plan", voters, leaders=("us-east-1",))
    if not leader:
        deployment = Deployment.of("plan", voters, read=2, commit=2)
    found = [
        written(system, deployment, names, each, **settings) for each in hostile_names(3, count)
    ]
    return [text for text in found if text is not None]

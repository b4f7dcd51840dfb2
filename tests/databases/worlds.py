"""The deployments of the golden files, with servers and zones for every system."""

import random

from placement.databases import Deployment, Localities, Locality
from placement.testing.databases import deployment_worlds

SITES = ("us-east-1", "us-west-2", "eu-west-1", "ap-south-1")
COUNTS = (2, 2, 2, 1)

BEFORE = Deployment.of(
    "plan", {"us-east-1": 2, "us-west-2": 1}, {"ap-south-1": 1}, leaders=("us-east-1",)
)
AFTER = Deployment.of(
    "plan",
    {"us-east-1": 1, "us-west-2": 1, "eu-west-1": 1},
    {"ap-south-1": 1},
    leaders=("eu-west-1", "us-east-1", "us-west-2"),
)
CATALOGUE = Deployment.of(
    "plan",
    {"us-east-1": 2, "us-west-2": 2, "eu-west-1": 1},
    {"ap-south-1": 1},
    leaders=("us-west-2", "us-east-1"),
)
QUORUMS = Deployment.of("plan", {"us-east-1": 2, "eu-west-1": 3}, commit=3, read=3)


def localities(system):
    """Return the names of places, or of servers where the system names those."""
    rows = []
    for s, (site, count) in enumerate(zip(SITES, COUNTS, strict=True)):
        for k in range(count if system.servers else 1):
            rows.append(
                Locality(
                    f"db{s}{k}" if system.servers else site,
                    site,
                    {
                        "cloud": "aws",
                        "zone": f"{site}a",
                        "host": f"db{s}{k}.example",
                        "id": str(2 * s + k + 1),
                    },
                )
            )
    return Localities(SITES, tuple(rows))


def pairs(system, count=25, **fits):
    """Yield deployments before and after a move, with names for both, under a majority."""
    worlds = [
        world
        for world in deployment_worlds(system, seed=3, count=150)
        if world.deployment.read is None
        and world.deployment.commit is None
        and world.deployment.voters <= fits.get("voters", 99)
        and (world.deployment.leaders or not fits.get("led"))
    ]
    rng = random.Random(5)
    for _ in range(count):
        one, other = rng.sample(worlds, 2)
        yield one.deployment, other.deployment, one.localities

"""Placement configurations of real databases: read, lint, evaluate, write, compare.

    from placement.databases import Deployment, Localities, Request, load_system

    etcd = load_system("etcd")
    reading = etcd.read((("members.json", text),), Request(Localities.plain(instance.sites)))
    reading.deployment.leaders

A system is an entry point of the group ``placement.databases``, so that another distribution can
bring its own. ``placement.testing.databases`` is the conformance suite.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from placement.databases.deployment import Deployment as Deployment
    from placement.databases.deployment import Member as Member
    from placement.databases.deployment import OpenReplicas as OpenReplicas
    from placement.databases.deployment import SiteReplicas as SiteReplicas
    from placement.databases.findings import Finding as Finding
    from placement.databases.localities import Localities as Localities
    from placement.databases.localities import Locality as Locality
    from placement.databases.system import DatabaseSystem as DatabaseSystem
    from placement.databases.system import Reading as Reading
    from placement.databases.system import Request as Request
    from placement.databases.system import Script as Script
    from placement.databases.system import available as available
    from placement.databases.system import load_system as load_system

_HOME = {
    "placement.databases.deployment": ("Deployment", "Member", "OpenReplicas", "SiteReplicas"),
    "placement.databases.findings": ("Finding",),
    "placement.databases.localities": ("Localities", "Locality"),
    "placement.databases.system": (
        "DatabaseSystem",
        "Reading",
        "Request",
        "Script",
        "available",
        "load_system",
    ),
}

__all__ = [*chain.from_iterable(_HOME.values())]

__getattr__, __dir__ = lazy_names(__name__, _HOME)

"""Placement configurations of real databases: read, lint, evaluate, write, compare.

    from placement.databases import Deployment, Localities, Request, load_system

    etcd = load_system("etcd")
    reading = etcd.read((("members.json", text),), Request(Localities.plain(instance.sites)))
    reading.deployment.leaders

A system is an entry point of the group ``placement.databases``, so that another distribution can
bring its own. ``placement.testing.databases`` is the conformance suite.
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

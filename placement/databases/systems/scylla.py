"""ScyllaDB: the keyspaces of Cassandra, with lists of racks, and steps by one replica."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from placement.databases.systems.cassandra import SYSTEM as CASSANDRA
from placement.databases.systems.cassandra import read_keyspace, refuse_keyspace, write_keyspace

SYSTEM = replace(
    CASSANDRA,
    name="scylla",
    title="ScyllaDB",
    inputs=f"{CASSANDRA.inputs}; a list of racks counts one replica each",
    read=partial(read_keyspace, scylla=True),
    refuses=partial(refuse_keyspace, title="ScyllaDB"),
    write=partial(write_keyspace, scylla=True),
    named=("keyspace: 1 to 192 letters, digits and '_'", r"[A-Za-z0-9_]{1,192}"),
    cannot=f"{CASSANDRA.cannot}; racks of a datacentre that is not placed by racks yet",
    validated="syntax only, not run against a server",
)

"""Operations that the nearest voter or the nearest lease holder handles, as trips of clients.

Where all replicas have the role, the nearest of them is the nearest replica. Where only some hold a
lease, the trip to the nearest of those is a wait, ``client: 1 of lease holders``.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from placement.errors import InputError
from placement.model.waits import Clause, Wait

if TYPE_CHECKING:
    from placement.model.operations import Operation
    from placement.model.protocols import Protocol

__all__ = ["handled_at_replicas"]


def handled_at_replicas(operation: Operation, protocol: Protocol | None) -> Operation:
    """Return the operation with trips to replicas, and to lease holders as waits.

    Parameters
    ----------
    operation
        Of an instance. "voters" is taken for "replicas" unless the voters hold the leases: the
        question is refused where some replicas do not vote
        (:func:`placement.evaluation.waits.wait_checks.check_waits`).
    protocol
        Of the question, if any.

    Raises
    ------
    InputError
        Where a lease holder would ask the leader or others: only its answer is known.
    """
    if operation.at == "replicas":
        return operation
    leased = protocol is not None and protocol.has_leases
    everyone = leased and protocol is not None and protocol.lease_holders(1) is None
    voting = leased and protocol is not None and protocol.voters_hold_leases
    if (everyone or operation.at == "voters") and not voting:
        return dataclasses.replace(operation, at="replicas")
    if operation.relay or any(Wait(str(wait)).origin == "near" for wait in operation.waits):
        raise InputError(
            f"operation {operation.name!r} goes on from the nearest of the lease holders, and not "
            "all replicas hold a lease",
            field="at",
            value=operation.at,
            expected="relay = 0 and no wait of 'near', leases on all replicas, or at = 'replicas'",
        )
    trip = Wait("client", (Clause(1, "lease holders"),), operation.near)
    waits = (*operation.waits, trip) if operation.near else operation.waits
    return dataclasses.replace(operation, near=0.0, waits=waits, at="replicas")

"""Reads and writes of the clients of an instance, for problems that know no other operations."""

from __future__ import annotations

import numpy as np

from placement.errors import InputError
from placement.model.instance import Instance
from placement.support.checks import FloatArray


def reads_and_writes(instance: Instance) -> tuple[FloatArray, FloatArray]:
    """Return reads and writes of each client over all intervals; shape (clients,) each.

    Raises
    ------
    InputError
        When no client reads.
    """
    issued = instance.counts.sum(axis=0)
    writes = np.array([operation.is_transaction for operation in instance.operations])
    reads: FloatArray = issued[:, ~writes].sum(axis=1)
    if not reads.any():
        raise InputError(
            "no client reads", field="operations",
            value=[operation.name for operation in instance.operations],
            expected="an operation of the kind 'read' with a count > 0",
        )  # fmt: skip
    return reads, np.asarray(issued[:, writes].sum(axis=1))

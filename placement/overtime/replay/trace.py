"""Trace of demand: counts of many databases over the same intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from placement.errors import InputError
from placement.model.instance import Instance
from placement.support.checks import LARGEST, FloatArray, unique_names
from placement.workloads.activity import Timeline
from placement.workloads.fleets import Block

__all__ = ["Trace"]


@dataclass(frozen=True, eq=False)
class Trace:
    """Counts per database, interval, client and operation.

    The counts are checked but not copied where they are contiguous float64 already: a thousand
    databases are a hundred megabytes.

    Parameters
    ----------
    databases
        Names, unique.
    intervals
        Labels, unique, oldest first. Their length is whatever it is: minutes or days.
    counts
        n[db, i, c, o], finite, >= 0, shape (databases, intervals, clients, operations); clients and
        operations in the order of the instance that the trace is replayed on.

    Raises
    ------
    InputError
        For duplicate names, another shape, or a count that is negative or not finite.
    """

    databases: tuple[str, ...]
    intervals: tuple[str, ...]
    counts: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "databases", unique_names(self.databases, "databases"))
        object.__setattr__(self, "intervals", unique_names(self.intervals, "intervals"))
        try:
            counts = np.ascontiguousarray(self.counts, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"not a table of numbers ({error})", field="counts", expected="numbers"
            ) from None
        wanted = (len(self.databases), len(self.intervals))
        if counts.ndim != 4 or counts.shape[:2] != wanted:
            raise InputError(
                "wrong shape",
                field="counts",
                value=counts.shape,
                expected=f"{wanted[0]} databases × {wanted[1]} intervals × clients × operations",
            )
        if not counts.size:
            raise InputError("nothing to replay", field="counts", expected="at least one count")
        # The least is NaN if anything is, and the largest shows infinity: two passes, no copies.
        if not (counts.min() >= 0 and counts.max() <= LARGEST):
            bad = np.argwhere(~((counts >= 0) & (counts <= LARGEST)))[0].tolist()
            raise InputError(
                f"out of range at database {self.databases[bad[0]]!r}, interval "
                f"{self.intervals[bad[1]]!r}, client {bad[2]}, operation {bad[3]}",
                field="counts",
                value=float(counts[tuple(bad)]),
                expected=f"a number from 0 to {LARGEST:g}",
            )
        object.__setattr__(self, "counts", counts)

    @classmethod
    def of_instance(cls, instance: Instance) -> Trace:
        """Return the demand of an instance as the trace of one database."""
        return cls((instance.name,), instance.intervals, instance.counts[np.newaxis])

    @classmethod
    def of_blocks(cls, blocks: Iterable[Block], timeline: Timeline) -> Trace:
        """Return generated databases (:func:`placement.workloads.fleets`) as one trace."""
        parts = list(blocks)
        if not parts:
            raise InputError("nothing to replay", field="blocks", expected="at least one block")
        return cls(
            tuple(each.name for block in parts for each in block.databases),
            timeline.labels,
            np.concatenate([block.counts for block in parts]).astype(np.float64, copy=False),
        )

    def __len__(self) -> int:
        return len(self.databases)

    def part(self, first: int, last: int) -> Trace:
        """Return the databases from `first` up to, but without, `last`."""
        return Trace(self.databases[first:last], self.intervals, self.counts[first:last])

    def of(self, databases: Sequence[str]) -> Trace:
        """Return some databases by name, in the order given.

        Raises
        ------
        InputError
            For a name that the trace does not have, or given twice.
        """
        place = {name: i for i, name in enumerate(self.databases)}
        names = unique_names(databases, "databases")
        for name in names:
            if name not in place:
                raise InputError(
                    "no such database",
                    field="database",
                    value=name,
                    expected=f"one of the {len(self)} databases of the trace",
                )
        return Trace(names, self.intervals, self.counts[[place[name] for name in names]])

    def merged(self, size: int) -> Trace:
        """Return the same demand in intervals `size` times as long.

        A last interval that is not complete is left out: it would be compared with whole ones.

        Raises
        ------
        InputError
            For a size below 1, or more than there are intervals.
        """
        whole = len(self.intervals) // size if size >= 1 else 0
        if whole < 1:
            raise InputError(
                "out of range",
                field="merge",
                value=size,
                expected=f"1 to {len(self.intervals)}, the number of intervals",
            )
        shape = (len(self), whole, size, *self.counts.shape[2:])
        counts = self.counts[:, : whole * size].reshape(shape).sum(axis=2)
        return Trace(self.databases, self.intervals[: whole * size : size], counts)

    def check_fits(self, instance: Instance) -> None:
        """Refuse an instance of other clients, operations, or, where RTTs vary, intervals."""
        shape = (len(instance.clients), len(instance.operations))
        if self.counts.shape[2:] != shape:
            raise InputError(
                "a trace of other clients or operations",
                field="counts",
                value=self.counts.shape[2:],
                expected=f"{shape[0]} clients × {shape[1]} operations, as in {instance.name}",
            )
        if instance.varying_rtt and instance.intervals != self.intervals:
            raise InputError(
                "the RTTs were measured in other intervals",
                field="intervals",
                value=self.intervals[0],
                expected=f"the {len(instance.intervals)} intervals of {instance.name}, from "
                f"{instance.intervals[0]!r} to {instance.intervals[-1]!r}",
            )

"""Writing a generated workload to Parquet, block by block."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError, MissingDependencyError
from placement.io.formats.files import writing
from placement.model.operations import STANDARD_OPERATIONS
from placement.workloads.calendar import Timeline
from placement.workloads.footprints import Clients
from placement.workloads.generate_counts import Block

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["write_parquet"]


def write_parquet(
    path: str | os.PathLike[str],
    blocks: Iterable[Block],
    clients: Clients,
    timeline: Timeline,
    *,
    force: bool = False,
) -> int:
    """Write blocks as one table: database, interval, client, and a column per operation.

    A row per database, interval and client in which anything was issued; rows of zeros are left
    out. `interval` is the begin of the interval, UTC. One row group per block, so the memory
    is that of one block. The file appears whole or not at all.

    Parameters
    ----------
    path
        Where; the folder must exist.
    blocks
        From :func:`placement.workloads.generate_counts`, of one law.
    clients, timeline
        Those the blocks were generated with.
    force
        Replace an existing file; it stays as it is until the new one is complete.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    MissingDependencyError
        Without pyarrow (``pip install replica-placement[parquet]``).
    InputError
        When the file exists and `force` is false, the folder does not exist, there is no block,
        or a block's shape is not that of `clients` and `timeline`. Nothing is written then.
    """
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependencyError(
            "writing Parquet needs pyarrow: pip install 'replica-placement[parquet]'"
        ) from error

    rows = 0
    with writing(path, force=force) as sink:
        writer = None
        try:
            for block in blocks:
                table = _table(block, clients, timeline)
                if writer is None:
                    writer = pq.ParquetWriter(sink, table.schema)
                writer.write_table(table)
                rows += table.num_rows
            if writer is None:
                raise InputError("nothing to write", field="blocks", expected="at least one block")
        finally:
            if writer is not None:
                writer.close()
    return rows


def _table(block: Block, clients: Clients, timeline: Timeline) -> pa.Table:
    """Return the rows of a block in which anything was issued."""
    import pyarrow as pa

    names = [operation.name for operation in STANDARD_OPERATIONS]
    expected = (len(block.databases), timeline.intervals, len(clients), len(names))
    if block.counts.shape != expected:
        raise InputError(
            "a block of another workload",
            field="counts",
            value=block.counts.shape,
            expected=str(expected),
        )
    moments = np.array(
        [moment.replace(tzinfo=None) for moment in timeline.starts], dtype="datetime64[s]"
    )
    text = pa.dictionary(pa.int32(), pa.string())
    when = pa.timestamp("s", tz="UTC")
    kind = pa.from_numpy_dtype(block.counts.dtype)
    schema = pa.schema(
        [("database", text), ("interval", when), ("client", text), *((n, kind) for n in names)]
    )
    database, interval, client = np.nonzero(block.counts.any(axis=-1))
    issued = block.counts[database, interval, client]
    labels = [each.name for each in block.databases]
    columns = [
        pa.DictionaryArray.from_arrays(database.astype(np.int32), labels),
        pa.array(moments[interval], type=when),
        pa.DictionaryArray.from_arrays(client.astype(np.int32), list(clients.names)),
        *(pa.array(np.ascontiguousarray(column)) for column in issued.T),
    ]
    return pa.Table.from_arrays(columns, schema=schema)

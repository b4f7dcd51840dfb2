"""Tables of keys, read in batches: CSV or Parquet, one row per key.

Columns: ``key``, then ``reads:<site>`` and ``writes:<site>`` for the sites that have any; a site
without a column has no requests. Other columns are refused, so that a misspelt site is not silently
dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError, MissingDependencyError
from placement.io.formats.input_files import check_input
from placement.quorumstore.problem import CountArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["KeyBatch", "read_keys"]


@dataclass(frozen=True, slots=True, eq=False)
class KeyBatch:
    """A run of keys.

    Attributes
    ----------
    names
        The keys.
    reads, writes
        Requests per key and site, shape (k, sites).
    """

    names: tuple[str, ...]
    reads: CountArray
    writes: CountArray


def read_keys(path: str | os.PathLike[str], sites: Sequence[str], size: int) -> Iterator[KeyBatch]:
    """Yield the keys of a table in batches of `size`, in the order of the file.

    Memory is that of one batch (for Parquet, of one batch and one row group).

    Raises
    ------
    InputError
        Naming file, row and column of what is wrong.
    MissingDependencyError
        For Parquet without pyarrow.
    """
    source = Path(path)
    check_input(source)
    frames = _parquet(source, size) if source.suffix == ".parquet" else _csv(source, size)
    first = 1
    found = False
    for frame in frames:
        if frame.empty:
            continue
        found = True
        yield _batch(frame, sites, str(path), first)
        first += len(frame)
    if not found:
        raise InputError("the table has no keys", source=str(path), expected="at least one row")


def _csv(source: Path, size: int) -> Iterator[pd.DataFrame]:
    import pandas as pd

    try:
        # A key may be called "NA" or "null": only an empty cell is missing.
        with pd.read_csv(
            source,
            chunksize=size,
            dtype={"key": str},
            keep_default_na=False,
            na_values={"key": [""]},
        ) as chunks:
            yield from chunks
    except (ValueError, pd.errors.ParserError, UnicodeDecodeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"not a CSV table ({error})", source=str(source), expected="a header and numbers"
        ) from None


def _parquet(source: Path, size: int) -> Iterator[pd.DataFrame]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingDependencyError.of("reading Parquet needs pyarrow", "parquet") from None
    try:
        with pq.ParquetFile(source) as table:
            for batch in table.iter_batches(batch_size=size):
                yield batch.to_pandas()
    except pa.ArrowInvalid as error:
        raise InputError(f"not a Parquet table ({error})", source=str(source)) from None


def _batch(frame: pd.DataFrame, sites: Sequence[str], source: str, first: int) -> KeyBatch:
    if "key" not in frame.columns:
        raise InputError(
            "no column of keys", source=source, field="key", expected="a column named key"
        )
    known = {
        f"{side}:{site}": (side, place)
        for side in ("reads", "writes")
        for place, site in enumerate(sites)
    }
    arrays = {side: np.zeros((len(frame), len(sites))) for side in ("reads", "writes")}
    for column in frame.columns:
        if column == "key":
            continue
        if column not in known:
            raise InputError(
                "unknown column",
                source=source,
                field=str(column),
                expected=f"reads:<site> or writes:<site> with a site of {', '.join(sites)}",
            )
        side, place = known[str(column)]
        try:
            values = frame[column].to_numpy(dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "not a column of numbers",
                source=source,
                field=str(column),
                expected="whole numbers",
            ) from None
        wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0) & (values % 1 == 0)))
        if wrong.size:
            row = int(wrong[0])
            raise InputError(
                "bad count",
                source=f"{source}, row {first + row}",
                field=str(column),
                value=float(values[row]),
                expected="a whole number >= 0; percentiles count requests",
            )
        arrays[side][:, place] = values
    if (arrays["reads"].sum(axis=1) >= 2**48).any() or (
        arrays["writes"].sum(axis=1) >= 2**48
    ).any():
        raise InputError(
            "too many requests to count exactly",
            source=source,
            expected="totals below 2^48 per key",
        )
    names = frame["key"]
    if names.isna().any():
        row = int(np.flatnonzero(names.isna())[0])
        raise InputError("a key without a name", source=f"{source}, row {first + row}", field="key")
    return KeyBatch(
        tuple(str(name) for name in names),
        arrays["reads"].astype(np.int64),
        arrays["writes"].astype(np.int64),
    )

"""Many keys: a table of demands in, a table of configurations out, resumable at any moment.

The table is CSV or Parquet, one row per key, read in batches. Columns: ``key``, then
``reads:<site>`` and ``writes:<site>`` for the sites that have any; a site without a column has no
requests. Other columns are refused, so that a misspelt site is not silently dropped.

Batches are independent, and solving one is a pure function (:func:`solve_batch`), so they run in as
many processes as asked for. Each finished batch is a separate file in ``<target>.parts``, written
whole or not at all; once all are there they are joined into the target, which appears by one
rename. A run that is killed (``kill -9`` included) is continued by running it again: finished
batches are not solved again.

Keys with proportional demand are solved once per run.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import multiprocessing
import os
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO

import numpy as np

from formulations.quorumstore.enumeration import Enumeration
from placement.errors import InputError, MissingDependencyError
from placement.io.formats.document import read_document
from placement.io.formats.files import check_file, write_file, writing
from placement.io.formats.input_files import check_input
from placement.quorumstore import QuorumProblem
from placement.quorumstore.problem import CountArray
from placement.support.status import Status, Termination

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "NO_REQUESTS",
    "KeyBatch",
    "KeyRow",
    "KeysProgress",
    "KeysSummary",
    "canonical",
    "progress_to",
    "read_keys",
    "row_names",
    "solve_batch",
    "solve_keys",
    "to_csv",
]

_REMEMBERED = 200_000
"""Distinct demands whose configuration is remembered within a run."""

_BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

NO_REQUESTS = "no requests"
"""Status of a key without requests."""


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


@dataclass(frozen=True, slots=True)
class KeyRow:
    """Configuration of one key.

    Attributes
    ----------
    key, status
        Name; ``optimal``, ``infeasible`` or ``no requests``.
    value
        Value of the goal.
    replicas
        Names of the sites, joined by ";", in site order.
    n, r, w
        N, R, W.
    normal_read_ms, normal_write_ms, worst_read_ms, worst_write_ms
        Thresholds in normal operation, and their largest values over all losses.
    mean_ms
        Mean latency in normal operation.
    """

    key: str
    status: str
    value: float | None = None
    replicas: str = ""
    n: int | None = None
    r: int | None = None
    w: int | None = None
    normal_read_ms: float | None = None
    normal_write_ms: float | None = None
    worst_read_ms: float | None = None
    worst_write_ms: float | None = None
    mean_ms: float | None = None

    def named(self, key: str) -> KeyRow:
        """Return this row for another key."""
        return replace(self, key=key)


def row_names() -> tuple[str, ...]:
    """Column names, in order."""
    return tuple(entry.name for entry in fields(KeyRow))


def canonical(reads: CountArray, writes: CountArray) -> tuple[CountArray, CountArray]:
    """Reduce each key's demand so that keys with proportional demand become equal.

    Percentiles and means do not change when all counts of a key are divided by their greatest
    common divisor.

    Parameters
    ----------
    reads, writes
        Shape (k, sites).
    """
    both = np.concatenate([reads, writes], axis=1)
    divisor = np.maximum(np.gcd.reduce(both, axis=1), 1)[:, np.newaxis]
    return reads // divisor, writes // divisor


def solve_batch(
    problem: QuorumProblem, reads: CountArray, writes: CountArray
) -> tuple[KeyRow, ...]:
    """Return the optimal configuration of every key of a batch: a pure function.

    Parameters
    ----------
    problem
        The store: RTTs, rules, goal. Its own demand is not used.
    reads, writes
        Requests per key, shape (k, sites).

    Returns
    -------
    One row per key, in order, without a name.
    """
    solver = Enumeration()
    rows = []
    for key_reads, key_writes in zip(reads, writes, strict=True):
        if not (key_reads.any() or key_writes.any()):
            rows.append(KeyRow("", NO_REQUESTS))
            continue
        key = problem.with_demand(key_reads, key_writes)
        plan = solver.solve(key)
        if plan.termination is Termination.INTERRUPTED:
            # The best so far of one key is no answer for a table; its batch is solved again.
            raise KeyboardInterrupt
        found = plan.configuration
        if found is None:
            rows.append(KeyRow("", str(Status.INFEASIBLE)))
            continue
        figures = plan.figures
        rows.append(
            KeyRow(
                "",
                str(plan.status),
                plan.value,
                ";".join(plan.replicas),
                found.size,
                found.read,
                found.write,
                float(figures.normal_read[0]),
                float(figures.normal_write[0]),
                float(figures.worst_read[0]),
                float(figures.worst_write[0]),
                float(figures.mean[0]),
            )
        )
    return tuple(rows)


def to_csv(rows: Iterable[KeyRow], *, header: Sequence[str] = ()) -> bytes:
    """Rows as UTF-8 CSV; floats in their shortest exact form, missing values empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(header)
    for row in rows:
        writer.writerow("" if value is None else value for value in astuple(row))
    return text.getvalue().encode()


@dataclass(frozen=True, slots=True)
class KeysProgress:
    """State of a run: keys done (resumed ones included), demands solved, seconds so far."""

    keys: int
    solved: int
    seconds: float


@dataclass(frozen=True, slots=True)
class KeysSummary:
    """Outcome of a run.

    Attributes
    ----------
    target
        The table of configurations; it exists only if the run finished.
    keys, solved, resumed
        Keys in the table; distinct demands solved in this run; keys of batches that an earlier run
        had finished.
    seconds, termination
        Wall time; ``finished`` or ``interrupted``.
    """

    target: Path
    keys: int
    solved: int
    resumed: int
    seconds: float
    termination: Termination


def progress_to(stream: TextIO, *, every: float = 1.0) -> Callable[[KeysProgress], None]:
    """Return a callback that writes a line to `stream` at most once in `every` seconds."""
    last = -every

    def report(state: KeysProgress) -> None:
        nonlocal last
        if state.seconds - last >= every:
            last = state.seconds
            rate = state.keys / state.seconds if state.seconds > 0 else 0.0
            stream.write(
                f"{state.keys:,} keys, {state.solved:,} solved, {state.seconds:.0f} s, "
                f"{rate:,.0f} keys/s\n"
            )
            stream.flush()

    return report


def solve_keys(
    problem: QuorumProblem,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    batch: int = 500,
    processes: int = 1,
    progress: Callable[[KeysProgress], None] | None = None,
    force: bool = False,
) -> KeysSummary:
    """Solve every key of a table by enumeration.

    Parameters
    ----------
    problem
        The store: RTTs, sites, rules, goal. Its own demand is not used.
    source
        CSV or Parquet table of keys; see the module.
    target
        CSV, or Parquet by its suffix, with the columns of
        :class:`KeyRow`, one row per key in the order of
        `source`.
    batch
        Keys per unit of work.
    processes
        Processes to use; 1: this one.
    progress
        Called after each batch.
    force
        Replace an existing target.

    Raises
    ------
    InputError
        For a bad table, an existing target, or parts of a different run beside the target.
    LimitError
        When there are too many replica sets to enumerate.

    Notes
    -----
    At Ctrl-C finished batches are kept, and the summary says ``interrupted``.
    """
    for field, value in (("batch", batch), ("processes", processes)):
        if value < 1:
            raise InputError("out of range", field=field, value=value, expected="at least 1")
    began = time.perf_counter()
    goal_file = check_file(target, force=force, regular=True)  # its parts are in the same folder
    if goal_file.suffix == ".parquet":
        _need_pyarrow()
    parts = goal_file.with_name(goal_file.name + ".parts")
    _open_parts(parts, _fingerprint(problem, Path(source), batch))

    run = _KeyBatches(problem, parts, progress, began)
    termination = Termination.FINISHED
    batches = read_keys(source, problem.sites, batch)
    try:
        if processes == 1:
            run.here(batches)
        else:
            run.in_processes(batches, processes)
    except KeyboardInterrupt:
        termination = Termination.INTERRUPTED
    else:
        _join(parts, run.count, goal_file)
        _remove(parts)
    return KeysSummary(
        goal_file,
        run.keys,
        run.solved,
        run.resumed,
        time.perf_counter() - began,
        termination,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """A batch with its known answers and its open questions.

    Attributes
    ----------
    number, names
        Place of the batch, and its keys.
    marks
        Canonical demand of each key, as bytes.
    held
        Rows of demands solved earlier.
    asked, reads, writes
        The other demands, each once.
    """

    number: int
    names: tuple[str, ...]
    marks: list[bytes]
    held: dict[bytes, KeyRow]
    asked: list[bytes]
    reads: CountArray
    writes: CountArray


class _KeyBatches:
    """Feeds batches to the processes and writes the parts."""

    def __init__(
        self,
        problem: QuorumProblem,
        parts: Path,
        progress: Callable[[KeysProgress], None] | None,
        began: float,
    ) -> None:
        self.problem = problem
        self.parts = parts
        self.progress = progress
        self.began = began
        self.keys = self.solved = self.resumed = self.count = 0
        self.known: OrderedDict[bytes, KeyRow] = OrderedDict()

    def here(self, batches: Iterator[KeyBatch]) -> None:
        """Solve the missing parts in this process."""
        for job in self._jobs(batches):
            answer = solve_batch(self.problem, job.reads, job.writes) if job.asked else ()
            self._finish(job, answer)

    def in_processes(self, batches: Iterator[KeyBatch], processes: int) -> None:
        """Solve the missing parts in several processes."""
        window: deque[tuple[_Job, Future[tuple[KeyRow, ...]]]] = deque()
        context = multiprocessing.get_context("spawn")
        with (
            _single_threaded_children(),
            ProcessPoolExecutor(processes, mp_context=context) as pool,
        ):
            try:
                for job in self._jobs(batches):
                    window.append(
                        (job, pool.submit(solve_batch, self.problem, job.reads, job.writes))
                    )
                    # A bounded window keeps memory flat however long the table is.
                    if len(window) >= 2 * processes:
                        oldest, future = window.popleft()
                        self._finish(oldest, future.result())
                for rest, future in window:
                    self._finish(rest, future.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _jobs(self, batches: Iterator[KeyBatch]) -> Iterator[_Job]:
        """Batches no earlier run has finished."""
        for number, batch in enumerate(batches):
            self.count = number + 1
            if _part(self.parts, number).exists():
                self.resumed += len(batch.names)
                self._advance(len(batch.names))
                continue
            reads, writes = canonical(batch.reads, batch.writes)
            marks = [row.tobytes() for row in np.concatenate([reads, writes], axis=1)]
            held = {mark: self.known[mark] for mark in marks if mark in self.known}
            first = {
                mark: row for row, mark in reversed(list(enumerate(marks))) if mark not in held
            }
            chosen = np.fromiter(first.values(), dtype=np.intp, count=len(first))
            yield _Job(number, batch.names, marks, held, list(first), reads[chosen], writes[chosen])

    def _finish(self, job: _Job, answer: tuple[KeyRow, ...]) -> None:
        fresh = dict(zip(job.asked, answer, strict=True))
        rows = {**job.held, **fresh}
        table = [rows[mark].named(name) for name, mark in zip(job.names, job.marks, strict=True)]
        write_file(_part(self.parts, job.number), to_csv(table), force=True)
        self.solved += len(fresh)
        self.known.update(fresh)
        while len(self.known) > _REMEMBERED:
            self.known.popitem(last=False)
        self._advance(len(job.names))

    def _advance(self, keys: int) -> None:
        self.keys += keys
        if self.progress is not None:
            self.progress(KeysProgress(self.keys, self.solved, time.perf_counter() - self.began))


@contextlib.contextmanager
def _single_threaded_children() -> Iterator[None]:
    """Start processes whose linear algebra uses one thread: the processes fill the cores."""
    before = {name: os.environ.get(name) for name in _BLAS_THREADS}
    os.environ.update(dict.fromkeys(_BLAS_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _fingerprint(problem: QuorumProblem, source: Path, batch: int) -> str:
    """Return a digest of all inputs that decide the content of the parts."""
    check_input(source)
    digest = hashlib.sha256()
    digest.update(problem.rtt.tobytes())
    words = [problem.sites, problem.regions, problem.rules, problem.goal, batch, row_names()]
    digest.update(repr(words).encode())
    with source.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _open_parts(parts: Path, fingerprint: str) -> None:
    """Create the folder of parts, or check that it belongs to this run."""
    manifest = parts / "run.json"
    if parts.is_dir() and manifest.exists():
        try:
            found = read_document(manifest).text("fingerprint")
        except InputError:
            found = None
        if found != fingerprint:
            raise InputError(
                "the parts of a different run stand here (other keys, RTTs, rules or batch size)",
                source=str(parts),
                expected="the same run, to be continued; or delete this folder to start again",
            )
        return
    parts.mkdir(exist_ok=True)
    if any(parts.iterdir()):
        raise InputError(
            "the folder for the parts is not empty", source=str(parts), expected="an empty folder"
        )
    write_file(manifest, json.dumps({"fingerprint": fingerprint}).encode())


def _part(parts: Path, number: int) -> Path:
    return parts / f"part-{number:08d}.csv"


def _join(parts: Path, count: int, target: Path) -> None:
    """Join the parts into the target, which appears complete by one rename."""
    with writing(target, force=True) as stream:
        if target.suffix == ".parquet":
            _join_parquet(parts, count, stream)
        else:
            stream.write(to_csv((), header=row_names()))
            for number in range(count):
                stream.write(_part(parts, number).read_bytes())


def _join_parquet(parts: Path, count: int, target: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    words, whole = ("key", "status", "replicas"), ("n", "r", "w")
    schema = pa.schema(
        [
            (name, pa.string() if name in words else pa.int64() if name in whole else pa.float64())
            for name in row_names()
        ]
    )
    with pq.ParquetWriter(target, schema) as writer:
        for number in range(count):
            # The csv module and float() restore every number exactly as it was written.
            with _part(parts, number).open(newline="", encoding="utf-8") as stream:
                rows = list(csv.reader(stream))
            columns = {}
            for name, cells in zip(row_names(), zip(*rows, strict=True), strict=True):
                if name in words:
                    columns[name] = list(cells)
                else:
                    read = int if name in whole else float
                    columns[name] = [read(cell) if cell else None for cell in cells]
            writer.write_table(pa.table(columns, schema=schema))


def _need_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401 - only whether it is there
    except ImportError:
        raise MissingDependencyError.of("writing Parquet needs pyarrow", "parquet") from None


def _remove(parts: Path) -> None:
    """Delete the parts of a finished run; files of other origin stay."""
    for path in parts.glob("part-*.csv"):
        path.unlink()
    (parts / "run.json").unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        parts.rmdir()

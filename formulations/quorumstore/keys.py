"""Many keys: a table of demands in, a table of configurations out, resumable at any moment.

The table is CSV or Parquet, one row per key. Columns: ``key``, then ``reads:<site>`` and
``writes:<site>`` for the sites that have any; a site without a column has no requests. Other
columns are refused, so that a misspelt site is not silently dropped.

Solving a batch of keys is a pure function (:func:`solve_batch`), so batches run in as many
processes as asked for. Rows are appended to ``<target>.part`` in the order of the table; once all
are there they become the target, which appears by one rename. A run that is killed (``kill -9``
included) is continued by running it again: keys whose row is complete are not solved again.

Keys with proportional demand are solved once per run.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import multiprocessing
import os
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from formulations.quorumstore.enumeration import Enumeration
from placement.errors import InputError
from placement.io.formats.column_reader import ColumnTable, read_frames
from placement.io.formats.files import check_file, check_input, writing
from placement.io.formats.tables import load_pyarrow
from placement.quorumstore import QuorumProblem
from placement.quorumstore.problem import MOST_REQUESTS, CountArray
from placement.support.status import Status, Termination

_REMEMBERED = 200_000
"""Distinct demands whose configuration is remembered within a run."""

_PARQUET_ROWS = 50_000
"""Rows that are written to a Parquet file at once."""

NO_REQUESTS = "no requests"
"""Status of a key without requests."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyBatch:
    """A run of keys."""

    names: tuple[str, ...]  #: the keys
    #: `reads`, `writes`: requests per key and site, shape (k, sites)
    reads: CountArray
    writes: CountArray

    def part(self, low: int, high: int) -> KeyBatch:
        """Return the keys from `low` to before `high`."""
        return KeyBatch(self.names[low:high], self.reads[low:high], self.writes[low:high])


def read_keys(path: str | os.PathLike[str], sites: Sequence[str]) -> Iterator[KeyBatch]:
    """Yield the keys of a table in the order of the file: Parquet by parts, CSV whole."""
    for table in read_frames(path, lambda header: ("key",)):
        yield _batch(table, sites)


def _batch(table: ColumnTable, sites: Sequence[str]) -> KeyBatch:
    names, which = table.found("key", strip=False)
    known = [f"{side}:{site}" for side in ("reads", "writes") for site in sites]
    columns = [column for column in table.columns if column != "key"]
    for column in columns:
        if column not in known:
            raise InputError(
                "unknown column",
                source=table.source,
                field=column,
                expected=f"reads:<site> or writes:<site> with a site of {', '.join(sites)}",
            )
    given = table.matrix(columns, "a whole number >= 0; percentiles count requests")
    for row, place in np.argwhere(given % 1 != 0)[:1].tolist():
        raise InputError(
            "bad count",
            source=table.at(row),
            field=columns[place],
            value=float(given[row, place]),
            expected="a whole number >= 0; percentiles count requests",
        )
    counts = np.zeros((table.rows, 2 * len(sites)))
    counts[:, [known.index(column) for column in columns]] = given
    reads, writes = counts[:, : len(sites)], counts[:, len(sites) :]
    many = np.maximum(reads.sum(axis=1), writes.sum(axis=1)) >= MOST_REQUESTS
    for row in np.flatnonzero(many)[:1].tolist():
        raise InputError(
            "too many requests to count exactly",
            source=table.at(row),
            expected="totals below 2^48 per key",
        )
    keys = tuple(names[place] for place in which.tolist())
    return KeyBatch(keys, reads.astype(np.int64), writes.astype(np.int64))


@dataclass(frozen=True, slots=True)
class KeyRow:
    """Configuration of one key."""

    #: `key`, `status`: name; `optimal`, `infeasible` or `no requests`
    key: str
    status: str
    value: float | None = None  #: value of the goal
    replicas: str = ""  #: names of the sites, joined by ";", in site order
    #: `n`, `r`, `w`: N, R, W
    n: int | None = None
    r: int | None = None
    w: int | None = None
    #: `normal_read_ms`, `normal_write_ms`, `worst_read_ms`, `worst_write_ms`: thresholds in normal
    #: operation, and their largest values over all losses
    normal_read_ms: float | None = None
    normal_write_ms: float | None = None
    worst_read_ms: float | None = None
    worst_write_ms: float | None = None
    mean_ms: float | None = None  #: mean latency in normal operation


def row_names() -> tuple[str, ...]:
    """Column names, in order."""
    return tuple(entry.name for entry in fields(KeyRow))


def canonical(reads: CountArray, writes: CountArray) -> tuple[CountArray, CountArray]:
    """Reduce each key's demand (k, sites) so that keys with proportional demand become equal."""
    both = np.concatenate([reads, writes], axis=1)
    divisor = np.maximum(np.gcd.reduce(both, axis=1), 1)[:, np.newaxis]
    return reads // divisor, writes // divisor


def solve_batch(
    problem: QuorumProblem, reads: CountArray, writes: CountArray
) -> tuple[KeyRow, ...]:
    """Return the optimal configuration of every key of a batch, without a name: a pure function.

    The problem is the store; its own demand is not used. Requests have the shape (k, sites).
    """
    solver, rows = Enumeration(), []
    for key_reads, key_writes in zip(reads, writes, strict=True):
        if not (key_reads.any() or key_writes.any()):
            rows.append(KeyRow("", NO_REQUESTS))
            continue
        plan = solver.solve(problem.with_demand(key_reads, key_writes))
        if plan.termination is Termination.INTERRUPTED:
            # The best so far of one key is no answer for a table; its batch is solved again.
            raise KeyboardInterrupt
        row, found = KeyRow("", str(Status.INFEASIBLE)), plan.configuration
        if found is not None:
            figures = (float(figure[0]) for figure in plan.figures)
            sizes = (found.size, found.read, found.write)
            names = ";".join(plan.replicas)
            row = KeyRow("", str(plan.status), plan.value, names, *sizes, *figures)
        rows.append(row)
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class KeysSummary:
    """State of a run, or its outcome.

    Attributes
    ----------
    target
        The table of configurations; it exists only if the run finished.
    keys, solved, resumed
        Keys in the table so far; distinct demands solved in this run; keys whose row an earlier run
        had finished.
    seconds, termination
        Wall time; ``finished`` or ``interrupted``; None while the run goes on.
    """

    target: Path
    keys: int
    solved: int
    resumed: int
    seconds: float
    termination: Termination | None


def solve_keys(
    problem: QuorumProblem,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    batch: int = 500,
    processes: int = 1,
    progress: Callable[[KeysSummary], None] | None = None,
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
        CSV, or Parquet by its suffix, with the columns of :class:`KeyRow`, one row per key in the
        order of `source`.
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
        For a bad table, an existing target, or rows of a different run beside the target.
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
    goal_file = check_file(target, force=force, regular=True)  # the journal is in the same folder
    if goal_file.suffix == ".parquet":
        load_pyarrow()
    journal = goal_file.with_name(f"{goal_file.name}.part")
    resumed = _open_journal(journal, _fingerprint(problem, Path(source)))
    keys, solved = resumed, 0

    def state(termination: Termination | None) -> KeysSummary:
        seconds = time.perf_counter() - began
        return KeysSummary(goal_file, keys, solved, resumed, seconds, termination)

    batches = _without_first(read_keys(source, problem.sites), resumed, batch)
    try:
        with journal.open("ab") as stream:
            for rows, fresh in _answers(problem, batches, processes):
                lines = (json.dumps(astuple(row), ensure_ascii=False) for row in rows)
                stream.write("".join(f"{line}\n" for line in lines).encode())
                stream.flush()
                keys, solved = keys + len(rows), solved + fresh
                if progress is not None:
                    progress(state(None))
    except KeyboardInterrupt:
        return state(Termination.INTERRUPTED)
    _finish(journal, goal_file)
    return state(Termination.FINISHED)


def _without_first(tables: Iterator[KeyBatch], done: int, size: int) -> Iterator[KeyBatch]:
    """Yield batches of `size` keys, without the first `done` keys."""
    for table in tables:
        many = len(table.names)
        for low in range(min(done, many), many, size):
            yield table.part(low, low + size)
        done = max(0, done - many)


def _answers(
    problem: QuorumProblem, batches: Iterator[KeyBatch], processes: int
) -> Iterator[tuple[list[KeyRow], int]]:
    """Yield the rows of each batch, and how many demands were solved for them."""
    solve = partial(solve_batch, problem)
    if processes == 1:
        yield from _in_order(batches, lambda *work: partial(solve, *work), 1)
        return
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        try:
            # A bounded window keeps memory flat however long the table is.
            window = 2 * processes
            yield from _in_order(batches, lambda *work: pool.submit(solve, *work).result, window)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_Answer = Callable[[], tuple[KeyRow, ...]]


def _in_order(
    batches: Iterator[KeyBatch],
    start: Callable[[CountArray, CountArray], _Answer],
    window: int,
) -> Iterator[tuple[list[KeyRow], int]]:
    """Start batches, at most `window` ahead; yield their rows in order and the demands solved."""
    known: OrderedDict[bytes, KeyRow] = OrderedDict()
    open_jobs: deque[tuple[KeyBatch, list[bytes], dict[bytes, KeyRow], list[bytes], _Answer]]
    open_jobs = deque()

    def finished() -> tuple[list[KeyRow], int]:
        batch, marks, held, asked, answer = open_jobs.popleft()
        fresh = dict(zip(asked, answer(), strict=True)) if asked else {}
        known.update(fresh)
        while len(known) > _REMEMBERED:
            known.popitem(last=False)
        rows = {**held, **fresh}
        named = zip(batch.names, marks, strict=True)
        return [replace(rows[mark], key=name) for name, mark in named], len(fresh)

    for batch in batches:
        reads, writes = canonical(batch.reads, batch.writes)
        marks = [row.tobytes() for row in np.concatenate([reads, writes], axis=1)]
        held = {mark: known[mark] for mark in marks if mark in known}
        first = {mark: row for row, mark in reversed(list(enumerate(marks))) if mark not in held}
        rows = np.fromiter(first.values(), dtype=np.intp, count=len(first))
        open_jobs.append((batch, marks, held, list(first), start(reads[rows], writes[rows])))
        if len(open_jobs) >= window:
            yield finished()
    while open_jobs:
        yield finished()


def _fingerprint(problem: QuorumProblem, source: Path) -> str:
    """Return a digest of all inputs that decide the rows."""
    check_input(source)
    digest = hashlib.sha256()
    digest.update(problem.rtt.tobytes())
    words = [problem.sites, problem.regions, problem.rules, problem.goal, row_names()]
    digest.update(repr(words).encode())
    with source.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: digest).hexdigest()


def _open_journal(journal: Path, fingerprint: str) -> int:
    """Begin the file of rows, or cut a torn row off that of the same run; return its rows."""
    if not journal.exists():
        journal.write_bytes(f"{fingerprint}\n".encode())
        return 0
    with journal.open("r+b") as stream:
        if stream.readline() != f"{fingerprint}\n".encode():
            raise InputError(
                "the rows of a different run stand here (other keys, RTTs or rules)",
                source=str(journal),
                expected="the same run, to be continued; or delete this file to start again",
            )
        rows, end = 0, stream.tell()
        for line in stream:
            if line.endswith(b"\n"):
                rows, end = rows + 1, end + len(line)
        stream.truncate(end)
    return rows


def _finish(journal: Path, target: Path) -> None:
    """Turn the rows into the target, which appears complete by one rename."""
    with journal.open(encoding="utf-8") as lines, writing(target, force=True) as stream:
        next(lines)
        rows = map(json.loads, lines)
        if target.suffix == ".parquet":
            pa, pq = load_pyarrow()
            kinds = {"key": pa.string(), "status": pa.string(), "replicas": pa.string()}
            kinds |= dict.fromkeys("nrw", pa.int64())
            schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in row_names()])
            with pq.ParquetWriter(stream, schema) as table:
                while some := list(islice(rows, _PARQUET_ROWS)):
                    columns = dict(zip(row_names(), zip(*some, strict=True), strict=True))
                    table.write_table(pa.table(columns, schema=schema))
        else:
            text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(row_names())
            writer.writerows(("" if cell is None else cell for cell in row) for row in rows)
            text.detach()  # flushed, and left open
    journal.unlink()

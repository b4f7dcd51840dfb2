"""Arrivals into recommendations: in order, each once, and nothing left out in silence.

An interval is used when it is later than the last one used. Anything else is reported and skipped:

    duplicate    the same counts for an interval that was used, from somewhere else
    conflict     other counts for an interval that was used
    late         an interval before the last one used
    malformed    an interval (or a file) that cannot be read; a mended one may still come in time

With `grace` g, an interval of a folder is used once intervals of g later ones have arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from placement.errors import require
from placement.overtime.watch.arrivals import (
    Arrival,
    ArrivalScan,
    FileMark,
    IntervalKey,
    Rejection,
    Source,
)
from placement.overtime.watch.recommend import WatchSettings, advise
from placement.overtime.watch.state_store import Store


class PollResult(NamedTuple):
    """Counts of the intervals and files that one poll dealt with."""

    used: int  #: intervals used
    held: int  #: intervals that the grace holds back
    waiting: tuple[str, ...]  #: files that may still be growing
    unreadable: int  #: intervals and files that cannot be read


@dataclass
class Watch:
    """Source of intervals, state file, and outputs of a watch.

    A grace beside a table, whose rows arrive in their order, is refused.
    """

    settings: WatchSettings  #: the question
    source: Source  #: where intervals come from
    store: Store  #: the state file, opened with the same settings
    #: called with the document of every recommendation, once it is on the disk
    show: Callable[[Mapping[str, object]], None]
    complain: Callable[[Rejection], None]  #: called with every new report, once it is on the disk
    _unreadable: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        grace, words = self.settings.grace, "a table has no grace: its rows arrive in their order"
        good, words = not (grace and self.source.in_order), f"{words} in the file"
        require(good, "grace", words, grace, "0, or a folder")

    def resume(self) -> None:
        """Print the advice that a killed run may not have printed: at most one recommendation."""
        for document in self.store.not_shown():
            self.show(document)
        self.store.shown()

    def poll(self) -> PollResult:
        """Poll the source once, and process all arrivals."""
        self._unreadable = 0
        scan = self.source.scan(self.store.files())
        for refused in scan.refused:
            self._report(refused)
        arrivals = list(scan.arrivals)
        if not self.source.in_order:
            arrivals.sort(key=lambda arrival: (arrival.reading.key, arrival.source))
        held = self._held(arrivals)
        used = 0
        seen: set[IntervalKey] = set()
        for arrival in arrivals:
            if arrival.reading.key not in held:
                used += self._deal_with(arrival, again=arrival.reading.key in seen)
                if not arrival.reading.problem:
                    seen.add(arrival.reading.key)
        self.store.finish(_done(scan, held))
        if used:
            self.store.shown()
        return PollResult(used, len(held), scan.waiting, self._unreadable)

    def _held(self, arrivals: list[Arrival]) -> set[IntervalKey]:
        """Intervals that fewer than `grace` later ones have followed so far."""
        if not self.settings.grace:
            return set()
        last = self.store.last
        keys = {
            arrival.reading.key
            for arrival in arrivals
            if not arrival.reading.problem
            and (last is None or (arrival.reading.key[0] == last[0] and arrival.reading.key > last))
        }
        return set(sorted(keys)[-self.settings.grace :])

    def _deal_with(self, arrival: Arrival, *, again: bool) -> int:
        """Use an arrival (1), or report why not (0); `again`: it is not the first of this look."""
        reading = arrival.reading
        if reading.problem:
            self._reject(arrival, "malformed", reading.problem)
            return 0
        last = self.store.last
        if last is not None and last.kind != reading.key.kind:
            text = f"a {reading.key.kind} where the series has {last.kind}s"
            self._reject(arrival, "malformed", text)
            return 0
        before = self.store.known(reading.key)
        if before is not None:
            source, digest = before
            same = digest == reading.digest
            if same and source == arrival.source and not again:
                return 0  # the very one that was used, seen again after a restart
            what = "the same counts as" if same else "other counts than"
            kind = "duplicate" if same else "conflict"
            self._reject(arrival, kind, f"{what} from {source}, which were used")
            return 0
        if last is not None and reading.key < last:
            self._reject(arrival, "late", "it is older than an interval that was used")
            return 0
        assert reading.counts is not None  # it has no problem
        state, advice = advise(self.settings, self.store.state, reading.label, reading.counts)
        self.store.commit_interval(arrival, state, advice)
        self.show(advice.document)
        return 1

    def _reject(self, arrival: Arrival, kind: str, text: str) -> None:
        reading = arrival.reading
        where = text if text.startswith("row ") else f"{text} (row {reading.row})"
        self._report(Rejection(kind, arrival.source, reading.label, where, reading.digest))

    def _report(self, report: Rejection) -> None:
        self._unreadable += report.kind in ("malformed", "unreadable")
        if self.store.report(report):
            self.complain(report)


def _done(scan: ArrivalScan, held: set[IntervalKey]) -> tuple[FileMark, ...]:
    """Files none of whose intervals is held back."""
    open_still = {a.source for a in scan.arrivals if a.reading.key in held}
    return tuple(mark for mark in scan.done if mark.name not in open_still)

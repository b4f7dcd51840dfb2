"""mtr: the text of ``--report`` and the document of ``--json``; the last hop is the target."""

from __future__ import annotations

import re

from placement.errors import InputError
from placement.io.feeds.pair_samples import PairSamples
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading

__all__ = ["FEED"]

_HEADER = re.compile(r"HOST:\s+(\S+)\s+Loss%\s+Snt\s+(.*)")
_LONGEST = 1000
_HOP = re.compile(r"\s*\d+\.\s*(?:\|--\s*)?(.+?)\s+([\d.]+)%\s+\d+\s+(.*)")


def _report(content: Content) -> dict[str, object] | None:
    value = content.json
    report = value.get("report") if isinstance(value, dict) else None
    fits = isinstance(report, dict) and {"mtr", "hubs"} <= set(report)
    return report if fits else None


def _recognises(content: Content) -> bool:
    if any(_HEADER.match(line) for line in content.head.splitlines()[:50]):
        return True
    return _report(content) is not None


def _read(content: Content, request: FeedRequest) -> RttReading:
    found = PairSamples(content.source)
    if (report := _report(content)) is not None:
        _read_json(report, found, request)
    else:
        _read_text(content, found, request)
    return found.reading("mtr, average of the last hop")


def _read_json(report: dict[str, object], found: PairSamples, request: FeedRequest) -> None:
    run, hubs = report["mtr"], report["hubs"]
    last = hubs[-1] if isinstance(hubs, list) and hubs else None
    if not isinstance(run, dict) or not isinstance(last, dict):
        raise InputError(
            "not a report of mtr",
            source=found.source,
            field="report.hubs",
            value=hubs,
            expected="a list of hops with host and Avg",
        )
    start, end = request.measured_from or str(run.get("src", "")), str(run.get("dst", ""))
    place = f"{found.source}: report.hubs[-1]"
    found.probe(start, end, place)
    if last.get("Loss%") != 100 and last.get("host") != "???":
        found.answer(start, end, str(last.get("Avg")), place)


def _read_text(content: Content, found: PairSamples, request: FeedRequest) -> None:
    start = ""
    columns: list[str] = []
    hop: tuple[str, str, str, str] | None = None

    def close() -> None:
        if hop is None:
            return
        name, loss, average, place = hop
        if name == "???" or float(loss) >= 100:
            found.notes.append(f"{place}: the last hop did not answer, and its name is unknown")
        else:
            found.answer(start, name, average, place)

    for number, line in enumerate((content.text or "").splitlines(), 1):
        place = f"{content.source}, row {number}"
        if match := _HEADER.match(line):
            close()
            hop, start, columns = None, request.measured_from or match[1], match[2].split()
            if "Avg" not in columns:
                raise InputError(
                    "no column Avg",
                    source=place,
                    field="header",
                    value=line.strip(),
                    expected="Avg",
                )
        elif columns and len(line) <= _LONGEST and (match := _HOP.fullmatch(line)):
            values = match[3].split()
            if len(values) != len(columns):
                raise InputError(
                    "a row of another length",
                    source=place,
                    value=line.strip(),
                    expected=f"{len(columns)} numbers after Snt",
                )
            hop = (match[1].split()[0], match[2], values[columns.index("Avg")], place)
    close()


FEED = Feed("mtr", "text of mtr --report, or mtr --json", _recognises, _read)

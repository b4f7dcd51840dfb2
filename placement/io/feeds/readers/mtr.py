"""Text, CSV and JSON of mtr.

Fields may stand in any order (-o), and words of -z, -y and -b beside the host. The last hop is
the target; where it did not answer there is no RTT, for the hop before it is a router.
"""

from __future__ import annotations

import csv
import ipaddress
import re

from placement.errors import refused
from placement.io.feeds.pair_samples import PairSamples, origin_of
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading
from placement.support.checks import LARGEST

_MTR_HEADER = re.compile(r"HOST:\s+(\S+)\s+(\S.*)")
_MTR_HOP = re.compile(r"\s*\d+\.(?:\|--)?\s+(.*)")
_MTR_NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?|nan)%?")
_MTR_CSV = "Mtr_Version,"
_MTR_LONGEST = 1000
_MTR_FIELDS = {"Loss%", "Drop", "Rcv", "Snt", "Last", "Best", "Avg", "Wrst", "StDev", "Gmean"}
_MTR_OPTION = "mtr -o LSNABWV, which writes Loss%, Snt and Avg"


def _mtr_reports(content: Content) -> list[dict[str, object]]:
    found = [one.get("report") for one in content.objects]
    return [one for one in found if isinstance(one, dict) and {"mtr", "hubs"} <= set(one)]


def _is_mtr(content: Content) -> bool:
    if content.braced:
        return bool(_mtr_reports(content))
    lines = content.head.splitlines()[:50]
    headers = (match for line in lines if (match := _MTR_HEADER.match(line)))
    return any(_MTR_FIELDS & set(match[2].split()) for match in headers) or any(
        line.lstrip("\ufeff").startswith((_MTR_CSV, _MTR_CSV.replace(",", ";"))) for line in lines
    )


def _read_mtr(content: Content, request: FeedRequest) -> RttReading:
    found = PairSamples(content.source)
    if content.braced:
        for i, report in enumerate(_mtr_reports(content)):
            _mtr_json(report, found, request, f"{content.source}: [{i}].report.hubs[-1]")
    elif _MTR_CSV[:-1] in content.head:
        _mtr_csv(content, found, origin_of(content, request))
    else:
        _mtr_text(content, found, request)
    return found.reading("mtr, average of the last hop")


def _add_hop(
    found: PairSamples, ends: tuple[str, str], host: str, cells: dict[str, str], place: str
) -> None:
    """Add the last hop of a report; `ends` names the target where the report does."""
    start, end = ends
    for field in ("Avg", "Snt"):
        if field not in cells and (field == "Avg" or "Rcv" in cells):
            raise refused(place, "header", f"no column {field}", " ".join(cells), _MTR_OPTION)
    sent = int(_mtr_number(cells, "Snt", place)) if "Snt" in cells else 1
    if "Loss%" in cells or not {"Rcv", "Drop"} & set(cells):
        share = 1 - _mtr_number(cells, "Loss%", place) / 100 if "Loss%" in cells else 1.0
        received = max(1, round(sent * share)) if share > 0 else 0
    else:
        of = "Rcv" if "Rcv" in cells else "Drop"
        received = int(_mtr_number(cells, of, place))
        received = received if of == "Rcv" else sent - received
    silent = received <= 0 or host == "???"
    if not silent and end and _differ(host, end):
        found.notes.append(f"{place}: the report ends at {host}, before its target")
        silent = True
    if not (end or host) or (host == "???" and not end):
        found.notes.append(f"{place}: the last hop did not answer, and its name is unknown")
        return
    if not silent and not {"Loss%", "Rcv", "Drop"} & set(cells):
        if _mtr_number(cells, "Avg", place) == 0:
            words = "no answer, or one below 0.05 ms: the report has no losses"
            raise refused(place, "Avg", words, cells["Avg"], _MTR_OPTION)
        found.notes.append(f"no column Loss%: the number of answers is unknown ({_MTR_OPTION})")
    texts = () if silent else (cells["Avg"],)
    received = 0 if silent else received
    found.summary(start, end or host, (max(sent, received), received), texts, place)


def _mtr_number(cells: dict[str, str], field: str, place: str) -> float:
    try:
        value = float(cells[field].rstrip("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= (100 if field == "Loss%" else LARGEST):
        kind = "a loss" if field == "Loss%" else "a number"
        expected = "a number from 0 to 100" if field == "Loss%" else "a number >= 0"
        raise refused(place, field, f"not {kind}", cells[field], expected)
    return value


def _differ(host: str, end: str) -> bool:
    """Return whether two addresses are not the same; names are not compared with addresses."""
    try:
        return ipaddress.ip_address(host) != ipaddress.ip_address(end)
    except ValueError:
        return False


def _mtr_json(
    report: dict[str, object], found: PairSamples, request: FeedRequest, place: str
) -> None:
    run, hubs = report["mtr"], report["hubs"]
    last = hubs[-1] if isinstance(hubs, list) and hubs else None
    if not isinstance(run, dict) or not isinstance(last, dict):
        words = "not a report of mtr"
        raise refused(found.source, "report.hubs", words, hubs, "a list of hops with host and Avg")
    ends = request.measured_from or str(run.get("src", "")), str(run.get("dst", ""))
    _add_hop(found, ends, str(last.get("host", "")), {k: str(v) for k, v in last.items()}, place)


def _mtr_csv(content: Content, found: PairSamples, start: str) -> None:
    """Read ``--csv``; its header has a comma and a column without a name more than its rows."""
    text = content.text or ""
    sign = ";" if text.lstrip("\ufeff").startswith(_MTR_CSV.replace(",", ";")) else ","
    names: list[str] = []
    last: tuple[str, str, dict[str, str], str] | None = None
    for number, cells in enumerate(csv.reader(text.splitlines(), delimiter=sign), 1):
        place = f"{content.source}, row {number}"
        if cells and cells[0] == _MTR_CSV[:-1]:
            names = [name.strip() for name in cells]
            continue
        if not cells or not names:
            continue
        hop = dict(zip(names, cells, strict=False))
        if not {"Host", "Hop", "Ip"} <= set(hop):
            raise refused(place, "", "a row of another length", len(cells), f"{len(names)}")
        if last and (hop["Hop"] == "1" or hop["Host"] != last[0]):
            _add_hop(found, (start, last[0]), *last[1:])
        last = hop["Host"], hop["Ip"], hop, place
    if last:
        _add_hop(found, (start, last[0]), *last[1:])
    if start == content.stem:
        found.notes.append(f"mtr --csv does not name its own host; {start!r} was taken")


def _mtr_text(content: Content, found: PairSamples, request: FeedRequest) -> None:
    start = ""
    columns: list[str] = []
    hop: tuple[str, dict[str, str], str] | None = None
    for place, line in content.lines:
        if match := _MTR_HEADER.match(line):
            if hop is not None:
                _add_hop(found, (start, ""), *hop)
            hop, start, columns = None, request.measured_from or match[1], match[2].split()
            if "Avg" not in columns:
                raise refused(place, "header", "no column Avg", match[2], _MTR_OPTION)
        elif columns and len(line) <= _MTR_LONGEST and (match := _MTR_HOP.fullmatch(line)):
            words = match[1].split()
            cells = words[-len(columns) :]
            if len(cells) < len(columns) or not all(map(_MTR_NUMBER.fullmatch, cells)):
                expected = f"a host and {len(columns)} numbers"
                raise refused(place, "", "a row of another length", line.strip(), expected)
            # AS64500 host, [AS64500] host, 10.0.0.0/24 host, host (address)
            names = [word for word in words[: -len(columns)] if not re.fullmatch(r"\(\S*\)", word)]
            hop = (names[-1] if names else "", dict(zip(columns, cells, strict=True)), place)
    if hop is not None:
        _add_hop(found, (start, ""), *hop)


FEED = Feed(
    "mtr", "text of mtr --report, --csv or --json", _is_mtr, _read_mtr,
    notes="any fields (-o, -z, -y, -b); the average of the last hop, none where it did not "
    "answer",
)  # fmt: skip

"""Text and JSON of probes: ping and its kin, fping, mtr."""

from __future__ import annotations

import csv
import ipaddress
import re

from placement.errors import InputError
from placement.io.feeds.pair_samples import PairSamples, origin_of
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading
from placement.io.formats.tables import refused
from placement.support.checks import LARGEST

__all__ = ["FPING", "MTR", "PING", "TRACEROUTE"]

# --- ping -----------------------------------------------------------------------------------------
#
# iputils, BSD, macOS, Windows, BusyBox, hping and tcping; several runs may follow one another. An
# answer counts if its line ends after the time: a mark such as (DUP!) says that it is no sample.

_PING_START = re.compile(
    r"PING6?\([^()]*\)\s+(?P<near>\S+)\s+-->\s+(?P<far>\S+)"
    r"|(?:PING6?|Pinging|HPING)\s+\((?P<only>[^()\s]+)\).*"
    r"|(?:PING6?|Pinging|HPING)\s+(?P<name>[^\s(\[]+?):?(?:[\s(\[].*)?"
    r"|Ping wird ausgef\S+ f\S+ (?P<de>\S+).*|Envoi d.une requ\S+ .*sur (?P<fr>\S+).*"
    r"|Haciendo ping a (?P<es>\S+).*"
)
_PING_ANSWER = re.compile(
    r".*\b(?:time|rtt|Zeit|temps|tiempo|tempo)\s?[=<]\s?([\d.,]+)\s*(ms|msec|us|µs)\b"
    r"(?:\s+(?:TTL|ttl|protocol|port)=\S+|\s)*(\(.*\)|\[<-.*)?\s*"
)
_TCPING = re.compile(
    r"(?:Probing|Connected to|Connecting to)\s+(?:tcp://)?(\[[^\]\s]+\]|[^\s:/]+)(?:[:/]\S*)?\s.*?"
    r"(?:time=|:\s+)([\d.]+)\s*ms\b.*"
)
_TIMES = re.compile(
    r"(?:rtt|round-trip)\s+min/avg/max(?:/\w[\w-]*)?\s*=\s*([\d.]+)/([\d.]+)/([\d.]+).*"
)
_PING_COUNTS = re.compile(
    r"(\d+) packets? (?:transmitted|tramitted), (\d+) (?:packets? )?received.*"
    r"|.*(?:Sent|Gesendet) = (\d+), (?:Received|Empfangen) = (\d+).*"
)
_ADDRESS = re.compile(r"[(\[]([0-9a-fA-F.:]+)(?:%\w+)?[)\]]")
_DAMAGED = re.compile(r"wrong data byte .*|.*(?:BAD CHECKSUM|truncated).*")


def _is_ping(content: Content) -> bool:
    lines = content.head.splitlines()[:50]
    return any(_PING_START.fullmatch(line) or _TCPING.fullmatch(line) for line in lines)


def _read_ping(content: Content, request: FeedRequest) -> RttReading:
    found = PairSamples(content.source)
    own, end = origin_of(content, request), ""
    start = own
    counts: tuple[int, int] | None = None
    answers = 0
    for number, line in enumerate((content.text or "").splitlines(), 1):
        place = f"{content.source}, row {number}"
        if match := _PING_START.fullmatch(line):
            end = next(name for key, name in match.groupdict().items() if name and key != "near")
            start = request.measured_from or match["near"] or own
            found.probe(start, end, place, run=True)
            found.aliases |= dict.fromkeys(_ADDRESS.findall(line), end)
            counts, answers = None, 0
        elif match := _TCPING.fullmatch(line):
            end = match[1].strip("[]")
            found.answer(start, end, match[2], place)
        elif not end:
            continue
        elif match := _PING_ANSWER.fullmatch(line):
            if match[3]:
                found.skip(match[3].strip("()[] ") if match[3].startswith("(") else "other address")
                continue
            unit = 1.0 if match[2].startswith("m") else 1e-3
            found.answer(start, end, match[1].replace(",", "."), place, unit=unit)
            answers += 1
        elif _DAMAGED.fullmatch(line) and answers:
            found.probe(start, end, place).samples.pop()
            found.skip("damaged")
            answers -= 1
        elif match := _PING_COUNTS.fullmatch(line):
            sent, received = (int(text) for text in match.groups() if text)
            counts = (sent, received)
            if not received:
                found.summary(start, end, counts, (), place)
            elif answers:
                found.probe(start, end, place)
                found.summary(start, end, counts, ("0", "0", "0"), place)
        elif (match := _TIMES.fullmatch(line)) and not answers:  # ping -q prints no samples
            found.summary(start, end, counts or (1, 1), match.groups(), place)
    if any(near == own for near, _ in found.runs):
        found.notes.append(f"ping does not name its own host; {own!r} was taken")
    return found.reading("ping")


PING = Feed("ping", "text of ping, ping6, hping and tcping", _is_ping, _read_ping)

# --- fping ----------------------------------------------------------------------------------------
#
# A time (-D) may stand before each line, an address in brackets after the name. Intervals of -Q and
# the total after them are told apart by their counts.

# -C: "host : 91.7 - 29.2"; -c: "host : [0], 84 bytes, 0.65 ms (0.65 avg, 0% loss)" per answer and
# "host : xmt/rcv/%loss = 3/3/0%, min/avg/max = 0.03/0.04/0.05" at the end.
_FPING_LINE = re.compile(r"(?:\[[\d.:]+\] )?(\S+)(?: \(\S+\))?\s+: (.*)")
_FPING_SAMPLES = re.compile(r"\s*(?:\d+(?:\.\d+)?|-)(?:\s+(?:\d+(?:\.\d+)?|-|<\w+>))*\s*")
_FPING_ANSWER = re.compile(r"\[\d+\], (?:\d+ bytes, ([\d.]+) ms \([^()]*\)(.*)|timed out \(.*)")
_FPING_SUMMARY = re.compile(
    r"xmt/rcv/%(?:loss|return) = (\d+)/(\d+)/[\d.]+%"
    r"(?:, min/avg/max = ([\d.]+)/([\d.]+)/([\d.]+))?.*"
)
_DUPLICATE = re.compile(r"duplicate for \[\d+\], .*")
_ALIVE = re.compile(r"(\S+)(?: \([^\s()]*[^\d.\s()][^\s()]*\))? (?:is alive )?\(([\d.]+) ms\)\s*")
_SILENT = re.compile(r"(\S+) is unreachable\s*")
_FPING_KEYS = ("resp", "timeout", "vSum", "summary", "intSum", "dup")


def _is_fping(content: Content) -> bool:
    if content.braced and content.objects:
        return all(set(one) & {*_FPING_KEYS, "stats"} and len(one) == 1 for one in content.objects)
    return any(
        _is_fping_line(match[2])
        if (match := _FPING_LINE.fullmatch(line))
        else _ALIVE.fullmatch(line) or _SILENT.fullmatch(line)
        for line in content.head.splitlines()[:200]
    )


def _is_fping_line(rest: str) -> bool:
    return any(form.fullmatch(rest) for form in (_FPING_SAMPLES, _FPING_ANSWER, _FPING_SUMMARY))


def _read_fping(content: Content, request: FeedRequest) -> RttReading:
    found = PairSamples(content.source)
    start = origin_of(content, request)
    if content.braced and content.objects:
        _fping_json(content, found, start)
    else:
        _fping_text(content, found, start)
    found.notes.append(f"fping does not name its own host; {start!r} was taken")
    return found.reading("fping")


def _fping_text(content: Content, found: PairSamples, start: str) -> None:
    answers: dict[str, int] = {}
    for number, line in enumerate((content.text or "").splitlines(), 1):
        place = f"{content.source}, row {number}"
        if (match := _FPING_LINE.fullmatch(line)) is None:
            if match := _ALIVE.fullmatch(line):
                found.answer(start, match[1], match[2], place)
            elif match := _SILENT.fullmatch(line):
                found.probe(start, match[1], place)
            continue
        host, rest = match[1], match[2]
        if _FPING_SAMPLES.fullmatch(rest):
            run = found.probe(start, host, place, run=not answers.get(host))
            if answers.pop(host, 0):  # the lines of this run, once more
                run.samples.clear()
            cells = [text for text in rest.split() if not text.startswith("<")]
            for _ in range(rest.count("<")):
                found.skip("duplicate")
            for text in cells:
                if text != "-":
                    found.answer(start, host, text, place)
            counts = (len(cells), len(run.samples))
            found.summary(start, host, counts, ("0",) * 3 * bool(run.samples), place)
        elif match := _FPING_ANSWER.fullmatch(rest):
            found.probe(start, host, place)
            if match[1] is not None and "[<-" in match[2]:
                found.skip("other address")
            elif match[1] is not None:
                found.answer(start, host, match[1], place)
                answers[host] = answers.get(host, 0) + 1
        elif match := _FPING_SUMMARY.fullmatch(rest):
            counts = (int(match[1]), int(match[2]))
            found.summary(start, host, counts, [each for each in match.groups()[2:] if each], place)
        elif _DUPLICATE.fullmatch(rest):
            found.skip("duplicate")


def _fping_json(content: Content, found: PairSamples, start: str) -> None:
    for i, one in enumerate(content.objects):
        ((kind, told),) = one.items()
        place = f"{content.source}: [{i}].{kind}"
        if kind not in _FPING_KEYS:
            continue
        host = told.get("host") if isinstance(told, dict) else None
        if not isinstance(told, dict) or not isinstance(host, str):
            raise InputError(
                "not an object of fping", source=place, value=told, expected='{"host": …}'
            )
        if kind == "dup":
            found.skip("duplicate")
            continue
        run = found.probe(start, host, place, run=kind == "vSum")
        if kind == "resp" and told.get("rtt") is not None:
            found.answer(start, host, str(told["rtt"]), place)
        elif kind == "vSum":
            # the answers of the same run stand before it where -q was not given
            runs = found.runs[start, host]
            if len(runs) > 1 and not runs[-2].lines:
                runs.pop(-2)
            values = told.get("values")
            for text in values if isinstance(values, list) else [values]:
                if text is not None:
                    found.answer(start, host, str(text), place)
            sent = len(values) if isinstance(values, list) else 1
            texts = ("0",) * 3 * bool(run.samples)
            found.summary(start, host, (sent, len(run.samples)), texts, place)
        elif kind in ("summary", "intSum"):
            counts = (_whole(told, "xmt", place), _whole(told, "rcv", place))
            times = [str(told[key]) for key in ("rttMin", "rttAvg", "rttMax") if key in told]
            found.summary(start, host, counts, times if counts[1] else (), place)


def _whole(told: dict[str, object], key: str, place: str) -> int:
    value = told.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise refused(place, key, "no count", value, "a number")
    return value


FPING = Feed(
    "fping", "text of fping -C, -c, -l, -Q or -e, or its JSON (-J)", _is_fping, _read_fping
)

# --- mtr ------------------------------------------------------------------------------------------
#
# Fields may stand in any order (-o), and words of -z, -y and -b beside the host. The last hop is
# the target; where it did not answer there is no RTT, for the hop before it is a router.

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
        raise InputError(
            "not a report of mtr",
            source=found.source,
            field="report.hubs",
            value=hubs,
            expected="a list of hops with host and Avg",
        )
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
            raise InputError(
                "a row of another length", source=place, value=len(cells), expected=f"{len(names)}"
            )
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
    for number, line in enumerate((content.text or "").splitlines(), 1):
        place = f"{content.source}, row {number}"
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
                raise InputError(
                    "a row of another length",
                    source=place,
                    value=line.strip(),
                    expected=f"a host and {len(columns)} numbers",
                )
            # AS64500 host, [AS64500] host, 10.0.0.0/24 host, host (address)
            names = [word for word in words[: -len(columns)] if not re.fullmatch(r"\(\S*\)", word)]
            hop = (names[-1] if names else "", dict(zip(columns, cells, strict=True)), place)
    if hop is not None:
        _add_hop(found, (start, ""), *hop)


MTR = Feed("mtr", "text of mtr --report, --csv or --json", _is_mtr, _read_mtr)

# --- traceroute -----------------------------------------------------------------------------------
#
# traceroute, tracert and tracepath. The last hop counts where the target answered itself; a mark
# such as !H says that a router refused.

_TRACE_START = re.compile(
    r"(?:traceroute6? to|Tracing route to) (\S+?)(?: [(\[]([0-9a-fA-F.:]+)[)\]])?(?:,? .*)?"
)
_TRACE_HOP = re.compile(r"\s{0,9}\d+\s+(.*)")
_TRACE_ADDRESS = re.compile(r"(?:\d+\.){3}\d+|[\da-fA-F]*:[\da-fA-F:]*:[\da-fA-F.]*")
_TRACE_TIME = re.compile(r"<?(\d+(?:\.\d+)?)\s?ms\b")


def _is_traceroute(content: Content) -> bool:
    lines = content.head.splitlines()[:50]
    return any(_TRACE_START.fullmatch(line.strip()) for line in lines)


def _read_traceroute(content: Content, request: FeedRequest) -> RttReading:
    found = PairSamples(content.source)
    start, target, last = origin_of(content, request), ("", ""), (0, "")
    lines = [*(content.text or "").splitlines(), "traceroute to the end"]
    for number, line in enumerate(lines, 1):
        if match := _TRACE_START.fullmatch(line.strip()):
            if target[0]:
                _add_trace(found, start, target, *last)
            target, last = (match[1], match[2] or match[1]), (number, "")
        elif match := _TRACE_HOP.fullmatch(line[:1000]):
            last = number, match[1]
    found.notes.append(f"traceroute does not name its own host; {start!r} was taken")
    return found.reading("traceroute, last hop")


def _add_trace(found: PairSamples, start: str, target: tuple[str, str], row: int, hop: str) -> None:
    """Add the times of a last hop that is the target."""
    place = f"{found.source}, row {row}"
    run = found.probe(start, target[0], place, run=True)
    found.aliases[target[1]] = target[0]
    words = [word.strip("()[],") for word in hop.split()]
    hosts = set(filter(_TRACE_ADDRESS.fullmatch, words))
    if "!" in hop or not {*target} & set(words) or len(hosts) > 1:
        found.notes.append(f"{place}: the trace does not end at {target[0]}")
        return
    for text in _TRACE_TIME.findall(hop):
        found.answer(start, target[0], text, place)
    sent = len(run.samples) + hop.count("*")
    found.summary(start, target[0], (sent, len(run.samples)), ("0",) * bool(run.samples), place)


TRACEROUTE = Feed("traceroute", "text of traceroute and tracert", _is_traceroute, _read_traceroute)

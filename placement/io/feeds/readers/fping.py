"""Text and JSON of fping.

A time (-D) may stand before each line, an address in brackets after the name. Intervals of -Q and
the total after them are told apart by their counts.
"""

from __future__ import annotations

import re

from placement.errors import refused
from placement.io.feeds.pair_samples import PairSamples, origin_of
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading

# -C: "host : 91.7 - 29.2"; -c: "host : [0], 84 bytes, 0.65 ms (0.65 avg, 0% loss)" per answer and
# "host : xmt/rcv/%loss = 3/3/0%, min/avg/max = 0.03/0.04/0.05" at the end.
_FPING_LINE = re.compile(r"(?:\[[\d.:]+\] )?(\S+)(?: \(\S+\))?\s+: (.*)")
_FPING_SAMPLES = re.compile(r"\s*(?:\d+(?:\.\d+)?|-)(?:\s+(?:\d+(?:\.\d+)?|-|<\w+>))*\s*")
_FPING_ANSWER = re.compile(r"\[\d+\], (?:\d+ bytes, ([\d.]+) ms \([^()]*\)(.*)|timed out \(.*)")
_FPING_SUMMARY = re.compile(
    r"xmt/rcv/%(?:loss|return) = (\d{1,18})/(\d{1,18})/[\d.]+%"
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
        any(form.fullmatch(match[2]) for form in (_FPING_SAMPLES, _FPING_ANSWER, _FPING_SUMMARY))
        if (match := _FPING_LINE.fullmatch(line))
        else _ALIVE.fullmatch(line) or _SILENT.fullmatch(line)
        for line in content.head.splitlines()[:200]
    )


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
    for place, line in content.lines:
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
            raise refused(place, "", "not an object of fping", told, '{"host": …}')
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


FEED = Feed(
    "fping", "text of fping -C, -c, -l, -Q or -e, or its JSON (-J)", _is_fping, _read_fping,
    notes="RTTs are medians, or means where there are summaries only; fping does not name its "
    "own host: the file name, or --measured-from",
)  # fmt: skip

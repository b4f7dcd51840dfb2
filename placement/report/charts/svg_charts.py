"""Charts as SVG: bars, dots and lines, each with a caption and a legend.

:mod:`placement.report.plots` writes the same SVG as pictures. The values of a chart stand in a
table of the same section too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from placement.report.charts.markup import Child, Markup, clipped, tag


@dataclass(frozen=True, slots=True)
class Bar:
    """Bar of a chart: label, value, the value as text, and the role that colours it."""

    label: str
    value: float
    text: str
    role: str = "plan"


@dataclass(frozen=True, slots=True)
class Dots:
    """Row of dots on a common axis: label, and (value, role, name of the series)."""

    label: str
    points: tuple[tuple[float, str, str], ...]


@dataclass(frozen=True, slots=True)
class Series:
    """Line of a chart: its name and its (x, y) points in order of x.

    Marks of the points in `unproven` are hollow; `labels` are written beside the points.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    role: str = ""
    unproven: frozenset[tuple[float, float]] = frozenset()
    labels: tuple[str, ...] = ()


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers that cover an interval: steps of 1, 2 or 5 times a power of ten."""
    if not math.isfinite(high - low) or high - low < 1e-300:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * (1 - 1e-9))
    first = math.floor(low / step + 1e-9)
    found = []
    k = first
    while True:
        found.append(k * step)
        if found[-1] >= high - 1e-9 * step:
            return found
        k += 1


def _number(value: float) -> str:
    if value != 0 and (abs(value) < 0.01 or abs(value) >= 1e6):
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:,.6g}"


def bars(rows: Sequence[Bar], *, caption: str, name: str = "", logarithmic: bool = False) -> Markup:
    """Draw horizontal bars from zero; a value that is not finite gets its text and no bar.

    With `logarithmic` the bars begin at the power of ten below the smallest value instead, for
    times that differ by orders of magnitude. `name` is that of the chart as a picture.
    """
    finite = [row.value for row in rows if math.isfinite(row.value)]
    top = max(*finite, 1e-12) if finite else 1.0
    above = [value for value in finite if value > 0.0]
    decade = 10.0 ** math.floor(math.log10(min(above)) - 0.1) if above and logarithmic else 0.0
    body: list[Child] = []
    for k, row in enumerate(rows):
        share = max(row.value, 0.0) / top if math.isfinite(row.value) else 0.0
        if decade and share:
            share = math.log(row.value / decade) / math.log(top / decade)
        y = _ROW * k
        body.append(_label(row.label, y, "62%"))
        body.append(tag("text", {"class": "value", "x": "100%", "y": y + 15,
                                 "text-anchor": "end"}, row.text))  # fmt: skip
        for role, width in (("track", 1.0), (f"bar {row.role}", share)):
            if width > 0:
                body.append(tag("rect", {"class": role, "x": 0, "y": y + 21, "height": 9, "rx": 3,
                                         "width": f"{100 * width:.2f}%"}))  # fmt: skip
    return _figure(caption, name, _rows("bars", _ROW * len(rows), caption, body))


def dots(rows: Sequence[Dots], *, caption: str, unit: str, name: str = "") -> Markup:
    """Draw rows of dots on one axis from zero, the dots of a row joined by a line."""
    values = [v for row in rows for v, _, _ in row.points if math.isfinite(v)]
    marks = ticks(0.0, max(values, default=1.0) or 1.0)
    top = marks[-1] or 1.0
    legend = {series: role for row in rows for _, role, series in row.points}
    body: list[Child] = []
    for k, row in enumerate(rows):
        finite = [point for point in row.points if math.isfinite(point[0])]
        y = _ROW * k
        said = ", ".join(f"{series} {v:.1f} {unit}" for v, _, series in finite) or "nothing"
        spots: list[Child] = [
            tag("line", {"class": "track", "x1": 0, "x2": "100%", "y1": y + 28, "y2": y + 28})
        ]
        if finite:
            low, high = min(v for v, _, _ in finite), max(v for v, _, _ in finite)
            spots.append(tag("line", {"class": "span", "x1": f"{100 * low / top:.2f}%",
                                      "x2": f"{100 * high / top:.2f}%", "y1": y + 28,
                                      "y2": y + 28}))  # fmt: skip
        spots += [_dot(role, 100 * v / top, y + 28, f"{series}: {v:.1f} {unit}")
                  for v, role, series in finite]  # fmt: skip
        body.append(_label(row.label, y, "100%"))
        body.append(tag("g", {"role": "img", "aria-label": f"{row.label}: {said}"}, spots))
    foot = _ROW * len(rows) + 14
    body += [
        tag("text", {"class": "tick", "x": f"{100 * t / top:.2f}%", "y": foot,
                     "text-anchor": {0.0: "start", top: "end"}.get(t, "middle")},
            _number(t) if t else f"0 {unit}")
        for t in marks
    ]  # fmt: skip
    drawn = _rows("dots", foot + 6, caption, body)
    return _figure(
        caption,
        name,
        _legend([(series, _dot(role, 50, 7, series)) for series, role in legend.items()]),
        drawn,
    )


_ROW = 40
"""Pixels of a row of bars or dots: its label, and its track below."""


def _rows(kind: str, height: int, caption: str, body: Child) -> Markup:
    """Return rows whose places across are shares of the width: text keeps its size on a phone."""
    return tag("svg", {"class": f"rows {kind}", "width": "100%", "height": height, "role": "group",
                       "aria-label": caption}, body)  # fmt: skip


def _label(words: str, y: int, width: str) -> Markup:
    """Return the label of a row, cut at a width."""
    return tag("svg", {"x": 0, "y": y, "width": width, "height": 20},
               tag("title", None, words),
               tag("text", {"class": "what", "x": 0, "y": 15}, clipped(words, 90)))  # fmt: skip


_SHAPES = {"naive": "M0 -6.5L6.5 0L0 6.5L-6.5 0Z", "average": "M-5 -5L5 -5L5 5L-5 5Z"}
"""Outlines of dots by role; the others are circles."""


def _dot(role: str, percent: float, y: float, said: str) -> Markup:
    look = {"class": f"dot {role}"}
    shape = (
        tag("path", look | {"d": _SHAPES[role]}, tag("title", None, said))
        if role in _SHAPES
        else tag("circle", look | {"cx": "0", "cy": "0", "r": "6"}, tag("title", None, said))
    )
    return tag("svg", {"class": "spot", "x": f"{percent:.2f}%", "y": y}, shape)


def lines(
    series: Sequence[Series],
    *,
    caption: str,
    x_label: str,
    y_label: str,
    name: str = "",
    logarithmic: bool = False,
    steps: bool = False,
    x_names: Sequence[str] = (),
) -> Markup:
    """Draw lines with marks; a logarithmic y axis for times, `steps` for distributions.

    `x_names` stand at x = 0, 1, … in place of numbers, as many as there is room for. A line without
    points is not drawn; the others keep their colours.
    """
    points = [p for s in series for p in s.points if math.isfinite(p[1])]
    if logarithmic:
        points = [p for p in points if p[1] > 0]
    if not points:
        empty = tag("p", {"class": "empty"}, "There is nothing to draw.")
        return _figure(caption, name, empty)
    width, height, left, right, top, bottom = 720.0, 360.0, 70.0, 26.0, 14.0, 48.0
    first, last = min(p[0] for p in points), max(p[0] for p in points)
    xs = ticks(first, last, 8)
    if len(xs) == 1:
        xs = [xs[0] - 1, xs[0], xs[0] + 1]
    x0, x1 = xs[0], xs[-1]
    if all(float(p[0]).is_integer() for p in points) and max(x1 - x0, last - first) <= 14:
        x0, x1 = first, last
        xs = [x0 + k for k in range(int(x1 - x0) + 1)]
        if x0 == x1:
            x0, x1 = x0 - 1, x1 + 1
    if x_names:
        x0, x1 = 0, max(1, len(x_names) - 1)
        most = max(2, (width - left - right) // (9 * max(map(len, x_names)) + 14))
        xs = list(range(0, len(x_names), math.ceil(len(x_names) / most)))
    if logarithmic:
        low = min(max(math.floor(math.log10(min(p[1] for p in points))), -300), 299)
        high = max(min(math.ceil(math.log10(max(p[1] for p in points))), 300), low + 1)
        ys = [10.0**k for k in range(low, high + 1)]
    else:
        ys = ticks(min(0.0, *(p[1] for p in points)), max(p[1] for p in points) or 1.0)
        if len(ys) == 1:
            ys = [0.0, 1.0]

    def at_x(value: float) -> float:
        return left + (value - x0) / (x1 - x0 or 1.0) * (width - left - right)

    def at_y(value: float) -> float:
        if logarithmic:
            share = (math.log10(value) - math.log10(ys[0])) / (
                math.log10(ys[-1]) - math.log10(ys[0])
            )
        else:
            share = (value - ys[0]) / (ys[-1] - ys[0])
        return height - bottom - share * (height - top - bottom)

    body: list[Child] = []
    for value in ys:
        level = f"{at_y(value):.1f}"
        body.append(tag("line", {"class": "grid", "x1": left, "x2": width - right, "y1": level,
                                 "y2": level}))  # fmt: skip
        body.append(tag("text", {"class": "tick", "x": left - 8, "y": f"{at_y(value) + 5:.1f}",
                                 "text-anchor": "end"}, _number(value)))  # fmt: skip
    for value in xs:
        body.append(tag("text", {"class": "tick", "x": f"{at_x(value):.1f}", "y": height - 26,
                                 "text-anchor": "middle"},
                        x_names[int(value)] if x_names else _number(value)))  # fmt: skip
    body.append(tag("text", {"class": "axis", "x": width - right, "y": height - 6,
                             "text-anchor": "end"}, x_label))  # fmt: skip
    for k, one in enumerate(series):
        kept = [p for p in one.points if math.isfinite(p[1]) and (p[1] > 0 or not logarithmic)]
        if not kept:
            continue
        path = f"M{at_x(kept[0][0]):.1f} {at_y(kept[0][1]):.1f}"
        for (_, before), (x, y) in itertools.pairwise(kept):
            if steps:
                path += f"L{at_x(x):.1f} {at_y(before):.1f}"
            path += f"L{at_x(x):.1f} {at_y(y):.1f}"
        shown = one.role or f"series{k % 10}"
        marks = [] if steps and not one.labels else [
            _mark(k, at_x(x), at_y(y), f"{one.name}: {_number(x)}, {_number(y)}",
                  hollow=(x, y) in one.unproven)
            for x, y in kept
        ]  # fmt: skip
        for label, (x, y) in zip(one.labels, kept, strict=False):
            marks.append(tag("text", {"class": "point", "x": f"{at_x(x) + 7:.1f}",
                                      "y": f"{at_y(y) - 7:.1f}"}, label))  # fmt: skip
        body.append(
            tag("g", {"class": f"series {shown} dash{k % 4}"}, tag("title", None, one.name),
                tag("path", {"d": path}), marks)
        )  # fmt: skip
    said = f"{caption} {y_label} against {x_label}."
    drawn = tag(
        "svg",
        {"class": "chart", "viewBox": f"0 0 {width:.0f} {height:.0f}", "role": "img",
         "aria-label": said},
        body,
    )  # fmt: skip
    marked = not steps
    entries = []
    for k, one in enumerate(series):
        if not one.points:
            continue
        look = {"class": f"series {one.role or f'series{k % 10}'} dash{k % 4}"}
        mark = _mark(k, 18, 7, one.name) if marked else None
        entries.append((one.name, tag("g", look, tag("path", {"d": "M0 7L36 7"}), mark)))
    return _figure(caption, name, _legend(entries), tag("p", {"class": "y-label"}, y_label), drawn)


def _mark(kind: int, x: float, y: float, said: str, *, hollow: bool = False) -> Markup:
    """Return a mark of the series' own shape."""
    title, look = tag("title", None, said), {"class": "hollow" if hollow else None}
    if kind % 3 == 0:
        return tag("circle", look | {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "4.5"}, title)
    if kind % 3 == 1:
        return tag("rect", look | {"x": f"{x - 4:.1f}", "y": f"{y - 4:.1f}", "width": "8",
                                   "height": "8"}, title)  # fmt: skip
    corners = f"{x:.1f},{y - 6:.1f} {x + 5.5:.1f},{y + 4:.1f} {x - 5.5:.1f},{y + 4:.1f}"
    return tag("polygon", look | {"points": corners}, title)


def _legend(entries: Sequence[tuple[str, Markup]]) -> Markup:
    """Return a legend: names, each with a sample of 36 by 14 pixels."""
    items = [
        tag("li", None,
            tag("svg", {"class": "sample", "viewBox": "0 0 36 14", "aria-hidden": "true"}, sample),
            tag("bdi", None, clipped(name, 60)))
        for name, sample in entries
    ]  # fmt: skip
    return tag("ul", {"class": "legend"}, items)


def _figure(caption: str, name: str, *content: Child) -> Markup:
    look = {"data-picture": name or None}
    return tag("figure", look, tag("figcaption", None, caption), *content)

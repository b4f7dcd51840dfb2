"""Charts as HTML and SVG: bars and dots that reflow on a phone, lines with a legend.

Bars and dots are rows of a grid, so that their text stays text at any width. Each chart has a
caption, and what it shows stands in a table of the same section too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from placement.report.charts.markup import Child, Markup, clipped, tag

__all__ = ["Bar", "Dots", "Series", "bars", "dots", "lines", "ticks"]


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
    """Line of a chart: its name and its (x, y) points in order of x."""

    name: str
    points: tuple[tuple[float, float], ...]
    role: str = ""


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers that cover an interval: steps of 1, 2 or 5 times a power of ten."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
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


def bars(
    rows: Sequence[Bar], *, caption: str, least: float = 0.0, logarithmic: bool = False
) -> Markup:
    """Horizontal bars from zero; a value that is not finite gets its text and no bar.

    With `logarithmic` the bars begin at the power of ten below the smallest value instead, for
    times that differ by orders of magnitude.
    """
    finite = [row.value for row in rows if math.isfinite(row.value)]
    top = max(*finite, least, 1e-12) if finite else max(least, 1e-12)
    above = [value for value in finite if value > 0.0]
    decade = 10.0 ** math.floor(math.log10(min(above)) - 0.1) if above and logarithmic else 0.0
    body: list[Child] = []
    for row in rows:
        share = max(row.value, 0.0) / top if math.isfinite(row.value) else 0.0
        if decade and share:
            share = math.log(row.value / decade) / math.log(top / decade)
        width = 100 * share
        body.append(
            tag(
                "li",
                None,
                tag("span", {"class": "what", "title": row.label}, tag("bdi", None, row.label)),
                tag(
                    "span",
                    {"class": "track"},
                    tag("span", {"class": f"bar {row.role}", "style": f"width:{width:.2f}%"}),
                ),
                tag("span", {"class": "value"}, row.text),
            )
        )
    return _figure(caption, tag("ul", {"class": "bars"}, body))


def dots(rows: Sequence[Dots], *, caption: str, unit: str) -> Markup:
    """Rows of dots on one axis from zero, the dots of a row joined by a line."""
    values = [v for row in rows for v, _, _ in row.points if math.isfinite(v)]
    marks = ticks(0.0, max(values, default=1.0) or 1.0)
    top = marks[-1] or 1.0
    legend = {name: role for row in rows for _, role, name in row.points}
    body: list[Child] = []
    for row in rows:
        finite = [(v, role, name) for v, role, name in row.points if math.isfinite(v)]
        inner: list[Child] = []
        if finite:
            low, high = min(v for v, _, _ in finite), max(v for v, _, _ in finite)
            inner.append(
                tag("span", {"class": "span",
                             "style": f"left:{100 * low / top:.2f}%;"
                                      f"width:{100 * (high - low) / top:.2f}%"})
            )  # fmt: skip
        inner.extend(
            tag(
                "span",
                {
                    "class": f"dot {role}",
                    "style": f"left:{100 * v / top:.2f}%",
                    "title": f"{name}: {v:.1f} {unit}",
                },
            )
            for v, role, name in finite
        )
        said = ", ".join(f"{name} {v:.1f} {unit}" for v, _, name in finite) or "nothing"
        body.append(
            tag(
                "li",
                None,
                tag("span", {"class": "what", "title": row.label}, tag("bdi", None, row.label)),
                tag("span", {"class": "track", "role": "img", "aria-label": said}, inner),
            )
        )
    axis = tag(
        "li",
        {"class": "axis", "aria-hidden": "true"},
        tag("span", {"class": "what"}, unit),
        tag(
            "span",
            {"class": "track"},
            [
                tag("span", {"class": "tick", "style": f"left:{100 * t / top:.2f}%"}, _number(t))
                for t in marks
            ],
        ),
    )
    return _figure(
        caption,
        _legend(list(legend.items())),
        tag("ul", {"class": "dots"}, body, axis),
    )


def lines(
    series: Sequence[Series],
    *,
    caption: str,
    x_label: str,
    y_label: str,
    logarithmic: bool = False,
    steps: bool = False,
) -> Markup:
    """Lines with marks; a logarithmic y axis for times, `steps` for distributions."""
    series = [s for s in series if s.points]
    points = [p for s in series for p in s.points if math.isfinite(p[1])]
    if logarithmic:
        points = [p for p in points if p[1] > 0]
    if not points:
        return _figure(caption, tag("p", {"class": "empty"}, "There is nothing to draw."))
    width, height, left, right, top, bottom = 720.0, 360.0, 70.0, 16.0, 14.0, 48.0
    xs = ticks(min(p[0] for p in points), max(p[0] for p in points), 8)
    if len(xs) == 1:
        xs = [xs[0] - 1, xs[0], xs[0] + 1]
    x0, x1 = xs[0], xs[-1]
    if all(float(p[0]).is_integer() for p in points) and x1 - x0 <= 14:
        x0, x1 = min(p[0] for p in points), max(p[0] for p in points)
        xs = [x0 + k for k in range(int(x1 - x0) + 1)]
        if x0 == x1:
            x0, x1 = x0 - 1, x1 + 1
    if logarithmic:
        low = math.floor(math.log10(min(p[1] for p in points)))
        high = max(math.ceil(math.log10(max(p[1] for p in points))), low + 1)
        ys = [10.0**k for k in range(low, high + 1)]
    else:
        ys = ticks(min(0.0, *(p[1] for p in points)), max(p[1] for p in points) or 1.0)
        if len(ys) == 1:
            ys = [0.0, 1.0]

    def at_x(value: float) -> float:
        return left + (value - x0) / (x1 - x0) * (width - left - right)

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
                                 "text-anchor": "middle"}, _number(value)))  # fmt: skip
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
        marks = [] if steps else [
            _mark(k, at_x(x), at_y(y), f"{one.name}: {_number(x)}, {_number(y)}") for x, y in kept
        ]  # fmt: skip
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
    return _figure(
        caption,
        _line_legend(series, marked=not steps),
        tag("p", {"class": "y-label"}, y_label),
        drawn,
    )


def _mark(kind: int, x: float, y: float, said: str) -> Markup:
    """A mark of the series' own shape."""
    title = tag("title", None, said)
    if kind % 3 == 0:
        return tag("circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "4.5"}, title)
    if kind % 3 == 1:
        return tag("rect", {"x": f"{x - 4:.1f}", "y": f"{y - 4:.1f}", "width": "8",
                            "height": "8"}, title)  # fmt: skip
    corners = f"{x:.1f},{y - 6:.1f} {x + 5.5:.1f},{y + 4:.1f} {x - 5.5:.1f},{y + 4:.1f}"
    return tag("polygon", {"points": corners}, title)


def _line_legend(series: Sequence[Series], *, marked: bool) -> Markup:
    """Legend of the series: each with the line and mark by which it is drawn."""
    items: list[Child] = []
    for k, one in enumerate(series):
        shown = one.role or f"series{k % 10}"
        sample = tag(
            "svg",
            {"class": "sample", "viewBox": "0 0 36 14", "aria-hidden": "true"},
            tag(
                "g",
                {"class": f"series {shown} dash{k % 4}"},
                tag("path", {"d": "M0 7L36 7"}),
                _mark(k, 18, 7, one.name) if marked else None,
            ),
        )
        items.append(tag("li", None, sample, tag("bdi", None, clipped(one.name, 60))))
    return tag("ul", {"class": "legend"}, items)


def _legend(names: Sequence[tuple[str, str]]) -> Markup:
    return tag(
        "ul",
        {"class": "legend"},
        [
            tag(
                "li",
                None,
                tag("span", {"class": f"key {role}"}),
                tag("bdi", None, clipped(name, 60)),
            )
            for name, role in names
        ],
    )


def _figure(caption: str, *content: Child) -> Markup:
    return tag("figure", None, tag("figcaption", None, caption), *content)

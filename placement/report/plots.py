"""Pictures of the charts of a page, painted from the page's own SVG and style sheet.

Needs matplotlib (the extra `plot`), whose figures are made as objects and painted by Agg. pyplot,
with its global state and its choice of windows, is never used, so this works in a service and in a
thread. A chart is drawn once, in :mod:`placement.report.charts.svg_charts` or
:mod:`placement.report.map.svg_map`; here its lines, shapes and texts become artists.
"""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from placement.errors import InputError, MissingDependencyError
from placement.report.charts.markup import Markup, clipped, join
from placement.report.page import style_sheet
from placement.report.results_page import PlanTable
from placement.support.checks import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

FORMATS = ("png", "svg", "pdf")
"""Formats of pictures, by the end of the file's name."""

_WIDTH, _EDGE = 760.0, 16.0
"""Pixels across, and of the margin of a picture."""

_FALLBACK = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans Arabic",
    "WenQuanYi Zen Hei",
    "Noto Sans Symbols2",
    "Arial Unicode MS",
)
"""Fonts asked in this order, where installed, for letters that the first one lacks."""

_INHERITED = (
    "color", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray",
    "font-size", "font-weight", "text-anchor", "paint-order",
)  # fmt: skip
_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_COMPOUND = re.compile(r"([a-z]+)?((?:\.[\w-]+)*)")

Look = dict[str, str]


def plot_table(table: pd.DataFrame, *, title: str = "") -> Figure:
    """Draw a table as the page of ``placement report`` does.

    Parameters
    ----------
    table
        From :func:`placement.compare`, :func:`placement.compare_protocols`,
        :func:`placement.sweep` or :func:`placement.pareto`.
    title
        Above the picture; the problem in words when empty.

    Returns
    -------
    matplotlib.figure.Figure
        The charts of the page, one below the other.

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    rows = [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]
    about = str(table.attrs.get("problem") or table.attrs.get("objective") or "")
    charts = _charts(PlanTable(rows, about).sections())
    return _painted(list(charts.values()), title or about)


def pictures_of(sections: Sequence[Markup]) -> dict[str, Figure]:
    """Return the charts and the map of a page as figures, by name."""
    return {name: _painted([chart]) for name, chart in _charts(sections).items()}


def check_picture(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Refuse a picture that could not be written, before any work is done for it.

    Raises
    ------
    InputError
        For an ending that is not in `FORMATS`, a missing folder, or a file that exists.
    MissingDependencyError
        Without matplotlib.
    """
    from placement.io.formats.files import check_file

    target = Path(path)
    if target.suffix.lower().lstrip(".") not in FORMATS:
        expected = "a name that ends in " + ", ".join(f".{name}" for name in FORMATS)
        raise InputError("unknown picture format", field="plot", value=str(path), expected=expected)
    _figure(_WIDTH)
    return check_file(target, force=force)


def save_figure(
    figure: Figure, path: str | os.PathLike[str], *, force: bool = False, dpi: int = 150
) -> Path:
    """Write a figure whole or not at all, as its file name says; the bytes are reproducible."""
    import matplotlib as mpl

    from placement.io.formats.files import write_file

    target = check_picture(path, force=force)
    form = target.suffix.lower().lstrip(".")
    buffer = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
    with mpl.rc_context({"svg.hashsalt": "placement", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=form, dpi=dpi, metadata=undated[form])
    return write_file(target, buffer.getvalue(), force=force)


def _charts(sections: Sequence[Markup]) -> dict[str, Element]:
    """Return the parts of a page that are named as pictures."""
    whole = ElementTree.fromstring(f"<page>{join(sections)}</page>")
    return {one.attrib["data-picture"]: one for one in whole.iter() if "data-picture" in one.attrib}


def _figure(height: float) -> tuple[Figure, Axes]:
    """Return a figure of so many pixels in height whose axes are in pixels, y downwards."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError.of("pictures need matplotlib", "plot") from error
    figure = Figure(figsize=(_WIDTH / 100, height / 100))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, _WIDTH), ylim=(height, 0))
    axes.axis("off")
    return figure, axes


def _painted(charts: Sequence[Element], title: str = "") -> Figure:
    """Paint charts below each other: caption, legend and drawing of each."""
    blocks: list[tuple[float, str | Element]] = [(26.0, title)] if title else []
    for chart in charts:
        for part in (chart,) if chart.tag == "svg" else tuple(chart):
            entries = part.findall("li") if part.tag == "ul" else [part]
            blocks += [(_height(one), one) for one in entries]
        blocks.append((_EDGE, ""))
    figure, axes = _figure(2 * _EDGE + sum(height for height, _ in blocks))
    painter = _Painter(axes)
    at = _EDGE
    for height, block in blocks:
        painter.block(block, at)
        at += height
    return figure


def _height(part: Element) -> float:
    if part.tag != "svg":
        return 20.0
    if "viewBox" in part.attrib:
        _, _, width, height = map(float, part.attrib["viewBox"].split())
        return (_WIDTH - 2 * _EDGE) * height / width
    return float(part.attrib["height"])


@dataclass(frozen=True)
class _Place:
    """Where an element is painted: origin and scale in pixels, and the width of 100 %."""

    x: float
    y: float
    scale: float
    width: float

    def across(self, value: str) -> float:
        """Return a coordinate across, which may be a share of the width, in pixels."""
        share = value.endswith("%")
        return self.x + (self.width * float(value[:-1]) / 100 if share else self.size(value))

    def down(self, value: str) -> float:
        return self.y + self.size(value)

    def size(self, value: str) -> float:
        return self.scale * float(value.removesuffix("px"))

    def points(self, text: str) -> FloatArray:
        pairs = np.array([float(one) for one in _NUMBERS.findall(text)]).reshape(-1, 2)
        return self.scale * pairs + (self.x, self.y)


class _Painter:
    """Paints elements of SVG on axes in pixels."""

    def __init__(self, axes: Axes) -> None:
        self._axes = axes
        self._rank = 1.0  # later elements lie above
        self._frame: Patch | None = None  # of the map that is painted
        self._root = {"color": _variables()["--ink"], "fill": "#000000", "font-size": "14"}
        self._families = _families()

    def block(self, block: str | Element, y: float) -> None:
        """Paint a caption, an entry of a legend, a label, or a drawing."""
        inside = _Place(_EDGE, y, 1.0, _WIDTH - 2 * _EDGE)
        if isinstance(block, str):
            self._words(block, inside, {**self._root, "font-weight": "700"})
        elif block.tag == "svg":
            scale = 1.0
            if "viewBox" in block.attrib:
                scale = inside.width / float(block.attrib["viewBox"].split()[2])
            if block.get("class") == "map":
                self._frame = self._sea(inside.y, _height(block))
            self._element(block, [], self._root, replace(inside, scale=scale))
            self._frame = None
        elif block.tag == "li":
            sample, name = block
            self._element(sample, [], self._root, replace(inside, width=36.0))
            self._words("".join(name.itertext()), replace(inside, x=_EDGE + 44), self._root)
        else:
            weight = "700" if block.tag == "figcaption" else "400"
            self._words("".join(block.itertext()), inside, {**self._root, "font-weight": weight})

    def _sea(self, y: float, height: float) -> Patch:
        """Return the ground of a map, at which lines and land end."""
        from matplotlib.patches import Rectangle

        wide = _WIDTH - 2 * _EDGE
        ground = Rectangle((_EDGE, y), wide, height, facecolor=_variables()["--sea"], zorder=0.5)
        return self._axes.add_patch(ground)

    def _words(self, words: str, place: _Place, look: Look) -> None:
        self._text(clipped(words, 110), place.x, place.y + 13, 1.0, look)

    def _element(self, one: Element, above: list[Element], look: Look, place: _Place) -> None:
        """Paint an element and the elements in it."""
        found: Look = {}
        for _, compounds, declared in _rules():
            if not _fits(one, compounds[-1]):
                continue
            rest = iter(reversed(above))
            if all(any(_fits(other, part) for other in rest) for part in reversed(compounds[:-1])):
                found |= declared
        own = {key: look[key] for key in _INHERITED if key in look} | found
        if "text-anchor" in one.attrib:
            own["text-anchor"] = one.attrib["text-anchor"]
        if own.get("display") == "none" or one.tag in ("defs", "title", "clipPath"):
            return
        self._rank += 0.001
        if one.tag == "svg" and above:
            x, y = place.across(one.get("x", "0")), place.down(one.get("y", "0"))
            wide = place.across(one.get("width", "100%")) - place.x
            place = replace(place, x=x, y=y, width=wide)
        if one.tag == "text":
            x, y = place.across(one.attrib["x"]), place.down(one.attrib["y"])
            self._text("".join(one.itertext()), x, y, place.scale, own)
        elif one.tag in ("path", "line", "rect", "circle", "polygon"):
            self._shape(one, own, place)
        for child in one if one.tag != "text" else ():
            self._element(child, [*above, one], own, place)

    def _shape(self, one: Element, look: Look, place: _Place) -> None:
        from matplotlib.patches import Circle, Polygon, Rectangle

        fill, edge = _colour(look, "fill"), _colour(look, "stroke")
        wide = place.size(look.get("stroke-width", "1")) * 0.72
        at = one.attrib
        drawn: dict[str, Any] = {"facecolor": fill, "edgecolor": edge, "linewidth": wide,
                                 "zorder": self._rank, "linestyle": _dashes(look)}  # fmt: skip
        if one.tag == "circle":
            centre = (place.across(at["cx"]), place.down(at["cy"]))
            self._axes.add_patch(Circle(centre, place.size(at["r"]), **drawn))
            return
        if one.tag == "rect":
            x, y = place.across(at["x"]), place.down(at["y"])
            wide_px = place.across(at["width"]) - place.x
            self._axes.add_patch(Rectangle((x, y), wide_px, place.size(at["height"]), **drawn))
            return
        closed = one.tag == "polygon" or at.get("d", "").endswith("Z")
        if one.tag == "line":
            corners = np.array(
                [(place.across(at[f"x{k}"]), place.down(at[f"y{k}"])) for k in (1, 2)]
            )
        else:
            corners = place.points(at.get("points") or at["d"])
        if closed:
            self._cut(self._axes.add_patch(Polygon(corners, closed=True, **drawn)))
            return
        (line,) = self._axes.plot(corners[:, 0], corners[:, 1], color=edge, linewidth=wide,
                                  linestyle=_dashes(look), zorder=self._rank)  # fmt: skip
        self._cut(line)
        if at.get("marker-end") and len(corners) > 1:
            size = 12 * place.scale
            step = corners[-1] - corners[-2]
            ahead = step / (math.hypot(*step) or 1.0)
            side = np.array([-ahead[1], ahead[0]])
            back = corners[-1] - size * ahead
            tip = [corners[-1], back + 0.4 * size * side, back - 0.4 * size * side]
            self._axes.add_patch(Polygon(tip, closed=True, color=edge, zorder=self._rank))

    def _cut(self, artist: Artist) -> None:
        if self._frame is not None:
            artist.set_clip_path(self._frame)

    def _text(self, words: str, x: float, y: float, scale: float, look: Look) -> None:
        from matplotlib.patheffects import withStroke

        effects = []
        if look.get("paint-order") == "stroke":
            wide = float(look["stroke-width"].removesuffix("px")) * scale * 0.72
            effects.append(withStroke(linewidth=wide, foreground=_colour(look, "stroke")))
        side = {"start": "left", "end": "right", "middle": "center"}
        self._axes.text(
            x,
            y,
            words.replace("$", r"\$"),  # no mathematics
            color=_colour(look, "fill"),
            fontsize=0.72 * scale * float(look["font-size"].removesuffix("px")),
            fontweight=int(look.get("font-weight", "400")),
            ha=side[look.get("text-anchor", "start")],
            va="baseline",
            family=self._families,
            path_effects=effects,
            zorder=self._rank,
            clip_on=True,
        )


def _families() -> list[str]:
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in _FALLBACK if name in installed]


def _colour(look: Look, key: str) -> Any:
    """Return the colour of a fill or a stroke with its opacity."""
    value = look.get(key, "none")
    if value == "currentColor":
        value = look["color"]
    return "none" if value == "none" else (value, float(look.get(f"{key}-opacity", "1")))


def _dashes(look: Look) -> Any:
    dashes = [0.72 * float(one) for one in look.get("stroke-dasharray", "").split()]
    wide = max(0.72 * float(look.get("stroke-width", "1").removesuffix("px")), 0.5)
    return (0, [one / wide for one in dashes]) if dashes else "solid"


# --- the style sheet ---------------------------------------------------------------------------


@cache
def _sheet() -> str:
    """Return the style sheet of the page without comments and without what is for some media."""
    text = re.sub(r"/\*.*?\*/", "", style_sheet(), flags=re.S)
    return re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", text)


def _declarations(body: str) -> Look:
    pairs = (one.split(":", 1) for one in body.split(";") if ":" in one)
    return {key.strip(): value.strip() for key, value in pairs}


@cache
def _variables() -> Mapping[str, str]:
    """Return the custom properties of the light page."""
    found: Look = {}
    for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", _sheet()):
        if selector.strip() == ":root":
            found |= {key: value for key, value in _declarations(body).items() if key[:2] == "--"}
    return found


@cache
def _rules() -> list[tuple[tuple[int, int], list[tuple[str, frozenset[str]]], Look]]:
    """Return the rules of tags and classes, the weakest first: weight, compounds, declarations."""
    found = []
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", _sheet()):
        value = re.sub(r"var\((--[\w-]+)\)", lambda m: _variables().get(m[1], "none"), body)
        for selector in selectors.split(","):
            parts = [_COMPOUND.fullmatch(one) for one in selector.split()]
            if parts and all(parts):
                compounds = [(m[1] or "", frozenset(m[2].split(".")[1:])) for m in parts if m]
                weight = (sum(len(c) for _, c in compounds), sum(bool(t) for t, _ in compounds))
                found.append((weight, compounds, _declarations(value)))
    return sorted(found, key=lambda rule: rule[0])


def _fits(one: Element, compound: tuple[str, frozenset[str]]) -> bool:
    name, classes = compound
    return name in ("", one.tag) and classes <= set(one.get("class", "").split())

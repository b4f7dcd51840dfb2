"""Pictures of the charts of a page: its own SVG, with its style sheet inside.

A chart is drawn once, in :mod:`placement.report.charts.svg_charts` or
:mod:`placement.report.map.svg_map`. A picture puts such charts below each other into one SVG that
stands alone. PNG and PDF are made from it by vl-convert (the extra `plot`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from placement.errors import InputError, MissingDependencyError
from placement.io.formats.files import check_file, write_file
from placement.report.charts.markup import Markup, clipped, join
from placement.report.page import style_sheet
from placement.report.table_page import PlanTable

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("png", "svg", "pdf")
"""Formats of pictures, by the end of the file's name."""

_WIDTH, _EDGE = 760.0, 16.0
"""Pixels across, and of the margin of a picture."""

_FONTS = "DejaVu Sans, Noto Sans, Liberation Sans, Arial, sans-serif"
"""vl-convert brings Liberation Sans. Letters that it lacks are taken from any installed font."""


@dataclass(frozen=True)
class Picture:
    """Charts as one SVG that needs nothing else; notebooks show it."""

    svg: str = field(repr=False)  #: the document

    def _repr_svg_(self) -> str:
        return self.svg


def plot_table(table: pd.DataFrame, *, title: str = "") -> Picture:
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
    Picture
        The charts of the page, one below the other.
    """
    rows = [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]
    about = str(table.attrs.get("problem") or table.attrs.get("objective") or "")
    return picture(PlanTable(rows, about).sections(), title=title or about)


def picture(content: Sequence[Markup], *, title: str = "") -> Picture:
    """Return the charts that a page names as pictures, one below the other, as one picture."""
    return _drawn([*_charts(content).values()], title)


def pictures_of(sections: Sequence[Markup]) -> dict[str, Picture]:
    """Return the charts and the map of a page as pictures, by name."""
    return {name: _drawn([chart]) for name, chart in _charts(sections).items()}


def check_picture(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Refuse a picture that could not be written, before any work is done for it.

    PNG and PDF need vl-convert (MissingDependencyError).
    """
    target = Path(path)
    form = target.suffix.lower().lstrip(".")
    if form not in FORMATS:
        expected = "a name that ends in " + ", ".join(f".{name}" for name in FORMATS)
        raise InputError("unknown picture format", field="plot", value=str(path), expected=expected)
    if form != "svg":
        try:
            import vl_convert  # noqa: F401
        except ImportError as error:
            words = "pictures in PNG and PDF need vl-convert"
            raise MissingDependencyError.of(words, "plot") from error
    return check_file(target, force=force)


def save_figure(
    figure: Picture, path: str | os.PathLike[str], *, force: bool = False, dpi: int = 150
) -> Path:
    """Write a picture whole or not at all, as its file name says; PNG and SVG are reproducible.

    `dpi` is that of a PNG: at 100 a pixel of the page is one of the picture.
    """
    target = check_picture(path, force=force)
    form = target.suffix.lower()
    if form == ".svg":
        data = figure.svg.encode()
    else:
        import vl_convert

        if form == ".pdf":
            data = vl_convert.svg_to_pdf(figure.svg)
        else:
            data = vl_convert.svg_to_png(figure.svg, scale=dpi / 100)
    return write_file(target, data, force=force)


def _charts(sections: Sequence[Markup]) -> dict[str, Element]:
    """Return the parts of a page that are named as pictures."""
    whole = ElementTree.fromstring(f"<page>{join(sections)}</page>")
    return {one.attrib["data-picture"]: one for one in whole.iter() if "data-picture" in one.attrib}


def _drawn(charts: Sequence[Element], title: str = "") -> Picture:
    """Put charts below each other: caption, legend and drawing of each."""
    look = {"xmlns": "http://www.w3.org/2000/svg", "font-family": _FONTS, "font-size": "14"}
    whole = Element("svg", look | {"class": "picture"})
    SubElement(whole, "style").text = _sheet()
    SubElement(whole, "rect", {"class": "ground", "width": "100%", "height": "100%"})
    at = _EDGE
    if title:
        _words(whole, title, at, bold=True)
        at += 26.0
    for chart in charts:
        parts = (chart,) if chart.tag == "svg" else tuple(chart)
        for one in (e for part in parts for e in (part.iter("li") if part.tag == "ul" else [part])):
            if one.tag == "svg":
                at += _put(whole, one, at, _WIDTH - 2 * _EDGE)
                continue
            if one.tag == "li":
                sample, name = one
                _put(whole, sample, at, 36.0)
                _words(whole, "".join(name.itertext()), at, right=44.0)
            else:
                _words(whole, "".join(one.itertext()), at, bold=one.tag == "figcaption")
            at += 20.0
        at += _EDGE
    whole.attrib |= {"width": f"{_WIDTH:g}", "height": f"{at + _EDGE:g}"}
    return Picture(ElementTree.tostring(whole, encoding="unicode", xml_declaration=True))


def _words(
    whole: Element, words: str, at: float, *, right: float = 0.0, bold: bool = False
) -> None:
    place = {"x": f"{_EDGE + right:g}", "y": f"{at + 13:g}"}
    place["font-weight"] = "700" if bold else "400"
    SubElement(whole, "text", place).text = clipped(words, 76 if bold else 88)


def _put(whole: Element, drawing: Element, at: float, width: float) -> float:
    """Put a drawing at a height; return its own height."""
    height = float(drawing.get("height", 0))
    if "viewBox" in drawing.attrib:
        _, _, wide, high = map(float, drawing.attrib["viewBox"].split())
        height = width * high / wide
    if drawing.get("class") == "map":
        drawing.insert(0, Element("rect", {"class": "sea", "width": "100%", "height": "100%"}))
    place = {"x": _EDGE, "y": at, "width": width, "height": height}
    drawing.attrib |= {name: f"{value:g}" for name, value in place.items()}
    whole.append(drawing)
    return height


@cache
def _sheet() -> str:
    """Return the light page's rules for tags and classes, for pictures alone, without variables."""
    unused = r"/\*.*?\*/|@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}"
    grounds = ".ground { fill: var(--ground); } .sea { fill: var(--sea); }"
    text = re.sub(unused, "", style_sheet() + grounds, flags=re.S)
    text = re.sub(r"light-dark\(([^,]*),[^)]*\)", r"\1", text)
    rules = re.findall(r"([^{}]+)(\{[^{}]*\})", text)
    light = "".join(body for selectors, body in rules if selectors.strip() == ":root")
    values = dict(re.findall(r"(--[\w-]+):\s*([^;}]+)", light))
    plain = ((a.lstrip(), body) for a, body in rules if re.fullmatch(r"[\w.,\s-]+", a))
    own = (re.sub(r"(^|,\s*)(svg )?", r"\1.picture ", a) + body for a, body in plain)
    return re.sub(r"var\((--[\w-]+)\)", lambda found: values[found[1]], "\n".join(own))

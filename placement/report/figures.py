"""The figures of the page as pictures, for papers and slides: the same content, the same colours.

Needs matplotlib (the extra `plot`), without any window system.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.errors import InputError, MissingDependencyError
from placement.plan import Plan
from placement.report.baselines import baselines, distinct_baselines, latency_shares
from placement.report.charts.markup import clipped
from placement.report.charts.palette import LATENCY, METHODS, ROLES
from placement.report.map.map_view import map_view
from placement.report.map.svg_map import star
from placement.report.result_file import Results, best_known, families, row_gap
from placement.text import escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plan_figures", "results_figures", "save"]

_INK, _SOFT, _RULE = "#1a1d23", "#565d6b", "#d9dce2"
_MOST = 30
_FALLBACK = (
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans Arabic",
    "WenQuanYi Zen Hei",
    "Noto Sans Symbols2",
    "Arial Unicode MS",
)
"""Asked, where installed, for letters that the first font lacks."""


def save(
    source: Plan | Results,
    folder: str | os.PathLike[str],
    *,
    format: str = "png",
    force: bool = False,
) -> tuple[Path, ...]:
    """Write every figure of a plan or of results into a folder.

    Parameters
    ----------
    source
        A plan, or benchmark results.
    folder
        Created when absent, its parent must exist.
    format
        "png" (200 dots per inch) or "svg".
    force
        Replace existing files.

    Returns
    -------
    tuple of Path
        The files, in the order of the page.

    Raises
    ------
    InputError
        For another format, or a file that exists.
    MissingDependencyError
        Without matplotlib.
    """
    if format not in ("png", "svg"):
        raise InputError(
            "unknown format of figures", field="format", value=format, expected="'png' or 'svg'"
        )
    from placement.io.formats.files import check_file, write_file

    here = Path(folder)
    made = plan_figures(source) if isinstance(source, Plan) else results_figures(source)
    here.mkdir(exist_ok=True)
    paths = [here / f"{name}.{format}" for name in made]
    for path in paths:
        check_file(path, force=force)
    for path, draw in zip(paths, made.values(), strict=True):
        sink = io.BytesIO()
        with _style():
            draw().savefig(sink, format=format, dpi=200, metadata=_metadata(format))
        write_file(path, sink.getvalue(), force=force)
    return tuple(paths)


def _style() -> contextlib.AbstractContextManager[None]:
    """Style with fonts for more scripts where installed, and with reproducible SVG."""
    try:
        from matplotlib import font_manager, rc_context
    except ImportError as error:
        raise MissingDependencyError.of("figures need matplotlib", "plot") from error
    installed = {font.name for font in font_manager.fontManager.ttflist}
    families = ["DejaVu Sans", *(name for name in _FALLBACK if name in installed)]
    return rc_context({"font.family": families, "svg.hashsalt": "placement"})


def _metadata(format: str) -> dict[str, None]:
    """Leave the date out, so that the same plan gives the same bytes."""
    return {"Date": None} if format == "svg" else {"Software": None}


def plan_figures(plan: Plan) -> Mapping[str, Callable[[], Figure]]:
    """Return the figures of a plan by name, each drawn when called; a map only without a plan."""
    found: dict[str, Callable[[], Figure]] = {"map": lambda: _map(plan)}
    if plan.found:
        found |= {
            "latency": lambda: _latency(plan),
            "clients": lambda: _clients(plan),
        }
        if plan.leaders:
            found["leaders"] = lambda: _leaders(plan)
        if plan.tells_losses:
            found["failures"] = lambda: _failures(plan)
    return found


def results_figures(results: Results) -> Mapping[str, Callable[[], Figure]]:
    """Return the figures of benchmark results by name: gap and time of each family."""
    solved = [row for row in results.rows if row["cell"].get("kind") == "solve"]
    found: dict[str, Callable[[], Figure]] = {}
    for number, (title, mine) in enumerate(families(solved), start=1):
        found[f"gap-{number}"] = partial(_trend, mine, title, "gap")
        found[f"time-{number}"] = partial(_trend, mine, title, "time")
    return found


def _name(text: str, most: int = 28) -> str:
    """Return a name for matplotlib: no control characters, no mathematics between dollars."""
    return clipped(escape(text), most).replace("$", r"\$")


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(_RULE)
    axes.tick_params(colors=_SOFT, labelsize=9)
    axes.set_axisbelow(True)
    return figure, axes


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=11, fontweight="bold", color=_INK)


def _map(plan: Plan) -> Figure:
    from matplotlib.patches import Circle, Polygon, Rectangle

    view = map_view(plan.problem.instance, plan)
    figure, axes = _figure(10, 10 * view.height / view.width)
    axes.set_xlim(0, view.width)
    axes.set_ylim(view.height, 0)
    axes.set_aspect("equal")
    axes.axis("off")
    figure.patch.set_facecolor("#eef3f8")
    for line in view.graticule:
        axes.plot(line[:, 0], line[:, 1], color="#d3dde8", linewidth=0.6, zorder=1)
    for rings, colour in ((view.land, "#dcdfd8"), (view.water, "#eef3f8")):
        for ring in rings:
            axes.add_patch(
                Polygon(ring, closed=True, facecolor=colour, edgecolor="#b9beb2", lw=0.5, zorder=2)
            )
    limits = sorted(mark.latency for mark in view.clients if not math.isnan(mark.latency))
    cuts = (
        [limits[min(len(limits) - 1, len(limits) * k // 5)] for k in range(1, 5)] if limits else []
    )
    point = 72 * 10 / view.width  # points per unit of the view
    for mark in view.clients:
        step = sum(mark.latency > cut for cut in cuts)
        axes.scatter(mark.x, mark.y, s=(2 * mark.size * point) ** 2, color=LATENCY[step],
                     alpha=0.72, linewidths=0.4, edgecolors="white", zorder=3)  # fmt: skip
    for arrow in view.arrows:
        if arrow.kind == "read":
            continue
        colour = ROLES["leader"] if arrow.kind == "ask" else ROLES["voter"]
        wide = {"vote": 2.2, "late": 1.2, "ask": 0.9}[arrow.kind]
        style = (0, (4, 3)) if arrow.kind == "late" else "solid"
        for piece in arrow.pieces:
            axes.plot(piece[:, 0], piece[:, 1], color=colour, linewidth=wide, linestyle=style,
                      zorder=4)  # fmt: skip
        last = arrow.pieces[-1]
        if len(last) > 3:
            axes.annotate("", xy=last[-2], xytext=last[-4], zorder=4,
                          arrowprops={"arrowstyle": "-|>", "color": colour, "lw": wide,
                                      "shrinkB": 6})  # fmt: skip
    for mark in view.sites:
        if mark.role == "site":
            axes.scatter(mark.x, mark.y, s=12, facecolors="white", edgecolors=ROLES["site"],
                         linewidths=1, zorder=5)  # fmt: skip
            continue
        colour = ROLES["voter" if mark.role == "witness" else mark.role]
        look: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "lw": 1.2}
        if mark.role == "witness":
            look |= {"linestyle": "dashed", "edgecolor": _INK}
        corner = (mark.x - mark.size * 0.9, mark.y - mark.size * 0.9)
        axes.add_patch(
            Polygon(star(mark.x, mark.y, mark.size), closed=True, zorder=7, **look)
            if mark.role == "leader"
            else Circle((mark.x, mark.y), mark.size, zorder=6, **look)
            if mark.role in ("voter", "witness")
            else Rectangle(corner, 1.8 * mark.size, 1.8 * mark.size, zorder=6, **look)
        )
        axes.text(mark.x, mark.y, str(mark.number), ha="center", va="center", fontsize=8,
                      fontweight="bold", color="white", zorder=8)  # fmt: skip
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    for label in view.labels:
        side = {"start": "left", "end": "right", "middle": "center"}[label.anchor]
        small = label.role == "site"
        axes.text(label.x, label.y, _name(label.text), ha=side, va="baseline",
                  fontsize=6.5 if small else 8.5, fontweight="normal" if small else "bold",
                  color=_SOFT if small else _INK, path_effects=halo, zorder=9)  # fmt: skip
    return figure


def _latency(plan: Plan) -> Figure:
    figure, axes = _figure(7, 4)
    rows = plan.per_client
    weight = [row.operations for row in rows]
    lines = [("this plan", [row.latency for row in rows], ROLES["plan"], "solid")]
    styles = ((ROLES["naive"], "dashed"), (ROLES["average"], "dotted"))
    different = distinct_baselines(plan, baselines(plan))
    for (colour, style), other in zip(styles, different, strict=False):
        name = f"{other.choice.strategy} ({_name(str(other.choice.leader), 20)})"
        lines.append((name, list(other.per_client), colour, style))
    for name, latency, colour, style in lines:
        corners = latency_shares(latency, weight)
        axes.step([x for x, _ in corners], [y for _, y in corners], where="post", color=colour,
                  linestyle=style, linewidth=1.8, label=name)  # fmt: skip
    axes.set_xlabel("mean latency of the client, ms", color=_SOFT)
    axes.set_ylabel("operations, %", color=_SOFT)
    axes.grid(axis="y", color=_RULE, linewidth=0.7)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    axes.set_xlim(left=0)
    _title(axes, "Operations answered within a mean latency")
    return figure


def _clients(plan: Plan) -> Figure:
    rows = plan.per_client
    heaviest = sorted(range(len(rows)), key=lambda c: rows[c].operations)[-20:]
    figure, axes = _figure(7, 1.2 + 0.26 * len(heaviest))
    different = distinct_baselines(plan, baselines(plan))[:1]
    y = range(len(heaviest))
    after = [rows[c].latency for c in heaviest]
    if different:
        before = [different[0].per_client[c] for c in heaviest]
        axes.hlines(list(y), before, after, color=ROLES["site"], linewidth=1.5)
        axes.scatter(before, list(y), marker="D", s=34, color=ROLES["naive"], zorder=3,
                     label=f"{different[0].choice.strategy} "
                     f"({_name(str(different[0].choice.leader), 20)})")  # fmt: skip
    axes.scatter(after, list(y), s=44, color=ROLES["plan"], zorder=4, label="this plan")
    axes.set_yticks(list(y), [_name(rows[c].client) for c in heaviest])
    axes.set_xlim(left=0)
    axes.set_xlabel("mean latency, ms", color=_SOFT)
    axes.grid(axis="x", color=_RULE, linewidth=0.7)
    axes.legend(frameon=False, fontsize=9)
    _title(axes, f"The {len(heaviest)} heaviest clients")
    return figure


def _barh(title: str, rows: list[tuple[str, float, str, str]]) -> Figure:
    rows = rows[:_MOST]
    figure, axes = _figure(7, 1.1 + 0.3 * len(rows))
    y = list(range(len(rows)))[::-1]
    values = [value if math.isfinite(value) else 0.0 for _, value, _, _ in rows]
    axes.barh(y, values, color=[colour for _, _, _, colour in rows], height=0.68)
    axes.set_yticks(y, [_name(name) for name, _, _, _ in rows])
    for at, value, (_, _, text, _) in zip(y, values, rows, strict=True):
        axes.text(value, at, f" {text}", va="center", fontsize=8.5, color=_INK)
    axes.set_xlim(0, 1.28 * max(values, default=1.0) or 1.0)
    axes.set_xlabel("mean latency, ms", color=_SOFT)
    _title(axes, title)
    return figure


def _leaders(plan: Plan) -> Figure:
    return _barh(
        "Each voter as leader",
        [
            (
                row.leader,
                row.mean_latency,
                f"{row.mean_latency:.1f} ms (+{row.overhead:.1f} %)",
                ROLES["leader"] if row.leader == plan.leader else ROLES["voter"],
            )
            for row in plan.leaders
        ],
    )


def _failures(plan: Plan) -> Figure:
    found = plan.failures
    rows = [("nothing lost", found.normal, f"{found.normal:.1f} ms", ROLES["normal"])]
    rows += [
        (
            row.lost,
            row.mean_latency,
            f"{row.mean_latency:.1f} ms (+{row.overhead:.1f} %)" if row.survives else "stops",
            ROLES["lost"],
        )
        for row in found.each
    ]
    single = found.level == "site" and found.together == 1
    return _barh(f"After the loss of {'each single site' if single else found.what}", rows)


def _trend(rows: list[Mapping[str, Any]], title: str, kind: str) -> Figure:
    """Gap against the number of replicas, or time against the number of sites: medians."""
    import statistics

    from matplotlib.ticker import MaxNLocator

    figure, axes = _figure(7, 4)
    known = best_known(tuple(rows))
    marks = "os^Dv<>Ph*"
    sized = len({row.get("sites") for row in rows if row["outcome"] == "ok"}) > 1
    for k, method in enumerate(dict.fromkeys(row["cell"]["method"] for row in rows)):
        points: dict[int, list[float]] = {}
        for row in rows:
            if row["cell"]["method"] != method or row["outcome"] != "ok":
                continue
            if kind == "time":
                x_value = row.get("sites", 0) if sized else row["cell"]["replicas"]
                points.setdefault(x_value, []).append(float(row["seconds"]))
            elif (gap := row_gap(row, known)) is not None:
                points.setdefault(row["cell"]["replicas"], []).append(100 * gap)
        x = sorted(points)
        axes.plot(x, [statistics.median(points[v]) for v in x], marker=marks[k % 10], label=method,
                  color=METHODS[k % 10], linestyle=("-", "--", ":", "-.")[k % 4])  # fmt: skip
    if kind == "time":
        axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("sites" if kind == "time" and sized else "replicas", color=_SOFT)
    axes.set_ylabel("median seconds" if kind == "time" else "median gap, %", color=_SOFT)
    axes.grid(axis="y", color=_RULE, linewidth=0.7)
    axes.legend(frameon=False, fontsize=8, ncols=2)
    axes.set_title(title, loc="left", fontsize=9, color=_SOFT)
    figure.suptitle("Time" if kind == "time" else "Gap", x=0.02, ha="left", fontsize=11,
                    fontweight="bold", color=_INK)  # fmt: skip
    return figure

"""Picture of a migration of leaders, after Figure 4 of Sharov et al. (extra ``plot``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.overtime.migration.simulate import LeaderMigration
from placement.overtime.replay.plots import figure_panels
from placement.report.charts.palette import METHODS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_migration"]

_DASHES = ("-", "-.", ":")


def plot_migration(result: LeaderMigration, *, title: str = "", step: str = "step") -> Figure:
    """Draw the latency in per cent of that before the migration, and the share that has moved.

    Parameters
    ----------
    result
        From :func:`placement.overtime.migration.migrate`.
    title
        Above the picture.
    step
        What the horizontal axis counts.
    """
    figure, (axes,) = figure_panels(1)
    for number, percent in enumerate(result.percents):
        latency = result.of(percent)
        axes.plot(
            100 * latency / latency[0],
            color=METHODS[number % len(METHODS)],
            ls=_DASHES[number % len(_DASHES)],
            drawstyle="steps-post",
            label=f"p{percent:g}",
        )
    axes.plot(100 * result.moved, color="#888888", ls="--", drawstyle="steps-post",
              label=f"leaders at {result.target}")  # fmt: skip
    axes.set_xlabel(step)
    axes.set_ylabel("latency, % of that before;\nleaders, % of all groups")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    if title:
        figure.suptitle(title, fontsize=11)
    return figure

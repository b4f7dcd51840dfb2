"""Pictures say what the tables say, with units, and are the same bytes every time."""

import builtins
import threading
import xml.etree.ElementTree as ElementTree

import matplotlib as mpl
import numpy as np
import pytest

import placement
from placement import Problem
from placement.errors import InputError, MissingDependencyError
from placement.report import plots
from tests.analysis.test_sweeps import world


@pytest.fixture(scope="module")
def comparison():
    problem = Problem(world(), replicas=3, voters=3)
    return placement.compare(problem, methods=["exhaustive", "kq", "leader"])


@pytest.fixture(scope="module")
def swept():
    return placement.sweep(world(), replicas=range(2, 5), voters=[1, 3], method="exhaustive")


def words(figure):
    return [text.get_text() for text in figure.findobj(mpl.text.Text) if text.get_text()]


def test_a_comparison_shows_latency_gap_and_time(comparison):
    figure = plots.plot_comparison(comparison)
    left, right = figure.axes
    widths = sorted(bar.get_width() for bar in left.patches)
    assert np.allclose(widths, sorted(comparison["mean_latency"].dropna()))
    assert left.get_xlabel() == "mean operation latency (ms)"
    assert right.get_xlabel() == "wall time (s)"
    text = words(figure)
    assert any("gap 0" in word for word in text)
    assert any(word.startswith("No plan from leader: refused") for word in text)
    assert "3 replicas, 3 voters" in text
    colours = {tuple(bar.get_facecolor()) for bar in left.patches}
    assert len(colours) == 2  # one is proven, one is not


def test_nothing_found_is_still_a_picture(tmp_path):
    table = placement.compare(Problem(world(), replicas=3, voters=3), methods=["leader"])
    figure = plots.plot_comparison(table)
    assert plots.save_figure(figure, tmp_path / "empty.png").stat().st_size > 1000


def test_a_sweep_shows_every_cell_and_gain(swept):
    above, below = plots.plot_sweep(swept).axes
    points = {tuple(xy) for line in above.lines for xy in line.get_xydata()}
    cells = zip(swept["replicas"], swept["mean_latency"], strict=True)
    assert {(float(size), latency) for size, latency in cells} <= points
    assert np.allclose(
        sorted(bar.get_height() for bar in below.patches), sorted(swept["gain"].dropna())
    )
    labels = above.get_legend_handles_labels()[1]
    assert labels == ["1 voter", "3 voters"]
    assert "ms" in above.get_ylabel()
    assert "ms" in below.get_ylabel()


def test_cells_without_proof_are_marked():
    table = placement.sweep(world(), replicas=range(2, 5), voters=1, method="kq")
    labels = plots.plot_sweep(table).axes[0].get_legend_handles_labels()[1]
    assert labels == ["1 voter, not proven (bar: down to the bound)"]


def test_a_frontier_is_a_staircase_with_a_currency():
    table = placement.pareto(world(), replicas=range(1, 5), voters=1, method="exhaustive")
    figure = plots.plot_pareto(table)
    (axes,) = figure.axes
    assert axes.lines[0].get_drawstyle() == "steps-post"
    assert np.allclose(axes.lines[0].get_xdata(), table["cost"])
    assert "USD" in axes.get_xlabel()
    assert "Latency against cost" in words(figure)
    partial = placement.pareto(
        world(), replicas=range(1, 5), voters=1, method="exhaustive", points=1
    )
    assert "Latency against cost (not complete)" in words(plots.plot_pareto(partial))


@pytest.mark.parametrize("form", plots.FORMATS)
def test_pictures_are_reproducible(comparison, tmp_path, form):
    paths = [tmp_path / f"{n}.{form}" for n in range(2)]
    for path in paths:
        plots.save_figure(plots.plot_comparison(comparison), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_dollars_in_names_are_no_mathematics(comparison, tmp_path):
    figure = plots.plot_comparison(comparison, title="cost in $ and more $")
    path = plots.save_figure(figure, tmp_path / "dollar.svg")
    assert "cost in $ and more $" in "".join(ElementTree.parse(path).getroot().itertext())


def test_pictures_are_drawn_in_a_thread_without_pyplot(comparison, tmp_path):
    path = tmp_path / "thread.png"
    thread = threading.Thread(
        target=lambda: plots.save_figure(plots.plot_comparison(comparison), path)
    )
    thread.start()
    thread.join()
    assert path.exists()


def test_bad_files(comparison, tmp_path):
    figure = plots.plot_comparison(comparison)
    with pytest.raises(InputError, match="unknown picture format"):
        plots.save_figure(figure, tmp_path / "x.gif")
    plots.save_figure(figure, tmp_path / "x.png")
    with pytest.raises(InputError):
        plots.save_figure(figure, tmp_path / "x.png")
    plots.save_figure(figure, tmp_path / "x.png", force=True)


def test_without_matplotlib_the_extra_is_named(comparison, monkeypatch):
    true_import = builtins.__import__

    def no_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return true_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(MissingDependencyError, match=r"replica-placement\[plot\]"):
        plots.plot_comparison(comparison)

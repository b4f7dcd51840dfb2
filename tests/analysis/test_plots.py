"""Pictures say what the tables say, with units, and are the same bytes every time."""

import builtins
import itertools
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


def words(figure):
    return [text.get_text() for text in figure.findobj(mpl.text.Text) if text.get_text()]


def test_a_comparison_shows_latency_gap_and_time(comparison):
    """The bars are as long as the latencies say; a method without a plan has its status."""
    figure = plots.plot_table(comparison)
    text = words(figure)
    assert "3 replicas, 3 voters" in text
    assert "refused" in text
    found = comparison.dropna(subset="mean_latency")
    for value, gap in zip(found["mean_latency"], found["gap"], strict=True):
        assert any(word.startswith(f"{value:,.2f} ms, gap ") for word in text), (value, gap)
    bars = [one for one in figure.axes[0].patches if one.get_facecolor()[:3] != (1, 1, 1)]
    widths = np.array([bar.get_width() for bar in bars])
    for share in found["mean_latency"] / found["mean_latency"].max():
        assert np.isclose(widths, share * widths.max(), rtol=1e-3).any()


def test_nothing_found_is_still_a_picture(tmp_path):
    table = placement.compare(Problem(world(), replicas=3, voters=3), methods=["leader"])
    figure = plots.plot_table(table)
    assert plots.save_figure(figure, tmp_path / "empty.png").stat().st_size > 1000


def test_a_sweep_shows_every_cell_and_gain():
    swept = placement.sweep(world(), replicas=range(2, 5), voters=[1, 3], method="exhaustive")
    figure = plots.plot_table(swept)
    text = words(figure)
    assert {"1 voter", "3 voters", "ms", "What one more replica brings"} <= set(text)
    # the heights of the marks of the mean latency are linear in the values
    for column in ("mean_latency", "gain"):
        value = swept[swept["voters"] == 1][column].dropna().to_numpy()
        assert any(
            len(xy) == len(value)
            and np.ptp(xy[:, 1]) > 0
            and np.allclose(
                (xy[:, 1] - xy[0, 1]) * np.ptp(value),
                -(value - value[0]) * np.ptp(xy[:, 1]),
                atol=0.2 * np.ptp(value),
            )
            for line in figure.axes[0].lines
            for xy in [line.get_xydata()]
        ), column


def test_cells_without_proof_are_marked():
    table = placement.sweep(world(), replicas=range(2, 5), voters=1, method="kq")
    assert "1 voter (hollow: not proven)" in words(plots.plot_table(table))


def test_a_frontier_is_a_staircase_with_labels():
    table = placement.pareto(world(), replicas=range(1, 5), voters=1, method="exhaustive")
    figure = plots.plot_table(table)
    steps = max((line.get_xydata() for line in figure.axes[0].lines), key=len)
    assert len(steps) == 2 * len(table) - 1
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in itertools.pairwise(steps))
    assert {f"{row.replicas}/{row.voters}" for row in table.itertuples()} <= set(words(figure))


@pytest.mark.parametrize("form", plots.FORMATS)
def test_pictures_are_reproducible(comparison, tmp_path, form):
    paths = [tmp_path / f"{n}.{form}" for n in range(2)]
    for path in paths:
        plots.save_figure(plots.plot_table(comparison), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_dollars_in_names_are_no_mathematics(comparison, tmp_path):
    figure = plots.plot_table(comparison, title="cost in $ and more $")
    path = plots.save_figure(figure, tmp_path / "dollar.svg")
    assert "cost in $ and more $" in "".join(ElementTree.parse(path).getroot().itertext())


def test_pictures_are_drawn_in_a_thread_without_pyplot(comparison, tmp_path):
    path = tmp_path / "thread.png"
    thread = threading.Thread(target=lambda: plots.save_figure(plots.plot_table(comparison), path))
    thread.start()
    thread.join()
    assert path.exists()


def test_bad_files(comparison, tmp_path):
    figure = plots.plot_table(comparison)
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
    with pytest.raises(MissingDependencyError, match=r"\[plot\]"):
        plots.plot_table(comparison)

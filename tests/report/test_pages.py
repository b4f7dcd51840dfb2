"""Pages as text and in notebooks: well-formed, complete, and with every name escaped."""

from __future__ import annotations

import html.parser
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from placement.errors import InputError
from placement.io.plan_file import save_plan
from placement.report import report_html, write_report
from placement.report.charts.markup import clipped, json_script, tag, text
from placement.report.charts.svg_charts import Dots, Series, dots, lines, ticks
from placement.report.map.svg_map import WIDTH, great_circle, map_view, project, scaled_places
from placement.report.page import PlanTable
from placement.report.plan_page import latency_shares
from placement.testing import random_instance
from tests.report import worlds

VOID = {"meta", "br", "hr", "input", "col", "img", "link"}


class Page(html.parser.HTMLParser):
    """Checks nesting, and collects elements, attributes and text."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: dict[str, list[str]] = {}
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.setdefault(self.open[-1] if self.open else "", []).append(data)

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [a for _, a in self.tags if name in (a.get("class") or "").split()]


PLANS = {
    "one site": worlds.one_site_plan,
    "238 sites": lambda: worlds.plan_of_size(238, 60, 9),
    "2000 clients": lambda: worlds.plan_of_size(20, 2000),
    "hostile": worlds.hostile_plan,
    "infeasible": worlds.infeasible_plan,
    "unknown": worlds.unknown_plan,
    "no coordinates": lambda: worlds.plan_of_size(12, 9, coordinates=False),
    "gaps in the data": worlds.no_demand_client_plan,
    "contingency": worlds.contingency_plan,
    "violating": worlds.violating_plan,
    "every site": lambda: worlds.plan_of_size(45, 10, 45),
}


@pytest.mark.parametrize("name", PLANS)
def test_pages_are_well_formed_and_self_contained(name: str) -> None:
    plan = PLANS[name]()
    page = Page(report_html(plan))
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    for element, attributes in page.tags:
        assert element not in ("img", "link", "iframe", "object", "b", "i", "u")
        assert not {"src", "onerror", "onmouseover", "onload"} & set(attributes)
        href = attributes.get("href")
        assert href is None or href.startswith("#")
        for reference in ("aria-labelledby", "aria-describedby"):
            if reference in attributes:
                assert attributes[reference] in ids
    shown = {a["data-site"] for a in page.with_class("mark")}
    assert shown == {seen(r) for r in plan.replicas}
    assert len(page.with_class("leader")) >= bool(plan.found)


def seen(name: str) -> str:
    """A name as it is read from the page."""
    import html

    return html.unescape(text(name))


def test_the_map_holds_its_marks() -> None:
    """Every mark lies inside the view; replicas are numbered from 1, the leader first."""
    for make in PLANS.values():
        plan = make()
        view = map_view(plan.problem.instance, plan)
        marks = view.replicas
        assert [m.number for m in marks] == list(range(1, len(plan.replicas) + 1))
        assert {m.name for m in marks} == set(plan.replicas)
        if marks:
            assert (marks[0].name, marks[0].role) == (plan.leader, "leader")
        for mark in (*view.sites, *view.clients):
            assert 0 <= mark.x <= WIDTH
            assert 0 <= mark.y <= view.height


def test_no_name_becomes_markup() -> None:
    source = report_html(worlds.hostile_plan())
    page = Page(source)
    assert [e for e, _ in page.tags].count("script") == 2
    assert "<script>alert" not in source
    assert "<img" not in source
    assert "\u2028" not in source
    assert "\u202e" not in source
    data = json.loads("".join(page.words["script"][0]))
    assert data["replicas"][0] == worlds.HOSTILE[0]


@given(st.text(max_size=40))
def test_text_survives_and_markup_does_not(value: str) -> None:
    """Any text gives exactly one element with exactly one attribute."""
    page = Page(tag("p", {"title": value}, value))
    assert len(page.tags) == 1
    assert list(page.tags[0][1]) == ["title"]
    assert "".join(page.words.get("p", [])) == (page.tags[0][1]["title"] or "")


@given(st.recursive(st.text() | st.floats(allow_nan=False, allow_infinity=False), st.lists))
def test_embedded_json_reads_back(value: Any) -> None:
    element = json_script("d", value)
    inner = element[element.index(">") + 1 : -len("</script>")]
    assert not set("<>&\u2028\u2029") & set(inner)
    inner.encode()
    assert json.loads(inner) == value


@given(st.text(max_size=60), st.integers(2, 20))
def test_clipping(value: str, most: int) -> None:
    short = clipped(value, most)
    assert len(short) <= most
    assert short == value if len(value) <= most else short.endswith("…")


@given(st.lists(st.tuples(st.floats(0, 300), st.floats(0, 1e6)), min_size=1, max_size=300))
def test_latency_shares_are_a_distribution(clients: list[tuple[float, float]]) -> None:
    """Shares rise to 100 per cent, and each corner is the share of operations up to there."""
    latency, weight = [ms for ms, _ in clients], [n for _, n in clients]
    corners = latency_shares(latency, weight)
    if not sum(weight) > 0:
        assert corners == ()
        return
    assert corners[0] == (0.0, 0.0)
    assert corners[-1][1] == pytest.approx(100)
    assert all(b[0] >= a[0] and b[1] >= a[1] - 1e-9 for a, b in itertools.pairwise(corners))
    last = dict(corners[1:])
    if len(clients) <= 100:
        for x, y in last.items():
            share = 100 * sum(n for ms, n in clients if ms <= x) / sum(weight)
            assert y == pytest.approx(share)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 9))
def test_ticks_cover(low: float, extent: float, most: int) -> None:
    marks = ticks(low, low + extent, most)
    step = marks[1] - marks[0]
    assert marks[0] <= low + 1e-6 * step
    assert marks[-1] >= low + extent - 1e-6 * step
    assert len(marks) <= most + 2
    assert np.allclose(np.diff(marks), step)


@pytest.mark.parametrize("x", [0.0, 1e18, 1.7e308])
@pytest.mark.parametrize("y", [5e-324, 2e-300, 1e300, 1.7e308])
def test_numbers_at_the_ends_of_a_double_are_drawn(x: float, y: float) -> None:
    assert "<svg" in dots([Dots("a", ((y, "plan", "b"), (1.0, "plan", "b")))], caption="", unit="")
    for points in (((x, y),), ((-x, 1.0), (x, y)), ((-x, -y), (x, y))):
        for many in (False, True):
            shown = [Series("a", points)]
            assert "<svg" in lines(shown, caption="", x_label="", y_label="", logarithmic=many)


def test_equal_earth_keeps_areas() -> None:
    """The projected area of a cell is that on the sphere, by the determinant of the Jacobian."""
    h = 1e-4
    for lon, lat in ((11, 0), (60, 30), (-100, -55), (170, 75)):
        p = project([(lon, lat), (lon + h, lat), (lon, lat + h)])
        dx, dy = (p[1] - p[0]) / np.radians(h), (p[2] - p[0]) / np.radians(h)
        assert abs(dx[0] * dy[1] - dx[1] * dy[0]) == pytest.approx(
            np.cos(np.radians(lat)), rel=1e-3
        )


def test_ways_end_at_the_frame_of_the_map() -> None:
    """Lines leave the view over the pole; the page cuts them at the whole view."""
    plan = worlds.plan_of_size(45, 10, 45)
    view = map_view(plan.problem.instance, plan)
    page = Page(report_html(plan))
    (rect,) = [a for _, a in page.tags if a.get("width") == f"{WIDTH:.10g}"]
    assert (rect["x"], rect["y"], rect["height"]) == ("0", "0", f"{view.height:.10g}")
    cut = [a["class"] for _, a in page.tags if a.get("clip-path") == "url(#map-frame)"]
    assert sorted(filter(None, cut)) == ["commits", "reads"]


def test_no_coast_crosses_the_map() -> None:
    """Each side of a ring of land or water is short: no ring is torn at the antimeridian."""
    view = map_view(worlds.plan_of_size(45, 10, 45).problem.instance)
    for ring in (*view.ground.land, *view.ground.water):
        steps = np.abs(np.diff(ring, axis=0, append=ring[:1]))
        assert steps.max() < WIDTH / 4


def test_great_circles() -> None:
    """A way keeps its ends, is cut at the rim only, and takes the Pacific where it is shorter."""
    pieces = great_circle((-122, 37), (139, 35))  # San Francisco to Tokyo
    assert len(pieces) == 2
    assert np.allclose(pieces[0][0], project([(-122, 37)])[0])
    assert np.allclose(pieces[-1][-1], project([(139, 35)])[0])
    assert len(great_circle((0, 50), (-74, 40))) == 1
    for odd in (((0, 0), (180, 0)), ((5, 5), (5, 5)), ((0, 90), (0, -90)), ((20, 30), (-160, -30))):
        assert all(np.isfinite(piece).all() and len(piece) >= 2 for piece in great_circle(*odd))


def test_scaled_places_keep_plane_distances() -> None:
    """Distances that come from a plane are reproduced up to scale."""
    points = np.random.default_rng(0).random((9, 2))
    distance = np.linalg.norm(points[:, None] - points[None], axis=-1)
    found = scaled_places(distance)
    again = np.linalg.norm(found[:, None] - found[None], axis=-1)
    assert np.allclose(again / again.max(), distance / distance.max())
    assert np.array_equal(scaled_places(np.zeros((1, 1))), np.zeros((1, 2)))
    assert np.array_equal(scaled_places(np.zeros((3, 3))), np.zeros((3, 2)))


# --- files -------------------------------------------------------------------------------------

FLEET = '{"format": "fleet/1", "value": 1, "method": "m", "mean_latency_ms": 1, %s}'


def test_plans_from_files(tmp_path: Path) -> None:
    plan = worlds.plan_of_size(8, 5)
    save_plan(plan, tmp_path / "plan.json")
    out = tmp_path / "r.html"
    write_report(tmp_path / "plan.json", out)
    assert Page(out.read_text(encoding="utf-8")).with_class("mark")
    with pytest.raises(InputError, match="exists already"):
        write_report(tmp_path / "plan.json", out)
    write_report(plan, out, force=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2]", "nothing to report on"),
        ("{}", "nothing to report on"),
        ('[{"a": 1}]', "neither a comparison nor a sweep"),
        ('[{"replicas": 3, "voters": 3}, {"voters": 3}]', r": \[1\].replicas: missing key"),
        ('{"cells": [{"replicas": 3, "voters": "x"}]}', r"cells\[0\].voters: not a whole number"),
        ('{"methods": [{"method": "kq"}, {"method": []}]}', r"methods\[1\].method: not text"),
        (FLEET % '"gap": "x"', r"x\.json: gap: not a number: got 'x', expected a number"),
        (FLEET % '"gap": 0, "plans": [3]', r"plans: not a list of tables"),
        (FLEET % '"gap": 0, "plans": [{"copies": 1.5}]', r"plans\[0\]\.copies: not a whole number"),
        (FLEET % '"gap": 0, "databases": []', "databases: not a whole number"),
        (FLEET % '"gap": 0, "databases": 1, "limits": [{}]', r"limits\[0\]\.name: missing key"),
        (FLEET % '"status": "infeasible", "short": 1', "short: not a list of tables"),
        ("not json", "not JSON.*expected a plan"),
        ('{"kind": "run"}\n{"kind": "row"}\n', "python -m benchmarks report"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        report_html(path)


def test_a_missing_file(tmp_path: Path) -> None:
    for name in ("x.json", "x.jsonl"):
        with pytest.raises(InputError, match="no such file"):
            report_html(tmp_path / name)


def test_comparisons_and_sweeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON of compare and sweep is drawn; the command line writes it and the page."""
    from placement.cli import main

    asked = ["world27", "--voters", "3", "--json", "--replicas"]
    for words, title in (
        (["methods", *asked, "3", "--methods", "best-of,kq"], "Methods compared"),
        (["sizes", *asked, "3..5", "--method", "best-of"], "How many replicas"),
    ):
        assert main(["compare", *words]) == 0
        data, out = tmp_path / f"{words[0]}.json", tmp_path / f"{words[0]}.html"
        data.write_text(capsys.readouterr().out)
        assert main(["report", str(data), "-o", str(out)]) == 0
        assert title in out.read_text(encoding="utf-8")
        Page(out.read_text(encoding="utf-8"))
        assert main(["report", str(data), "-o", str(out)]) == 1
        capsys.readouterr()


def test_frames_of_compare_and_sweep_are_taken() -> None:
    """Records of the tables, with their NaN, make pages."""
    nan = float("nan")
    compared = [
        {"method": "a<b", "status": "refused", "mean_latency": nan, "gap": nan, "seconds": 0.0,
         "leader": None, "replicas": (), "reason": "<no>"},
        {"method": "c", "status": "optimal", "mean_latency": 5.0, "gap": 0.0, "seconds": 0.1,
         "leader": "x", "replicas": ("x", "y"), "reason": ""},
        {"method": "d", "status": "feasible", "mean_latency": 6.0, "gap": float("inf"),
         "seconds": 0.1, "leader": "x", "replicas": ("x", "y"), "reason": ""},
    ]  # fmt: skip
    assert "&lt;no&gt;" in report_html(PlanTable(compared))
    Page(report_html(PlanTable(compared)))
    swept = [
        {"replicas": r, "voters": 3, "status": "optimal", "mean_latency": 10.0 / r if r else nan,
         "gain": nan, "gap": 0.0, "seconds": 0.0, "leader": "x", "replica_sites": ("x",),
         "reason": ""}
        for r in (0, 3, 4)
    ]  # fmt: skip
    Page(report_html(PlanTable(swept)))
    swept[1]["gap"] = 3.8e-16  # within the tolerance of a proof
    assert "e-1" not in "".join(report_html(PlanTable(swept)).split("<main")[1].split("</main>")[0])
    Page(report_html(PlanTable([])))


def test_figures(tmp_path: Path) -> None:
    """Every figure of a plan, hostile names included, is a picture; the same plan the same SVG."""
    pytest.importorskip("vl_convert")
    from placement.report import save_figures

    for number, make in enumerate((worlds.hostile_plan, worlds.infeasible_plan)):
        plan = make()
        paths = save_figures(plan, tmp_path / f"png{number}")
        assert len(paths) == (5 if plan.found else 1)
        assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
    plan = worlds.one_site_plan()
    first = save_figures(plan, tmp_path / "svg", format="svg")
    again = save_figures(plan, tmp_path / "again", format="svg")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in again]
    for path in first:
        assert re.match(r"<\?xml", path.read_text(encoding="utf-8"))
    with pytest.raises(InputError, match="exists already"):
        save_figures(plan, tmp_path / "svg", format="svg")
    with pytest.raises(InputError, match="unknown format"):
        save_figures(plan, tmp_path / "pdf", format="pdf")


def test_no_script_but_the_page_s_own_may_run() -> None:
    """The policy names the hash of the one script, and not 'unsafe-inline' for scripts."""
    import base64
    import hashlib
    import re

    from placement.report.page import page

    text = page("Title", ["<script>alert(1)</script>"], data={"a": 1})
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    policy = policy.replace("&#39;", "'").replace("&#x27;", "'")
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy


def test_page_and_figures_come_from_one_reading(tmp_path: Path, monkeypatch) -> None:
    """The source is read once, and figures show the plan whose certificate the page checked."""
    from placement import report
    from placement.cli import main
    from placement.io import plan_file

    plan = placement.solve(placement.Problem(placement.load("world27"), replicas=3, voters=3))
    save_plan(plan, tmp_path / "plan.json")
    read, drawn = [], []
    load_plan = plan_file.load_plan

    def counted(path):
        read.append(path)
        return load_plan(path)

    def kept(source, folder, **options):
        drawn.append(source)
        return ()

    monkeypatch.setattr(plan_file, "load_plan", counted)
    monkeypatch.setattr(report, "save_figures", kept)
    out = ["-o", str(tmp_path / "r.html"), "--figures", str(tmp_path / "f")]
    assert main(["report", str(tmp_path / "plan.json"), *out]) == 0
    assert len(read) == 1
    assert [one.checked for one in drawn] == [True]


EVIL = '<script>document.title="evil"</script>'
ALLOWED = {"table", "caption", "tbody", "tr", "th", "td"}


@pytest.fixture(scope="module")
def values():
    instance = random_instance(2, sites=5, clients=4)
    names = (EVIL, "b & c", "a\u202ed", "x" * 5000, "5")
    instance = instance.replace(sites=names, name=EVIL)
    problem = placement.Problem(instance, replicas=3, voters=3, pinned=[EVIL])
    none = placement.Problem(instance, replicas=3, voters=3, leader=EVIL, leaders=[EVIL])
    plan = placement.solve(problem)
    unfit = placement.evaluate(
        none, leader="5", voters=["5"], replicas=["5", "b & c"]
    )  # breaks constraints
    return instance, problem, plan, unfit


class Reader(html.parser.HTMLParser):
    """Collects the elements, attributes and words of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.words = [], set(), []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attributes}

    def handle_data(self, data):
        self.words.append(data)


def test_only_a_small_table_of_escaped_text(values):
    for value in values:
        shown = value._repr_html_()
        reader = Reader()
        reader.feed(shown)
        assert set(reader.tags) <= ALLOWED
        assert reader.attributes <= {"style"}
        assert any(EVIL in words for words in reader.words)
        assert "\u202e" not in shown
        assert len(shown) < 8000


def test_the_decision_is_in_the_table(values):
    plan = values[2]
    reader = Reader()
    reader.feed(plan._repr_html_())
    assert "optimal, proven" in " ".join(reader.words)
    assert plan.leader[:100] in " ".join(reader.words)
    assert "a replica is required" in values[3]._repr_html_()


def test_nothing_found_is_shown():
    problem = placement.Problem(
        random_instance(2, sites=5),
        replicas=5,
        voters=5,
        diversity=placement.Diversity("site", min_domains=6),
    )
    shown = placement.solve(problem)._repr_html_()
    assert "infeasible, proven" in shown
    assert "Why" in shown


def test_a_browser_runs_nothing_and_shows_the_table(browser, values, tmp_path):
    page = tmp_path / "page.html"
    body = "".join(value._repr_html_() for value in values)
    page.write_text(f"<!doctype html><meta charset=utf-8><title>fine</title>{body}")
    browser.console()
    browser.visit(page.resolve().as_uri())
    assert browser.run("return document.title") == "fine"
    assert browser.run("return document.scripts.length") == 0
    assert browser.run("return document.querySelectorAll('table').length") == len(values)
    assert EVIL in browser.run("return document.querySelector('td').textContent")
    assert browser.run("return document.body.scrollWidth") > 0
    assert not browser.console()


def test_the_hint_about_the_diagonal_works_for_arrays_and_frames():
    rtt = np.array([[1.0, 20, 30], [20, 2, 40], [30, 40, 3]])
    good = random_instance(1, sites=3, clients=3)
    frames = good.to_frames()

    def hints(build):
        with pytest.raises(placement.InputError, match="non-zero RTT to itself") as caught:
            build()
        text = caught.value.expected
        array = text.split("NumPy array: ")[1].split("; DataFrame")[0]
        frame = text.split("DataFrame: ")[1].split("); keep")[0]
        return array, frame

    array, _ = hints(lambda: good.replace(site_rtt=rtt))
    scope = {"site_rtt": rtt.copy()}
    exec(array, scope)
    assert good.replace(site_rtt=scope["site_rtt"]).site_rtt[0, 1] == 20

    table = frames["site_rtt"].copy()
    table.iloc[:, :] = rtt
    table = table[list(table.columns[::-1])]  # columns in another order than rows
    _, frame = hints(lambda: placement.Instance.from_frames(**{**frames, "site_rtt": table}))
    scope = {"site_rtt": table.copy()}
    exec(frame, scope)
    built = placement.Instance.from_frames(**{**frames, "site_rtt": scope["site_rtt"]})
    assert built.site_rtt[0, 1] == 20

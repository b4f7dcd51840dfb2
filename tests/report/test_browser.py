"""Pages in a real Chromium: no console error, every replica seen, hostile names stay text."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.explore.browser import Browser
from placement.plan import Plan
from placement.report import report_html
from tests.report import worlds
from tests.report.test_pages import PLANS, seen

VISIBLE = """
return Array.from(document.querySelectorAll('.mark')).map(mark => {
  const shape = mark.querySelector('polygon, circle, rect').getBoundingClientRect();
  const map = mark.closest('svg').getBoundingClientRect();
  return [mark.dataset.site, shape.width > 4 && shape.height > 4 &&
          shape.left >= map.left - 1 && shape.right <= map.right + 1 &&
          shape.top >= map.top - 1 && shape.bottom <= map.bottom + 1];
})
"""


def opened(browser: Browser, source: str, folder: Path) -> None:
    """Open a page, and hold it to silence in the console."""
    path = folder / "page.html"
    path.write_text(source, encoding="utf-8")
    browser.console()
    browser.visit(path.resolve().as_uri())
    assert [entry for entry in browser.console() if entry["level"] != "INFO"] == []


@pytest.mark.parametrize(
    "fault", ["<script>null.x</script>", "<script>console.error(1)</script>", "<img src=no.png>"]
)
def test_faults_are_noticed(browser: Browser, tmp_path: Path, fault: str) -> None:
    with pytest.raises(AssertionError):
        opened(browser, f"<!doctype html><title>x</title>{fault}", tmp_path)


@pytest.mark.parametrize("name", PLANS)
def test_pages_open(browser: Browser, tmp_path: Path, name: str) -> None:
    """No error, every replica on the map, nothing runs over the side of a desk or a phone."""
    plan = PLANS[name]()
    browser.resize(1280)
    opened(browser, report_html(plan), tmp_path)
    for width in (1280, 360):
        browser.resize(width)
        marks = browser.run(VISIBLE)
        assert {site for site, _ in marks} == {seen(name) for name in plan.replicas}
        assert all(visible for _, visible in marks)
        assert browser.run("return document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert browser.run("return document.querySelector('h1').textContent").startswith("Placement")
    assert browser.run("return document.querySelectorAll('img, iframe, link').length") == 0
    assert browser.run("return performance.getEntriesByType('resource').length") == 0


def test_hostile_names_stay_text(browser: Browser, tmp_path: Path) -> None:
    browser.resize(1280)
    opened(browser, report_html(worlds.hostile_plan()), tmp_path)
    assert browser.run("return document.scripts.length") == 2
    shown = browser.run("return document.body.innerText")
    assert "<script>alert(1)</script>" in shown
    assert "</script><img src=x onerror=alert(2)>" in shown
    assert "法兰克福数据中心" in shown
    assert "مركز بيانات دبي" in shown
    data = browser.run("return JSON.parse(document.getElementById('data').textContent).replicas")
    assert data == [name.encode("utf-8", "replace").decode() for name in worlds.HOSTILE]


CELLS = """
const table = Array.from(document.querySelectorAll('table')).find(
  t => t.caption.textContent.startsWith(arguments[0]));
const button = table.tHead.rows[0].cells[arguments[1]].querySelector('button');
for (let k = 0; k < arguments[2]; k++) button.click();
return Array.from(table.tBodies[0].rows).map(r => r.cells[arguments[1]].dataset.value
                                                 || r.cells[arguments[1]].textContent);
"""


def test_tables_sort(browser: Browser, tmp_path: Path) -> None:
    browser.resize(1280)
    plan = worlds.no_demand_client_plan()
    opened(browser, report_html(plan), tmp_path)
    down = browser.run(CELLS, "All 5 clients", 5, 1)
    assert down[-1] == "nan"
    known = [float(value) for value in down[:-1]]
    assert known == sorted(known, reverse=True)
    up = browser.run(CELLS, "All 5 clients", 5, 1)
    assert up[-1] == "nan"
    assert [float(value) for value in up[:-1]] == sorted(known)
    names = browser.run(CELLS, "All 5 clients", 0, 1)
    assert names == sorted(names)
    state = browser.run(
        "return Array.from(document.querySelectorAll('[aria-sort]')).map(c => c.ariaSort)"
    )
    assert state == ["ascending"]


def test_long_tables_fold(browser: Browser, tmp_path: Path) -> None:
    browser.resize(1280)
    opened(browser, report_html(worlds.plan_of_size(20, 2000)), tmp_path)
    count = (
        "return Array.from(document.querySelectorAll('.table-box.long tbody tr'))"
        ".filter(r => r.offsetHeight > 0).length"
    )
    assert browser.run(count) == 20
    browser.run("document.querySelector('button.more').click()")
    assert browser.run(count) == 2000


def test_the_map_answers_to_keys(browser: Browser, tmp_path: Path) -> None:
    """A mark that gets the focus tells its story; layers and the theme switch."""
    browser.resize(1280)
    plan = worlds.plan_of_size(8, 30)
    opened(browser, report_html(plan), tmp_path)
    browser.run("document.querySelector('.mark.leader').focus()")
    story = browser.run("return document.getElementById('story').textContent")
    assert story == f"{plan.leader}: leader"
    look = "return getComputedStyle(document.querySelector('.reads')).display"
    assert browser.run(look) == "none"
    browser.run("document.querySelector('input[data-layer=reads]').click()")
    assert browser.run(look) == "inline"
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(ground)
    browser.run("document.getElementById('theme').click()")
    assert browser.run(ground) != light


def test_the_reader_can_prefer_dark(browser: Browser, tmp_path: Path) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    try:
        browser.dark()
        opened(browser, report_html(worlds.one_site_plan()), tmp_path)
        assert browser.run(ground) == "rgb(20, 23, 28)"
    finally:
        browser.dark(False)


def test_controls_have_names(browser: Browser, tmp_path: Path) -> None:
    browser.resize(1280)
    opened(browser, report_html(worlds.plan_of_size(8, 30)), tmp_path)
    nodes = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    nameless = [
        node["role"]["value"]
        for node in nodes
        if not node.get("ignored")
        and any(
            p["name"] == "focusable" and p["value"]["value"] for p in node.get("properties", ())
        )
        and node["role"]["value"] not in ("RootWebArea",)
        and not node.get("name", {}).get("value")
    ]
    assert nameless == []
    levels = browser.run(
        "return Array.from(document.querySelectorAll('h1,h2,h3')).map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


LUMINANCE = """
function channel(v) { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }
function parts(c) { return c.match(/[\\d.]+/g).map(Number); }
function light(c) { const p = parts(c).map(channel);
                    return .2126 * p[0] + .7152 * p[1] + .0722 * p[2]; }
function ground(e) { while (e) { const c = getComputedStyle(e).backgroundColor, p = parts(c);
    if (p.length < 4 || p[3] > 0) return c; e = e.parentElement; } return 'rgb(255,255,255)'; }
return Array.from(document.querySelectorAll('p,dt,dd strong,small,td,th,li,caption,h1,h2,.badge'))
  .filter(e => e.offsetHeight && e.textContent.trim())
  .map(e => { const a = light(getComputedStyle(e).color), b = light(ground(e));
              return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.className || e.tagName]; })
  .filter(pair => pair[0] < 4.5)
"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(browser: Browser, tmp_path: Path, dark: bool) -> None:
    """Text stands at least 4.5 to 1 against its ground (WCAG 2 AA), light and dark."""
    browser.resize(1280)
    try:
        browser.dark(dark)
        for make in (lambda: worlds.plan_of_size(8, 30), worlds.infeasible_plan):
            opened(browser, report_html(make()), tmp_path)
            assert browser.run(LUMINANCE) == []
            faded = "document.querySelector('.question').style.color = arguments[0];"
            assert len(browser.run(faded + LUMINANCE, "rgb(120, 125, 130)")) == 1
    finally:
        browser.dark(False)


def test_it_prints(browser: Browser, tmp_path: Path) -> None:
    browser.resize(1280)
    make: Callable[[], Plan] = PLANS["238 sites"]
    opened(browser, report_html(make()), tmp_path)
    path = tmp_path / "page.pdf"
    browser.print(path)
    assert path.read_bytes().startswith(b"%PDF")


def test_a_fleet_opens(browser: Browser, tmp_path: Path) -> None:
    opened(browser, report_html(worlds.hostile_fleet()), tmp_path)
    for width in (1280, 360):
        browser.resize(width)
        assert browser.run("return document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert browser.run("return document.querySelectorAll('script').length") == 2
    headings = browser.run("return Array.from(document.querySelectorAll('h2'), h => h.textContent)")
    assert headings == [
        "The fleet", "Shared limits", "Databases that pay most for sharing", "Gap by round",
    ]  # fmt: skip

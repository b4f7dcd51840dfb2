"""The page of the explorer in a real Chromium."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pytest

from benchmarks.explore.browser import Browser
from placement import load, solve
from placement.explore.question import read_question
from placement.io.formats.document import parse_json
from tests.effort import examples, seeds
from tests.explore.serving import Served, served
from tests.report import worlds

ROOT = "document.documentElement.dataset"
SET = """
const field = document.getElementById(arguments[0]);
field.value = arguments[1];
field.dispatchEvent(new Event('input', {bubbles: true}));
field.dispatchEvent(new Event('change', {bubbles: true}));
"""
# each of four panels asks for all that are open; here a later request reaches the server earlier
OVERTAKE = """
let real = window.fetch, wait = 120;
window.fetch = (address, options) => new Promise(go => setTimeout(go, wait -= 30))
  .then(() => real(address, {...options, signal: undefined}));
document.querySelectorAll('details').forEach(one => { one.open = true; });
"""


@pytest.fixture(scope="module")
def world() -> Iterator[Served]:
    yield from served(load("world27"))


def until(browser: Browser, condition: str) -> None:
    end = time.monotonic() + 60
    while not browser.run(f"return Boolean({condition})"):
        assert time.monotonic() < end, f"{condition}: {browser.run(TEXT)}"
        time.sleep(0.05)


TEXT = "return document.getElementById('problem').textContent"


def answered(browser: Browser) -> None:
    until(browser, f"{ROOT}.asked && {ROOT}.asked === {ROOT}.drawn")


def opened(browser: Browser, there: Served, question: object = None) -> None:
    browser.visit("about:blank")
    browser.console()  # what the page before had under way ends with it
    browser.visit(there.address + ("" if question is None else "#" + json.dumps(question)))
    answered(browser)


def silent(browser: Browser) -> None:
    assert [entry for entry in browser.console() if entry["level"] != "INFO"] == []


def equals_python(browser: Browser, there: Served) -> None:
    """The page shows the plan that Python has for the question of the address."""
    text = unquote(browser.run("return location.hash.slice(1)"))
    question = read_question(parse_json(text, "address"), there.explorer.instance)
    plan = solve(question.problem, question.asked.method)
    status = browser.run("return document.getElementById('status').textContent")
    assert status.startswith(plan.status.value)
    if not plan.found:
        return
    facts = browser.run("return document.getElementById('facts').innerText")
    assert f"{plan.mean_latency:.1f} ms" in facts
    shown = browser.run(
        "return Array.from(document.querySelectorAll('#table tbody tr'))"
        ".map(row => row.cells[1].textContent)"
    )
    if not question.lost:
        assert shown[0] == plan.leader
        assert set(shown) == set(plan.replicas)


@pytest.mark.parametrize(("width", "dark"), [(1600, True), (375, False)])
def test_the_page_fits(browser: Browser, world: Served, width: int, dark: bool) -> None:
    """Nothing runs over the side, everything has a name, the plan is on the map."""
    browser.resize(width)
    browser.dark(dark)
    opened(browser, world)
    until(browser, f"{ROOT}.extras === {ROOT}.drawn")
    facts = browser.run("return document.getElementById('facts').innerText")
    assert "…" not in facts  # the 99th percentile comes after the plan, unasked
    browser.run(OVERTAKE)
    until(browser, "document.querySelector('#curve-content svg')")
    assert browser.run("return document.documentElement.scrollWidth - window.innerWidth") <= 0
    unnamed = browser.run(
        "return Array.from(document.querySelectorAll('button, input, select, summary')).filter("
        "one => !(one.labels && one.labels.length && one.labels[0].textContent.trim())"
        " && !one.textContent.trim() && !one.ariaLabel).map(one => one.outerHTML)"
    )
    assert unnamed == []
    assert len(browser.run("return Array.from(document.querySelectorAll('.mark'))")) == 5
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") is not dark
    equals_python(browser, world)
    silent(browser)


def test_limits_are_rows_and_changes_are_undone(browser: Browser, world: Served) -> None:
    browser.resize(1280)
    opened(browser, world)
    row = "document.querySelector('#limits li:last-child input[type=text]')"
    edit = f"const one = {row}; one.value = arguments[0]; one.dispatchEvent(new Event('change'))"
    fields = "Array.from(document.querySelectorAll('#limits input[type=text]'))"
    limits = f"return {fields}.map(one => one.value)"
    seen = [browser.run("return location.hash")]
    for text in ("mean(writes) <= 400 ms", "mean(writes) <= 350 ms", "mean <= 300 ms"):
        if text != "mean(writes) <= 350 ms":  # the second one changes the row of the first
            browser.run("document.getElementById('add-limit').click()")
        browser.run(edit, text)
        answered(browser)
        seen.append(browser.run("return location.hash"))
        time.sleep(0.45)
    assert browser.run(limits) == ["mean(writes) <= 350 ms", "mean <= 300 ms"]
    equals_python(browser, world)
    # the handle of the bar is the limit; arrow keys move it too
    bar = "const bar = document.querySelector('#limits input[type=range]');"
    browser.run(f"{bar} bar.focus(); bar.value = 360; bar.dispatchEvent(new Event('input'))")
    answered(browser)
    assert browser.run(limits)[0] == "mean(writes) <= 360 ms"
    assert browser.run(f"{bar} return bar === document.activeElement")
    now = browser.run("return document.querySelector('#limits small').textContent")
    assert now.startswith("now ")
    assert now.endswith(" ms")
    seen.append(browser.run("return location.hash"))
    time.sleep(0.45)
    equals_python(browser, world)
    browser.run("document.querySelector('#limits button').click()")
    answered(browser)
    assert browser.run(limits) == ["mean <= 300 ms"]
    for before in reversed(seen):
        browser.run("document.getElementById('undo').click()")
        answered(browser)
        assert browser.run("return location.hash") == before
    assert browser.run("return document.getElementById('undo').disabled")
    browser.run("document.querySelector('#everyone summary').click()")
    until(browser, "document.querySelector('#everyone-content tbody')")
    rows = browser.run("return document.querySelectorAll('#everyone-content tbody tr').length")
    assert rows == len(world.explorer.instance.clients)
    silent(browser)


@pytest.mark.slow
def test_every_control_changes_the_plan_or_the_question(browser: Browser, world: Served) -> None:
    browser.resize(1280)
    opened(browser, world)
    for field, value, key in (
        ("replicas", 6, "replicas"),
        ("voters", 5, "voters"),
        ("quorum", 4, "quorum"),
        ("quorum", "", None),
        ("survive", "country", "survive"),
        ("minimise", "p90", "minimise"),
        ("spread", 0.1, "spread"),
        ("minimise", "", None),
        ("mix-0", 5, "shares"),
        ("interval", 9, "interval"),
        ("factor", 3, "scale_demand"),
    ):
        browser.run(SET, field, value)
        answered(browser)
        asked = unquote(browser.run("return location.hash"))
        assert key is None or f'"{key}"' in asked
        assert browser.run(TEXT) == ""
    equals_python(browser, world)
    browser.run("document.getElementById('runs').click()")
    answered(browser)
    browser.run(SET, "mix-3", 90)
    answered(browser)
    assert '"changes <= 2"' in unquote(browser.run("return location.hash"))
    equals_python(browser, world)
    browser.run("document.getElementById('runs').click()")
    browser.run("document.getElementById('mix-reset').click()")
    browser.run("document.querySelector('#factors button').click()")
    answered(browser)
    assert '"shares"' not in unquote(browser.run("return location.hash"))
    before = browser.run("return location.hash")
    opened(browser, world, json.loads(unquote(before[1:])))
    assert browser.run("return document.getElementById('replicas').value") == "6"
    assert browser.run("return location.hash") == before
    browser.run("document.getElementById('reset').click()")
    answered(browser)
    equals_python(browser, world)
    silent(browser)


def test_sites_by_mouse_and_by_keyboard(browser: Browser, world: Served) -> None:
    browser.resize(1280)
    opened(browser, world)
    leader = browser.run("return document.querySelector('#table tbody th').textContent")
    browser.run("document.querySelector('.mark.leader').dispatchEvent("
                "new MouseEvent('click', {bubbles: true}))")  # fmt: skip
    assert browser.run("return document.getElementById('site').value") == leader
    browser.run("document.querySelector('[data-rule=lost]').click()")
    answered(browser)
    assert "takes over" in browser.run("return document.getElementById('facts').innerText")
    browser.run("document.querySelector('[data-rule=lost]').click()")
    browser.run("document.querySelector('[data-rule=forbid]').click()")
    answered(browser)
    assert leader not in browser.run("return document.getElementById('table').innerText")
    line = browser.run("return document.getElementById('difference').textContent")
    assert line.startswith("Against the plan before: +")
    assert "leader to" in line
    browser.run("document.getElementById('why').open = true")
    until(browser, "document.getElementById('why-content').textContent.includes('is forbidden')")
    assert f"{leader} is forbidden" in browser.run(
        "return document.getElementById('why-content').innerText"
    )
    # arrows go from site to site, Enter chooses, and the rules are buttons
    key = ("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', "
           "{key: arguments[0], bubbles: true}))")  # fmt: skip
    browser.run("document.querySelector('.sites [tabindex=\"0\"]').focus()")
    browser.run(key, "ArrowRight")
    sites = world.explorer.instance.sites
    following = sites[(sites.index(leader) + 1) % len(sites)]
    assert browser.run("return document.getElementById('site').value") == following
    assert browser.run("return document.activeElement.getAttribute('aria-pressed')") == "true"
    browser.run(key, "l")  # a letter sets a rule, and the site keeps the focus in the new map
    answered(browser)
    assert browser.run("return document.querySelector('#table tbody th').textContent") == following
    assert browser.run("return document.activeElement.dataset.index") == str(sites.index(following))
    equals_python(browser, world)
    silent(browser)


def test_an_added_site_and_the_tray(browser: Browser, world: Served) -> None:
    browser.resize(1280)
    opened(browser, world)
    browser.run("document.getElementById('keep').click()")
    browser.run("document.getElementById('add').click()")
    browser.run(
        "const box = document.querySelector('svg.map').getBoundingClientRect();"
        "document.querySelector('svg.map').dispatchEvent(new MouseEvent('click', {bubbles: true,"
        "clientX: box.left + box.width / 2, clientY: box.top + box.height / 3}))"
    )
    until(browser, "location.hash.includes('New%20site%201')")
    browser.run("document.querySelector('[data-rule=pin]').click()")
    answered(browser)
    assert "New site 1" in browser.run("return document.getElementById('table').innerText")
    equals_python(browser, world)
    browser.run("document.getElementById('keep').click()")
    until(browser, "document.querySelectorAll('#comparison svg.map').length === 2")
    assert browser.run("return document.querySelectorAll('#comparison .differs').length") > 0
    browser.run("document.getElementById('get-plan').click()")
    until(browser, f"{ROOT}.file === 'plan.json'")
    silent(browser)


def test_files_are_dropped_and_sites_typed(browser: Browser, world: Served) -> None:
    """A table of demand or a question by drop; a new site without a mouse."""
    browser.resize(1280)
    opened(browser, world)
    drop = (
        "const data = new DataTransfer(); data.items.add(new File([arguments[1]], arguments[0]));"
        "document.body.dispatchEvent(new DragEvent('drop', {bubbles: true, dataTransfer: data}))"
    )
    clients = world.explorer.instance.clients
    browser.run(drop, "mine.csv", "client,operation,count\n"
                f"{clients[3]},weak_read,9\n{clients[7]},weak_read,1\n")  # fmt: skip
    until(browser, "location.hash.includes('mine.csv')")
    answered(browser)
    assert "weak_read: 100.0 %" in browser.run(
        "return document.getElementById('mix-0-field').textContent"
    )
    equals_python(browser, world)
    browser.run(drop, "question.toml", 'replicas = 4\nkeep = ["mean <= 900 ms"]')
    until(browser, "document.getElementById('replicas').value === '4'")
    answered(browser)
    equals_python(browser, world)
    browser.run("document.getElementById('add').click()")
    assert browser.run("return document.activeElement.id") == "where"
    browser.run("const one = document.activeElement; one.value = '48.9, 2.4'; one.dispatchEvent("
                "new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))")  # fmt: skip
    answered(browser)
    assert '"lat":48.9,"lon":2.4' in unquote(browser.run("return location.hash"))
    equals_python(browser, world)
    silent(browser)


@pytest.mark.slow
def test_a_point_of_the_curve_is_a_question(browser: Browser, world: Served) -> None:
    opened(browser, world)
    browser.run("document.getElementById('curve').open = true")
    until(browser, "document.querySelector('#curve-content [data-point]')")
    browser.run("document.querySelector('#curve-content [data-point]').dispatchEvent("
                "new MouseEvent('click', {bubbles: true}))")  # fmt: skip
    answered(browser)
    assert browser.run("return document.getElementById('replicas').value") == "3"
    silent(browser)


@pytest.mark.slow
def test_hostile_names_stay_text(browser: Browser) -> None:
    plan = worlds.hostile_plan()
    with Served(plan.problem.instance) as there:
        opened(browser, there, {"replicas": 3, "voters": 3})
        browser.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        until(browser, "document.querySelector('#curve-content svg')")
        browser.run("const list = document.getElementById('site'); list.selectedIndex = 1;"
                    "list.dispatchEvent(new Event('change'))")  # fmt: skip
        browser.run("document.querySelector('[data-rule=pin]').click()")
        answered(browser)
        assert browser.run("return document.querySelectorAll('img, b, i').length") == 0
        silent(browser)


CLICK = """
const all = Array.from(document.querySelectorAll(
  'button, summary, .sites [data-index], circle.client, select, input')).filter(
  one => !one.disabled && one.getClientRects().length);
const one = all[Math.floor(arguments[0] * all.length)];
if (one.tagName === 'INPUT' && one.type !== 'checkbox') {
  const low = Number(one.min || 0), high = Math.min(Number(one.max || 9), 12);
  one.value = one.type === 'text' ? 'app' : String(Math.round(low + arguments[1] * (high - low)));
  one.dispatchEvent(new Event('input', {bubbles: true}));
} else if (one.tagName === 'SELECT') {
  one.selectedIndex = Math.floor(arguments[1] * one.options.length);
  one.dispatchEvent(new Event('change', {bubbles: true}));
} else {
  one.dispatchEvent(new MouseEvent('click', {bubbles: true}));
}
return one.id || one.outerHTML.slice(0, 80);
"""


def clicks(browser: Browser, there: Served, seed: int, count: int) -> None:
    opened(browser, there)
    # a download would open a window of the system, and a percentile may take its time
    quiet = ["get-plan", "get-report", "get-question", "open", "system", "minimise", "link"]
    browser.run(
        "arguments[0].forEach(id => { document.getElementById(id).disabled = true; })", quiet
    )
    draw = random.Random(seed)
    done: list[Any] = []
    for _ in range(count):
        done.append(browser.run(CLICK, draw.random(), draw.random()))
    answered(browser)
    if browser.run(TEXT) == "":
        equals_python(browser, there)
    silent(browser)


@pytest.mark.parametrize("seed", seeds(1, 9))
def test_random_clicks(browser: Browser, world: Served, seed: int) -> None:
    clicks(browser, world, seed, examples(100, 30))


def hurry(browser: Browser, there: Served, questions: int) -> None:
    """Ask ten questions a second; the last answer is that of the last question."""
    opened(browser, there)
    for k in range(questions):
        browser.run(SET, "replicas", 3 + k % 9)
        time.sleep(0.1)
    browser.run(SET, "replicas", 7)
    answered(browser)
    equals_python(browser, there)
    assert len(browser.run("return Array.from(document.querySelectorAll('.mark'))")) == 7
    silent(browser)


def test_questions_in_a_hurry(browser: Browser, world: Served) -> None:
    hurry(browser, world, examples(40))


@pytest.mark.slow
def test_a_minute_of_questions_leaves_no_memory(browser: Browser, world: Served) -> None:
    """Ten questions a second for a minute: the worker does not grow by more than 20 MB."""
    hurry(browser, world, 50)
    before = resident(world.worker.pid)
    hurry(browser, world, 600)
    assert resident(world.worker.pid) - before < 20_000


def resident(pid: int | None) -> int:
    """Kilobytes of memory of a process (Linux)."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

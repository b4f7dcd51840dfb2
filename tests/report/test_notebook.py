"""HTML of instances, problems and plans in notebooks: escaped, small, without scripts."""

import html.parser

import numpy as np
import pytest

import placement
from benchmarks.explore.browser import CHROMIUM, DRIVER, Browser
from placement.testing import random_instance

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


@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium and its driver")
def test_a_browser_runs_nothing_and_shows_the_table(values, tmp_path):
    page = tmp_path / "page.html"
    body = "".join(value._repr_html_() for value in values)
    page.write_text(f"<!doctype html><meta charset=utf-8><title>fine</title>{body}")
    with Browser() as browser:
        browser.open(page)
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

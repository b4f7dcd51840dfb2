"""Plain text: aligned, at most 100 columns, nothing that a terminal would obey."""

from __future__ import annotations

import math
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import Diversity, Instance, Plan, Prices, Problem, Termination
from placement.feasibility.feasible_plans import find_feasible
from placement.model.configuration import Configuration
from placement.plan import evaluate, objective_value
from placement.text import clip, display_width, escape, instance_text, plan_text, table, wrap
from tests.io.worlds import ANY_UNITS, awkward, small
from tests.strategies import problems

TEXT = st.text(st.characters(), max_size=40)


def columns(line: str) -> int:
    """Columns of a line, counted by another road than the module's."""
    total = 0
    for character in unicodedata.normalize("NFD", line):
        if unicodedata.category(character) in ("Mn", "Me"):
            continue
        total += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return total


@given(text=TEXT)
def test_nothing_that_a_terminal_would_obey_is_left(text: str) -> None:
    shown = escape(text)
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    shown.encode()
    if text.isascii() and text.isprintable():
        assert shown == text


def test_escapes_can_be_read() -> None:
    assert escape("a\x1b[2Jb\nc\u202ed") == "a\\x1b[2Jb\\nc\\u202ed"


@given(text=TEXT.map(escape), width=st.integers(1, 30))
def test_clipping_keeps_the_width_and_the_beginning(text: str, width: int) -> None:
    shown = clip(text, width)
    assert display_width(shown) <= width
    assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))
    assert (display_width(text) <= width) == (shown == text)


@given(
    rows=st.lists(st.tuples(TEXT, st.floats(0, 1e6).map("{:.2f}".format), TEXT), max_size=5),
    width=st.integers(45, 100),
)
def test_tables_are_aligned_and_fit(rows: list[tuple[str, str, str]], width: int) -> None:
    text = table(["name", "ms", "other"], rows, right=(1,), width=width)
    lines = text.split("\n")
    assert len(lines) == len(rows) + 1
    assert all(display_width(line) <= width for line in lines)
    # the numbers end in the same column everywhere
    ends = set()
    for line, (_, number, _) in zip(lines[1:], rows, strict=True):
        assert number in line
    position = lines[0].index("ms") + 2
    for line in lines[1:]:
        used, cut = 0, 0
        for cut, character in enumerate(line):  # noqa: B007 - the position is what is wanted
            if used >= position:
                break
            used += display_width(character)
        else:
            cut = len(line)
        ends.add(line[:cut].rstrip()[-1:].isdigit())
    assert ends <= {True}


def test_wide_characters_take_two_columns() -> None:
    text = table(["city", "ms"], [["東京", "1.00"], ["Oslo", "22.00"]], right=(1,))
    assert text == "city     ms\n東京   1.00\nOslo  22.00"
    assert display_width("e\u0301") == 1


@given(text=TEXT.map(escape), width=st.integers(10, 60))
def test_wrapping_loses_nothing(text: str, width: int) -> None:
    lines = wrap(text, width, indent="    ").split("\n")
    assert " ".join([lines[0], *(line[4:] for line in lines[1:])]) == text
    for line in lines:
        assert display_width(line) <= width or " " not in line.strip()


@given(problem=problems())
def test_any_plan_can_be_printed_in_the_columns_of_the_page(problem: Problem) -> None:
    configuration = find_feasible(problem)
    if configuration is None:
        plan = Plan.infeasible(problem, method="m", reasons=("because",))
    else:
        plan = Plan.of(problem, configuration, method="m", bound=0.0)
    text = plan_text(plan)
    assert str(plan) == text
    assert all(columns(line) <= 80 for line in text.split("\n"))
    if configuration is None:
        assert "infeasible, proven" in text
        assert "because" in text
        return
    assert f"Leader       {plan.leader}" in text
    for site in plan.replicas:
        assert site in text
    for operation in plan.per_operation:
        assert operation.operation in text


@pytest.mark.filterwarnings(ANY_UNITS)
@given(world=awkward())
def test_any_instance_can_be_printed(world: Instance) -> None:
    text = instance_text(world)
    for site in world.sites:
        assert clip(escape(site), 8).rstrip("… ") in text  # blanks at the end of a line go
    for character in text:
        assert character == "\n" or unicodedata.category(character) not in ("Cc", "Cf")


def _plan(**constraints: object) -> Plan:
    arguments: dict[str, object] = {"replicas": 3, "voters": 2, **constraints}
    problem = Problem(small(), **arguments)  # type: ignore[arg-type]  # checked by the problem
    configuration = Configuration.of(1, (1, 0), (0, 1, 2))
    value = objective_value(problem, configuration)
    return Plan.of(
        problem,
        configuration,
        method="kq",
        bound=0.8 * value,
        seconds=1.25,
        termination=Termination.TIME_LIMIT,
        notes=("A note.",),
    )


def test_a_plan_says_what_a_planner_asks_first() -> None:
    plan = _plan()
    text = str(plan)
    mean = plan.mean_latency
    for words in (
        "Question     3 replicas, 2 voters, replicas fixed; on small",
        "Answer       feasible, gap 20 %; by kq in 1.25 s, stopped: time limit",
        f"Mean latency {mean:,.3f} ms per operation; no plan can be below {0.8 * mean:,.3f} ms",
        "Leader       Rome\nCommit       waits 42.00 ms for 2 of 2 votes",
        *("Rome (chosen)", "A note.", "Worked by hand."),
    ):
        assert words in text
    # voters in the order of their answers, then the others
    order = [text.index(f"\n  {site} ") for site in ("Rome", "Oslo", "Washington, DC")]
    assert order == sorted(order)
    # few clients: all of them, the worst first
    fares = text[text.index("\nClients\n") : text.index("\nLeaders")]
    order = [fares.index(f" {client} ") for client in ("東京", "Lagos", "Oslo  ", "Bern")]
    assert order == sorted(order)
    # the ranking of leaders, with overhead in per cent of the best
    ranking = text[text.index("Leaders") :].split("\n")[2:4]
    assert [line.split()[0] for line in ranking] == [row.leader for row in plan.leaders]
    assert ranking[0].endswith(" 0.00 %")
    assert f"{plan.leaders[1].overhead:.2f} %" in ranking[1]


def test_of_many_clients_the_worst_and_the_heaviest_are_shown() -> None:
    rng = np.random.default_rng(5)
    clients = tuple(f"client {i}" for i in range(30))
    world = Instance(
        sites=("a",),
        clients=clients,
        client_rtt=rng.uniform(1, 200, (30, 1)),
        site_rtt=np.zeros((1, 1)),
        counts=rng.uniform(0, 100, (30, 5)) * (np.arange(30) > 0)[:, np.newaxis],
    )
    plan = evaluate(Problem(world, replicas=1, voters=1), Configuration.of(0, (0,), (0,)))
    lines = [line.split() for line in str(plan).split("\n")]
    issued = world.counts[0].sum(axis=1)
    worst = [f"{c}" for c in np.argsort(-world.client_rtt[:, 0]) if issued[c] > 0][:5]
    heaviest = [f"{c}" for c in np.argsort(-issued)][:5]
    assert [line[2] for line in lines if line[:1] == ["worst"]] == worst
    assert [line[2] for line in lines if line[:1] == ["heaviest"]] == heaviest


def test_every_status_is_said_in_words() -> None:
    problem = Problem(small(), replicas=2, voters=2, diversity=Diversity("continent"))
    broken = evaluate(problem, Configuration.of(0, (0, 1), (0, 1)))
    assert "breaks constraints" in str(broken)
    assert "at most 1 of the voters per continent does not hold" in str(broken)
    assert "nothing found, and nothing proven" in str(Plan.of(problem, None, method="m"))
    assert "optimal (proved by m; no certificate)" in str(
        Plan.of(problem, Configuration.of(0, (0, 2), (0, 2)), method="m", bound=1e-30).replace(
            bound=objective_value(problem, Configuration.of(0, (0, 2), (0, 2))),
            status=_plan().status.OPTIMAL,
        )
    )
    unknown = Plan.of(problem, Configuration.of(0, (0, 2), (0, 2)), method="m", bound=-math.inf)
    assert "feasible, gap unknown (no bound)" in str(unknown)


def test_an_instance_shows_what_it_holds() -> None:
    prices = Prices(np.array([1.0, 2.0, 3.0]), None, 1.0, "EUR")
    text = instance_text(small(prices=prices), most=2)
    for words in (
        "3 sites, 4 clients, 5 operations, 2 intervals",
        "0.50 to 250.00 ms, median 96.50 ms",
        "Site RTT     40.00 to 101.00 ms",
        "1.00 to 3.00 EUR per replica",
        "00:00 to 00:30",
        "Washington, DC  US       North America",
        "… and 2 more",
        "Worked by hand.",
    ):
        assert words in text


def test_the_first_column_is_clipped_last() -> None:
    row = ("asia-northeast3", "waited for it", "North America")
    text = table(["site", "quorum", "continent"], [row], width=36)
    assert "asia-northeast3" in text
    assert "waited …" in text
    assert all(display_width(line) <= 36 for line in text.split("\n"))
    narrow = table(["site", "quorum", "continent"], [row], width=30)
    assert "asia-nort…" in narrow
    assert all(display_width(line) <= 30 for line in narrow.split("\n"))

"""The server of the explorer: answers equal those of Python, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement import (
    Diversity,
    Moves,
    Prices,
    Problem,
    check_certificate,
    load,
    pareto,
    scale_demand,
    solve,
)
from placement.explore.jobs import Explorer
from placement.explore.worker import Worker
from placement.io import load_plan
from placement.model.changed_instance import with_mix, with_site
from placement.question import Question
from placement.tail.objective import percentile_of_spread
from placement.tail.rtt_distributions import spread_distributions
from tests.cli.command import Run
from tests.explore.serving import TOKEN, Served, events_of, served
from tests.io.worlds import small

QUESTION = {"replicas": 5, "voters": 3}


@pytest.fixture(scope="module")
def world() -> Iterator[Served]:
    yield from served(load("world27"))


def same(answer, plan) -> None:
    """Every number to the last bit, every name."""
    assert answer["status"] == plan.status.value
    assert answer["leader"] == plan.leader
    assert tuple(answer["voters"]) == plan.voters
    assert tuple(answer["replicas"]) == plan.replicas
    for key, value in (
        ("objective", plan.objective),
        ("mean_latency_ms", plan.mean_latency),
        ("bound", plan.bound),
        ("gap", plan.gap),
        ("quorum_wait_ms", plan.quorum_wait),
    ):
        assert answer[key] == value, key


def test_answers_are_those_of_python(world: Served) -> None:
    instance = world.explorer.instance
    same(world.plan(**QUESTION), solve(Problem(instance, replicas=5, voters=3)))
    asked = world.plan(
        replicas="5..7",
        voters=5,
        quorum=3,
        pin="eu-central-1",
        forbid=[instance.sites[0]],
        survive="country",
        distinct="continent=2:replicas",
        interval=instance.intervals[7],
        shares={"weak_read": 60, "single_group": 40},
        scale_demand={"Tokyo": 2.5},
        sites=[{"name": "Moon", "lat": 12.5, "lon": 100.25}],
    )
    changed = with_site(instance, "Moon", 12.5, 100.25).at_interval(7)
    changed = scale_demand(with_mix(changed, {"weak_read": 60, "single_group": 40}), {"Tokyo": 2.5})
    problem = Problem(
        changed,
        replicas=(5, 7),
        voters=5,
        quorum=3,
        pinned=["eu-central-1"],
        forbidden=[instance.sites[0]],
        survive="country",
        diversity=[Diversity("continent", "replicas", min_domains=2)],
    )
    same(asked, solve(problem))
    assert "<svg" not in asked["html"]["map"]["sites"]  # layers alone; the land is on the page


def test_python_lines_and_command_ask_the_same(world: Served, command: Run) -> None:
    import shlex

    asked = world.plan(
        replicas=4,
        voters=3,
        leaders=list(world.explorer.instance.sites[:9]),
        no_vote=[world.explorer.instance.sites[1]],
        cap={"country": 1},
        decay=1.5,
        scale_demand={"Tokyo": 0.3},
        time_limit=20.5,
    )
    known: dict[str, object] = {}
    exec(asked["python"], known)
    same(asked, known["plan"])
    words = shlex.split(asked["command"])
    assert words[0] == "placement"
    document = command(*words[1:], "--json", code=0).document
    for key in ("leader", "voters", "replicas", "objective", "mean_latency_ms"):
        assert document[key] == asked[key]
    assert asked["cannot"] == []
    moved = world.plan(
        **QUESTION, shares={"weak_read": 1}, interval=world.explorer.instance.intervals[0]
    )
    assert moved["cannot"] == ["one interval alone", "the operation mix"]
    exec(moved["python"], known)
    same(moved, known["plan"])


def test_limits_on_measures_are_those_of_python() -> None:
    with Served(small()) as there:
        asked = there.plan(
            replicas=2,
            voters=1,
            minimise="slowest client",
            keep=["p90 <= 1000 ms", "replicas <= 2"],
            spread=0.3,
            method="exhaustive",
        )
        code, refused = there.ask(
            "plan", {"question": {"replicas": 2, "voters": 1, "keep": ["p90 <= 1 s"]}}
        )
    assert "1,000 ms" in str((code, refused))
    python = asked["python"]
    assert "keep=['p90 <= 1000 ms', 'replicas <= 2']" in python
    assert "distributions=spread_distributions(instance, 0.3)" in python
    plan = solve(
        Problem(
            small(),
            replicas=2,
            voters=1,
            minimise="slowest client",
            keep=["p90 <= 1000 ms", "replicas <= 2"],
            distributions=spread_distributions(small(), 0.3),
        ),
        "exhaustive",
    )
    same(asked, plan)
    assert "--keep 'replicas <= 2' --spread 0.3" in asked["command"]


def test_a_question_leaves_no_problem_behind() -> None:
    """Distributions are kept for the next question, values are not; p99 is that of Python."""
    from placement.explore.jobs import tail
    from placement.explore.question import read_question

    instance = small()
    value = {"replicas": 2, "voters": 1}
    first, second = (read_question(value, instance).tail(99) for _ in range(2))
    assert first.distributions is second.distributions
    plan = solve(Problem(instance, replicas=2, voters=1))
    assert plan.configuration is not None
    first.value(plan.problem, plan.configuration)
    assert first._known
    assert not second._known
    answer = tail(read_question(value, instance), plan)
    known = percentile_of_spread(instance, 99, 0.2).value(plan.problem, plan.configuration)
    assert answer["ms"] == known


def roles_of(answer: Any) -> dict[str, str]:
    table = answer["html"]["table"]
    return dict(re.findall(r"<th[^>]*><bdi>([^<]*)</bdi></th><td[^>]*><bdi>([^<]*)</bdi>", table))


def test_a_loss_shows_who_takes_over(world: Served) -> None:
    plan = solve(Problem(world.explorer.instance, replicas=5, voters=3))
    row = next(row for row in plan.failures.each if row.lost == plan.leader)
    asked = world.plan(**QUESTION, lost=[plan.leader])
    same(asked, plan)  # the plan is another question than its loss
    assert asked["after"]["leader"] == row.leader
    assert asked["after"]["mean_latency_ms"] == pytest.approx(row.mean_latency, rel=1e-12)
    roles = roles_of(asked)
    assert set(roles) == set(plan.replicas)
    assert (roles[plan.leader], roles[row.leader]) == ("leader, lost", "leader")
    stopped = world.plan(**QUESTION, lost=list(plan.voters[:2]))
    assert stopped["after"] is None
    assert "service stops" in stopped["html"]["facts"]
    lost = {name for name, role in roles_of(stopped).items() if role.endswith(", lost")}
    assert lost == set(plan.voters[:2])
    silent = next(name for name in plan.replicas if name not in plan.voters)
    assert roles_of(world.plan(**QUESTION, lost=[silent]))[silent] == "read-only, lost"


def test_an_infeasible_question_says_why(world: Served) -> None:
    sites = world.explorer.instance.sites
    found = world.plan(
        replicas=3, voters=3, pin=list(sites[:2]), require="continent:Oceania=2:replicas"
    )
    assert found["status"] == "infeasible"
    assert found["reasons"]
    assert found["mean_latency_ms"] is None


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({**QUESTION, "replica": 1}, "'replicas'?"),
        ({**QUESTION, "pin": ["Atlantis"]}, "Atlantis"),
        ({"replicas": 2, "voters": 3}, "voters"),
        ({**QUESTION, "interval": "never"}, "never"),
        ({**QUESTION, "shares": {"weak_read": -1}}, "weak_read"),
        ({**QUESTION, "lost": ["Atlantis"]}, "Atlantis"),
        ({**QUESTION, "method": "../etc"}, "method"),
        ({**QUESTION, "spread": "x"}, "spread"),
        ({**QUESTION, "spread": 3.5}, "<= 3"),
        ({**QUESTION, "today": "/etc/passwd"}, "not a key that the page can change"),
        ({**QUESTION, "keep_diversity": "/etc/passwd"}, "not a key that the page can change"),
        ({**QUESTION, "instance": "azure"}, "not a key that the page can change"),
        (
            {**QUESTION, "sites": [{"name": f"n{k}", "lat": 0, "lon": k} for k in range(21)]},
            "at most 20",
        ),
        ("text", "question"),
        (None, "question"),
    ],
)  # fmt: skip
def test_a_wrong_question_is_an_error_in_words(world: Served, question, words) -> None:
    name, content = world.ask("plan", {"question": question})
    assert name == "error"
    assert words in content["message"]


def test_panels_behind_a_plan(world: Served, tmp_path: Path) -> None:
    instance = world.explorer.instance
    plan = solve(Problem(instance, replicas=4, voters=3))
    question = {"replicas": 4, "voters": 3, "forbid": [plan.leader]}
    name, found = world.ask("why", {"question": question, "site": plan.leader})
    assert name == "answer"
    best = solve(Problem(instance, replicas=4, voters=3, forbidden=[plan.leader]))
    assert f"{best.mean_latency - plan.mean_latency:,.2f}" in found["html"]
    assert "Runner-up" in found["html"]
    name, found = world.ask("curve", {"question": question})
    assert [point["question"]["replicas"] for point in found["points"]] == list(range(3, 18))
    name, found = world.ask("compare", {"questions": [QUESTION, question], "names": ["A", "B"]})
    assert found["html"].count('class="map"') == 2
    assert all(found["differs"])
    assert world.ask("place", {"x": 500, "y": 100})[0] == "answer"
    assert world.ask("place", {"x": -9999, "y": 100})[0] == "error"
    _, file = world.ask("file", {"question": QUESTION, "format": "plan"})
    (tmp_path / "plan.json").write_text(file["text"], encoding="utf-8")
    loaded = load_plan(tmp_path / "plan.json")
    check_certificate(loaded)
    _, file = world.ask("file", {"question": QUESTION, "format": "report"})
    assert file["text"].startswith("<!doctype html>")
    _, file = world.ask("file", {"question": QUESTION, "format": "export", "system": "cockroachdb"})
    assert 'ALTER DATABASE "app" CONFIGURE ZONE' in file["text"].replace(" app ", ' "app" ')
    assert "region=eastasia" in file["text"]
    assert any("eastasia" in note for note in file["notes"])
    name, _ = world.ask("file", {"question": QUESTION, "format": "../../etc/passwd"})
    assert name == "error"


def test_money() -> None:
    """The bill, a budget, and the frontier, whose points are questions."""
    instance = load("world27")
    prices = {site: 50.0 + 7 * (k % 5) for k, site in enumerate(instance.sites)}
    priced = instance.replace(prices=Prices(storage=list(prices.values())))
    with Served(priced) as there:
        asked = there.plan(replicas=4, voters=3, budget=230.0)
        plan = solve(Problem(priced, replicas=4, voters=3, budget=230.0))
        same(asked, plan)
        assert asked["cost"] == plan.cost
        name, found = there.ask("front", {"question": {"replicas": 4, "voters": 3}})
        assert name == "answer"
        table = pareto(priced, replicas=[3, 4], voters=3)
        costs = [f"cost <= {cost!r}" for cost in table["cost"].tolist()]
        assert [point["limit"] for point in found["points"]] == costs
        point = found["points"][0]
        again = there.plan(voters=3, **point["question"], keep=[point["limit"]])
        assert again["limits"][0]["value"] == again["limits"][0]["bound"] == table["cost"][0]
        assert again["mean_latency_ms"] == pytest.approx(table["mean_latency"][0], rel=1e-12)
        name, content = there.ask(
            "plan", {"question": {**QUESTION, "sites": [{"name": "x", "lat": 1, "lon": 1}]}}
        )
        assert (name, "no price" in content["message"]) == ("error", True)


def test_a_long_search_tells_how_far_it_is(world: Served) -> None:
    question = {"replicas": 9, "voters": 5, "minimise": "p99", "spread": 0.5, "time_limit": 1.0}
    body = json.dumps({"question": question}).encode()
    _, _, text = world.request("POST", f"/{TOKEN}/ask/plan", body, world.headers("long"))
    events = events_of(text)
    reports = [content for name, content in events if name == "progress"]
    assert [name for name, _ in events[-1:]] == ["answer"]
    assert reports
    assert all(set(report) == {"seconds", "incumbent", "bound", "words"} for report in reports)
    best = events[-1][1]["headline"]["ms"]  # in ms, like the answer
    assert all(report["incumbent"] is None or report["incumbent"] >= best for report in reports)
    assert all(report["bound"] is None or report["bound"] <= best for report in reports)


def test_moves_from_the_present_configuration(world: Served) -> None:
    instance = world.explorer.instance
    today = solve(Problem(instance, replicas=4, voters=3))
    current = {"leader": today.leader, "voters": list(today.voters),
               "replicas": list(today.replicas)}  # fmt: skip
    interval = instance.intervals[0]
    question = {"replicas": 4, "voters": 3, "current": current}
    asked = world.plan(**question, max_moves=2, shares={"single_group": 1}, interval=interval)
    changed = with_mix(instance.at_interval(0), {"single_group": 1})
    free = solve(Problem(changed, replicas=4, voters=3))
    problem = Problem(
        changed, replicas=4, voters=3, current=today.configuration, moves=Moves(at_most=2)
    )
    same(asked, solve(problem))
    assert asked["objective"] > free.objective  # the limit binds
    known: dict[str, object] = {}
    exec(asked["python"], known)
    same(asked, known["plan"])
    assert "the present configuration" in asked["cannot"]
    again = world.plan(
        **question, keep="changes <= 2", shares={"single_group": 1}, interval=interval
    )
    assert again["objective"] == asked["objective"]
    late = world.plan(**question, max_moves=1, minimise="slowest client")
    assert ("at_most" in late["python"], "max-moves" in late["command"]) == (True, False)
    assert again["limits"][0]["words"] == "2"


# --- order ---------------------------------------------------------------------------------------


def test_a_later_question_of_a_tab_cancels_the_one_before(world: Served) -> None:
    long = {"replicas": 9, "voters": 5, "minimise": "p99", "spread": 1.0}
    first: list[tuple[str, object]] = []
    thread = threading.Thread(
        target=lambda: first.append(world.ask("plan", {"question": long}, "tab"))
    )
    thread.start()
    time.sleep(0.3)
    name, content = world.ask("plan", {"question": QUESTION}, "tab")
    thread.join(60)
    assert (name, first[0][0]) == ("answer", "cancelled")
    assert len(content["replicas"]) == 5


def test_a_worker_that_ended_is_replaced(world: Served) -> None:
    assert world.worker.pid is not None
    os.kill(world.worker.pid, signal.SIGKILL)
    name, _ = world.ask("plan", {"question": QUESTION})
    if name == "error":  # the pipe was still open when the question came
        name, _ = world.ask("plan", {"question": QUESTION})
    assert name == "answer"


@pytest.mark.skipif(not hasattr(os, "waitpid"), reason="processes end otherwise there")
def test_a_job_can_be_cancelled_when_its_process_has_ended() -> None:
    worker = Worker(Explorer(load("world27"), Question(instance="world27"), 30.0))
    try:
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        os.waitpid(worker.pid, 0)  # as if another thread had waited for it: it seems to be alive
        worker._running = 1
        worker.cancel(1)
        worker._running = 0  # its turn is over
        told: list[Any] = []
        long = {"question": {"replicas": 9, "voters": 5, "minimise": "p99", "spread": 0.5}}
        worker.run("a", "plan", long, told.append, lambda: False)
        with pytest.raises(ZeroDivisionError):  # an event that cannot be sent
            worker.run("a", "plan", long, lambda event: 1 / 0, lambda: False)
        worker.run("a", "place", {"x": 500, "y": 100}, told.append, lambda: False)
        assert [set(content) for _, content in told] == [{"message"}, {"lat", "lon"}]
    finally:
        worker.close()


# --- who may ask ---------------------------------------------------------------------------------


def test_the_page_and_its_headers(world: Served) -> None:
    status, headers, text = world.request("GET", f"/{TOKEN}/")
    names = re.findall(r' id="([^"]+)"', text)
    assert len(names) == len(set(names))  # the script finds a control by its name
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe-inline" not in policy.replace("style-src-attr 'unsafe-inline'", "")
    assert "unsafe-eval" not in policy
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers
    assert "http://" not in text
    assert "https://" not in text
    for name in ("style.css", "explore.js", "panels.js"):
        assert world.request("GET", f"/{TOKEN}/{name}")[0] == 200


@pytest.mark.parametrize(
    "path",
    ["/", "/wrong/", f"/{TOKEN}", f"/{TOKEN}x/", f"/{TOKEN}/../", f"/{TOKEN}/page.py",
     f"/{TOKEN}/%2e%2e/%2e%2e/etc/passwd", f"/{TOKEN}//etc/passwd", "/%00/", "//",
     f"/{TOKEN}/ask/plan"],
)  # fmt: skip
def test_other_paths_do_not_exist(world: Served, path: str) -> None:
    status, _, text = world.request("GET", path)
    assert status in (404, 405)
    assert "root:" not in text


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Host": None}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": None}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Length": "999999999"}, 413),
        ({"Content-Length": "300000"}, 413),
    ],
)
def test_strangers_are_refused(world: Served, change, status) -> None:
    headers = {**world.headers(), **change}
    given = {name: value for name, value in headers.items() if value is not None}
    body = json.dumps({"question": QUESTION}).encode()
    got, _, text = world.request("POST", f"/{TOKEN}/ask/plan", body, given)
    assert got == status, text
    assert world.request("POST", "/wrong/ask/plan", body, world.headers())[0] == 404


def test_idle_connections_do_not_keep_the_owner_out(world: Served, monkeypatch: Any) -> None:
    """Without a token: not by their number, and each only for some seconds."""
    monkeypatch.setattr("placement.explore.server._PATIENCE", 0.2)
    idle = [socket.create_connection(("127.0.0.1", world.port)) for _ in range(150)]
    try:
        for one in idle[::2]:
            with contextlib.suppress(ConnectionError):
                one.sendall(b"GET /")
        assert world.request("GET", f"/{TOKEN}/")[0] == 200
        for one in idle:
            one.settimeout(30)
            with contextlib.suppress(ConnectionError):
                assert one.recv(1) == b""
    finally:
        for one in idle:
            one.close()


def test_a_client_that_leaves_while_it_sends_is_no_error(
    world: Served, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    head = "".join(f"{name}: {value}\r\n" for name, value in world.headers().items())
    head = f"POST /{TOKEN}/ask/plan HTTP/1.1\r\n{head}Content-Length: 200000\r\n\r\n"
    for sent in ("", " ", " " * 70_000):
        with socket.create_connection(("127.0.0.1", world.port)) as client:
            client.sendall((head + sent).encode())
            time.sleep(0.05)
    assert world.plan(**QUESTION)["status"] == "optimal"  # the server has dealt with them by then
    assert caplog.records == []
    assert capfd.readouterr().err == ""


def test_a_body_that_never_ends_does_not_keep_its_thread(world: Served, monkeypatch: Any) -> None:
    monkeypatch.setattr("placement.explore.server._Handler.timeout", 0.2)
    head = "".join(f"{name}: {value}\r\n" for name, value in world.headers().items())
    head = f"POST /{TOKEN}/ask/plan HTTP/1.1\r\n{head}Content-Length: 9\r\n\r\n{{"
    with socket.create_connection(("127.0.0.1", world.port), timeout=30) as client:
        client.sendall(head.encode())
        assert client.recv(1) == b""


def test_jobs_whose_clients_left_leave_their_places(world: Served, monkeypatch: Any) -> None:
    monkeypatch.setattr(Worker, "_start", lambda self: None)
    worker, free = Worker(world.explorer, most=3), threading.Event()
    ran: list[str] = []
    told: list[object] = []

    def run(number: int, kind: str, *_: object) -> None:
        ran.append(kind)
        assert free.wait(30)

    monkeypatch.setattr(worker, "_run", run)
    threads = []
    kinds = ("first", "left", "second", "overtaken", "third")
    for lane, order, kind in zip("abccd", (0, 0, 2, 1, 0), kinds, strict=True):
        asked = (lane, kind, None, told.append, lambda kind=kind: kind == "left", order)
        threads.append(threading.Thread(target=worker.run, args=asked))
        threads[-1].start()
        if kind in ("left", "overtaken"):
            threads[-1].join(30)  # while the first one runs
        time.sleep(0.1)  # so that the next one asks later
    free.set()
    for thread in threads:
        thread.join(30)
    assert ran == ["first", "second", "third"]
    assert told == [("cancelled", {})] * 2


def test_what_is_no_json_is_refused(world: Served) -> None:
    for body in (b"{", b"\xff", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"[" * 3000):
        assert world.request("POST", f"/{TOKEN}/ask/plan", body, world.headers())[0] == 400
    assert world.request("POST", f"/{TOKEN}/ask/nosuch", b"{}", world.headers())[0] == 404
    status, _, text = world.request("POST", f"/{TOKEN}/ask/plan", b"[]", world.headers())
    assert (status, events_of(text)[-1][0]) == (200, "error")


def test_a_dropped_table_is_the_demand(world: Served, tmp_path, monkeypatch) -> None:
    instance = world.explorer.instance
    first, second = instance.clients[:2]
    text = "client,operation,count\n" + "".join(
        f"{client},{kind},{count}\n"
        for client, kind, count in (
            (first, "strong_read", 900), (second, "strong_read", 100), (first, "single_group", 250),
        )
    )  # fmt: skip
    asked = world.plan(**QUESTION, counts={"name": "mine.csv", "text": text})
    assert asked["shares"]["strong_read"] == 0.8
    assert asked["cannot"] == ["the table of demand"]
    (tmp_path / "mine.csv").write_text(text)
    monkeypatch.chdir(tmp_path)
    known: dict[str, object] = {}
    exec(asked["python"], known)
    same(asked, known["plan"])
    for wrong in ("client,strong_read\nAtlantis,1\n", "client,nosuch\nTokyo,1\n", text[:40], "x"):
        code, error = world.ask(
            "plan", {"question": {**QUESTION, "counts": {"name": "a.csv", "text": wrong}}}
        )
        assert code == "error"
        assert "a.csv" in error["message"]


def test_a_question_is_saved_and_opened_again(world: Served) -> None:
    for question in (
        QUESTION,
        {
            "replicas": 4, "voters": 3, "survive": "continent",
            "forbid": [world.explorer.instance.sites[0]],
            "leader": world.explorer.instance.sites[3],
            "keep": ["mean(writes) <= 400 ms"], "minimise": "p90", "spread": 0.3,
            "scale_demand": {world.explorer.instance.clients[1]: 2.5},
        },
    ):  # fmt: skip
        name, file = world.ask("file", {"question": question, "format": "question"})
        assert (name, file["name"]) == ("answer", "question.toml")
        name, again = world.ask("load", {"text": file["text"]})
        assert name == "answer", again
        first, second = world.plan(**question), world.plan(**again["question"])
        assert first["mean_latency_ms"] == second["mean_latency_ms"]
        assert first["command"] == second["command"]
    for text, words in (
        ("replicas = ", "not TOML"),
        ("replica = 3", "'replicas'?"),
        ('replicas = 3\ntoday = "/etc/passwd"', "not a key that the page can change"),
        ('instance = "azure"', "a question about another instance"),
    ):
        name, error = world.ask("load", {"text": text})
        assert (name, words in error["message"]) == ("error", True), error

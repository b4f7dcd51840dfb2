"""Writes are whole or not at all; plain text is aligned and obeyed by no terminal."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import signal
import socket
import stat
import threading
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import Diversity, InputError, Instance, Plan, Prices, Problem, Termination
from placement.feasibility.feasible_plans import find_feasible
from placement.io import load_instance, save_instance
from placement.io.formats import files as module
from placement.io.formats.files import check_file, write_file, write_folder, writing
from placement.model.configuration import Configuration
from placement.plan import evaluate, objective_value
from placement.text.plans import instance_text, plan_text
from placement.text.text_tables import clip, display_width, escape, table, wrap
from tests.io.worlds import ANY_UNITS, awkward, same, small
from tests.strategies import problems

OLD = small()
# other numbers, other names and one table more
NEW = small(
    counts=np.ones((2, 4, 5)), clients=("Oslo", "Bern", "Lagos", "Lima"), provenance=("Changed.",)
)


@contextmanager
def cut_short(step: int, how: Callable[[], None]) -> Iterator[list[int]]:
    """Let the `step`-th call that changes the disk end in `how` instead, half-done writes included.

    Yields the list of calls that were made.
    """
    made: list[int] = []
    sync, rename, unlink, mkdir = (os.fsync, Path.replace, Path.unlink, Path.mkdir)

    def count() -> bool:
        made.append(len(made))
        return len(made) - 1 == step

    def half_write(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and count():
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            how()
        sync(descriptor)

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(self: Path, *args: Any, **kwargs: Any) -> Any:
            if count():
                how()
            return call(self, *args, **kwargs)

        return instead

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.os, "fsync", half_write)
        patch.setattr(Path, "replace", watched(rename))
        patch.setattr(Path, "mkdir", watched(mkdir))
        patch.setattr(Path, "unlink", watched(unlink))
        yield made


def _leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.name.endswith(".tmp")]


def _raise(error: type[BaseException]) -> Callable[[], None]:
    def how() -> None:
        raise error("cut short")

    return how


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_at_any_step_leaves_the_old_instance_or_the_new(
    tmp_path: Path, error: type[BaseException]
) -> None:
    seen: set[str] = set()
    for step in itertools.count():
        folder = tmp_path / str(step)
        save_instance(OLD, folder)
        (folder / "notes.txt").write_text("mine")
        before = {path.name for path in folder.iterdir()}
        with cut_short(step, _raise(error)) as made:
            try:
                save_instance(NEW, folder, force=True)
                finished = True
            except error:
                finished = False
        found = load_instance(folder)
        assert same(found, OLD) or same(found, NEW)
        assert not finished or same(found, NEW)
        seen.add("new" if same(found, NEW) else "old")
        assert (folder / "notes.txt").read_text() == "mine"
        if same(found, OLD):  # and nothing of the new one lies about
            assert {path.name for path in folder.iterdir()} == before
        assert _leftovers(folder) == []
        # and it can be written again
        save_instance(NEW, folder, force=True)
        assert same(load_instance(folder), NEW)
        if step >= len(made):
            break
    assert step > 6  # tables and manifest, a write and a rename each
    assert seen == {"old", "new"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork to be killed")
def test_a_kill_at_any_step_leaves_the_old_instance_or_the_new(tmp_path: Path) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    seen: set[str] = set()
    for step in itertools.count():
        folder = tmp_path / str(step)
        save_instance(OLD, folder)
        child = os.fork()
        if child == 0:
            with cut_short(step, die):
                save_instance(NEW, folder, force=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        found = load_instance(folder)
        assert same(found, OLD) or same(found, NEW)
        seen.add("new" if same(found, NEW) else "old")
        if os.WIFEXITED(status):
            break
    assert step > 6
    assert seen == {"old", "new"}
    assert same(found, NEW)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_new_folder_appears_whole_or_not_at_all(
    tmp_path: Path, error: type[BaseException]
) -> None:
    for step in itertools.count():
        folder = tmp_path / str(step) / "w"
        folder.parent.mkdir()
        with cut_short(step, _raise(error)) as made:
            try:
                save_instance(NEW, folder)
            except error:
                assert list(folder.parent.iterdir()) == []
            else:
                assert same(load_instance(folder), NEW)
        if step >= len(made):
            break
    assert step > 6


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_file_is_the_old_one_until_it_is_the_new_one(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    for step in range(2):
        with cut_short(step, _raise(error)), pytest.raises(error):
            write_file(path, b"new and longer", force=True)
        assert path.read_bytes() == b"old"
        assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]
    write_file(path, b"new and longer", force=True)
    assert path.read_bytes() == b"new and longer"


def test_a_failing_sync_is_a_failing_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*/plan\.json'"):
        write_file(tmp_path / "plan.json", b"new")
    with pytest.raises(OSError, match=r"No space left on device: '.*/w'"):
        save_instance(OLD, tmp_path / "w")
    assert list(tmp_path.iterdir()) == []


def test_existing_files_need_force(tmp_path: Path) -> None:
    write_file(tmp_path / "a", b"1")
    with pytest.raises(InputError, match=r"exists already.*--force"):
        write_file(tmp_path / "a", b"2")
    assert (tmp_path / "a").read_bytes() == b"1"
    with pytest.raises(InputError, match="there is a folder at this path"):
        write_file(tmp_path, b"2", force=True)
    with pytest.raises(InputError, match="does not exist"):
        write_file(tmp_path / "b" / "c", b"2")


def test_existing_folders_need_force_and_strangers_files_stay(tmp_path: Path) -> None:
    save_instance(OLD, tmp_path / "w")
    before = {path.name: path.read_bytes() for path in (tmp_path / "w").iterdir()}
    with pytest.raises(InputError, match="exists already"):
        save_instance(NEW, tmp_path / "w")
    assert {path.name: path.read_bytes() for path in (tmp_path / "w").iterdir()} == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/sites.csv").write_text("my own")
    with pytest.raises(InputError, match="exists already"):
        save_instance(OLD, tmp_path / "mine")
    save_instance(OLD, tmp_path / "mine", force=True)
    save_instance(NEW, tmp_path / "mine", force=True)
    assert (tmp_path / "mine/sites.csv").read_text() == "my own"
    assert same(load_instance(tmp_path / "mine"), NEW)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="this path is not a folder"):
        save_instance(OLD, tmp_path / "file", force=True)


def test_replacing_leaves_no_table_behind(tmp_path: Path) -> None:
    for world in (OLD, NEW, OLD, NEW):
        save_instance(world, tmp_path / "w", force=True)
        assert len(list((tmp_path / "w").iterdir())) == 6  # manifest and five tables
    save_instance(NEW, tmp_path / "w", tables="parquet", force=True)
    names = sorted(path.name for path in (tmp_path / "w").iterdir())
    assert names[2] == "counts.parquet"
    assert len(names) == 6


def test_a_manifest_cannot_make_us_delete_files_elsewhere(tmp_path: Path) -> None:
    save_instance(OLD, tmp_path / "w")
    (tmp_path / "precious.csv").write_text("precious")
    manifest = tmp_path / "w/instance.json"
    manifest.write_text(manifest.read_text().replace('"sites.csv"', '"../precious.csv"'))
    save_instance(NEW, tmp_path / "w", force=True)
    assert (tmp_path / "precious.csv").read_text() == "precious"


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    save_instance(OLD, tmp_path / "w")
    assert same(load_instance(tmp_path / "w"), OLD)


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_a_link_is_followed_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"1")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_file(tmp_path / "link", b"2", force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"2"


def device(folder: Path) -> Path:
    """A character device of this test's own (the one that swallows everything), or a FIFO."""
    path = folder / "device"
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):  # some containers keep device nodes to themselves
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
            return path
    os.mkfifo(path)
    return path


def kind(path: Path) -> tuple[int, int, int]:
    found = path.lstat()
    return stat.S_IFMT(found.st_mode), found.st_rdev, found.st_ino


@contextmanager
def read_from(path: Path) -> Iterator[list[bytes]]:
    """Collect what is written to a pipe meanwhile; nothing to do for a device."""
    found: list[bytes] = []
    if not stat.S_ISFIFO(path.stat().st_mode):
        yield found
        return
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()), daemon=True)
    reader.start()
    yield found
    reader.join(timeout=20)
    assert not reader.is_alive()


@pytest.mark.skipif(os.name != "posix", reason="needs pipes with a name")
@pytest.mark.parametrize("make", [device, None], ids=["device", "pipe"])
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("linked", [False, True])
def test_devices_and_pipes_are_written_through(
    tmp_path: Path, make: Callable[[Path], Path] | None, force: bool, linked: bool
) -> None:
    data = b"0123456789" * 20_000  # more than a pipe holds
    if make is None:
        os.mkfifo(path := tmp_path / "pipe")
    else:
        path = make(tmp_path)
    before, name = kind(path), path
    if linked:
        (name := tmp_path / "link").symlink_to(path)
    names = sorted(tmp_path.iterdir())
    with read_from(path) as found:
        assert write_file(name, data, force=force) == name
    assert found in ([], [data])
    with read_from(path) as found, writing(name, force=force) as sink:
        sink.write(data)
    assert found in ([], [data])
    assert bool(found) == stat.S_ISFIFO(before[0])
    assert kind(path) == before
    assert sorted(tmp_path.iterdir()) == names
    with pytest.raises(InputError, match="not a regular file"):
        check_file(name, force=True, regular=True)


@pytest.mark.skipif(os.name != "posix", reason="needs sockets with a name")
@pytest.mark.parametrize("force", [False, True])
def test_what_is_neither_file_nor_stream_is_refused(tmp_path: Path, force: bool) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(os.path.relpath(path))
        before = kind(path)
        with pytest.raises(InputError, match=r"socket: not a regular file"):
            write_file(path, b"new", force=force)
        with pytest.raises(InputError, match=r"not a regular file"), writing(path, force=force):
            pass
        assert kind(path) == before


@pytest.mark.skipif(os.name != "posix", reason="needs pipes with a name")
def test_a_manifest_that_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    os.mkfifo(folder / "instance.json")
    with pytest.raises(InputError, match="not a regular file"):
        write_folder(folder, {"a.csv": b"1"}, "instance.json", lambda names: b"{}", force=True)
    assert [path.name for path in folder.iterdir()] == ["instance.json"]
    assert stat.S_ISFIFO((folder / "instance.json").stat().st_mode)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_file_written_in_pieces_appears_at_its_end(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"old")

    def half() -> None:
        with writing(path, force=True) as sink:
            sink.write(b"half")
            raise error("cut short")

    with pytest.raises(error):
        half()
    assert path.read_bytes() == b"old"
    with writing(path, force=True) as sink:
        sink.write(b"a")
        sink.write(b"b")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"ab"
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.csv"]
    with pytest.raises(InputError, match="exists already"), writing(path):
        pass


def test_an_error_of_another_file_keeps_its_name(tmp_path: Path) -> None:
    missing = tmp_path / "part.csv"
    with pytest.raises(FileNotFoundError) as caught, writing(tmp_path / "table.csv") as sink:
        sink.write(missing.read_bytes())
    assert caught.value.filename == str(missing)


def test_worlds_differ() -> None:
    assert isinstance(NEW, Instance)
    assert not same(OLD, NEW)


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

"""Profiles of generated tests, and the signals that tests start from.

HYPOTHESIS_PROFILE=ordinary (the default): the same four or so examples in every run.
HYPOTHESIS_PROFILE=landing: half as many again or twice as many; `make test-landing`, for .ci/run.
HYPOTHESIS_PROFILE=thorough: more, and fresh ones; `make test-thorough`, before a release.
HYPOTHESIS_PROFILE=sanitize: fresh ones by the thousand; `make sanitize`, for the kernels alone.
HYPOTHESIS_PROFILE=long: thousands of fresh ones per property, for an hour or more.
Tests marked `slow` or `landing` are left out of `make test`. Where a property names its own number
of examples, `tests.effort.examples` scales it by the profile.

Who starts the tests may ignore Ctrl-C (``nohup make test &``, many runners in CI). A process
inherits that, and Python then installs no handler. So the disposition is set here: for the tests,
and with them for all programs that they start, as an exec gives handled signals their default.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from benchmarks.explore.browser import CHROMIUM, DRIVER, Browser
from tests.effort import PROFILE, SHORT

# An instance with its constraints is a large draw, and no test here asserts a time.
COMMON = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)

settings.register_profile("ordinary", COMMON, max_examples=4, derandomize=True)
settings.register_profile("landing", COMMON, max_examples=6, derandomize=True)
settings.register_profile("thorough", COMMON, max_examples=100)
settings.register_profile("sanitize", COMMON, max_examples=1500, database=None)
settings.register_profile("long", COMMON, max_examples=3000)
settings.load_profile(PROFILE)

# Pages are as wide as the terminal of who runs the tests, unless this says otherwise.
os.environ["COLUMNS"] = "80"

# Two processes run tests on two cores: threads of a matrix product would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Messages of argparse are compared: in English on every machine, and without a search for
# translations, which takes a tenth of a short call of the command.
os.environ["LANGUAGE"] = "C"

# The modules and some thousand tests that pytest holds are no garbage: with the usual thresholds a
# tenth of the time goes into looking through them again and again.
gc.set_threshold(50_000)
gc.disable()

LINES = Path(__file__).with_name("landing.txt").read_text(encoding="utf-8").splitlines()
SECOND_LOOKS = tuple(f"tests/{line}" for line in LINES if not line.startswith("#"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the second looks, before pytest leaves out what the expression of marks leaves out."""
    for item in items:
        if item.nodeid.startswith(SECOND_LOOKS):
            item.add_marker(pytest.mark.landing)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what lives to the end out of every garbage collection, and begin to collect."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def parsers_once() -> Iterator[None]:
    """Keep the parser of a verb from call to call: to make one takes longer than a small world."""
    from placement.cli import dispatch

    kept: dict[tuple[str, ...], argparse._SubParsersAction[argparse.ArgumentParser]] = {}
    add_verbs = dispatch.add_verbs

    def add_once(
        verbs: argparse._SubParsersAction[argparse.ArgumentParser], arguments: Sequence[str]
    ) -> None:
        asked = tuple(arguments[:2])
        if asked not in kept:
            add_verbs(verbs, arguments)
            kept[asked] = verbs
        verbs.choices.update(kept[asked].choices)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "add_verbs", add_once)
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, shared by all pages."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs chromium and chromedriver")
    pytest.importorskip("selenium")
    with Browser() as found:
        yield found


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., object]:
    """Run the command line in this process."""
    from tests.cli.command import runner

    return runner(capsys)


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str]) -> Callable[..., object]:
    """Run the command line of the benchmarks in this process."""
    from benchmarks.__main__ import main
    from tests.cli.command import runner

    return runner(capsys, main)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Collect no garbage: an interrupt is lost where it meets a callback of the collector."""
    gc.disable()
    yield
    gc.enable()


MOST_CPU_SECONDS = {"not landing": 450, "not slow": 1000}
"""By a part of the expression of marks, with the processes of tests, on a slow machine too."""

CPU = pytest.StashKey[float]()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Add up the CPU time of the workers of pytest-xdist."""
    config, output = node.config, getattr(node, "workeroutput", {})  # type: ignore[attr-defined]
    config.stash[CPU] = config.stash.get(CPU, 0.0) + output.get("cpu_seconds", 0.0)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail an ordinary run of all tests that takes too much CPU time, however busy the machine."""
    config = session.config
    output = getattr(config, "workeroutput", None)
    own = sum(os.times()[:4])  # of this process and of its ended children
    if output is not None:
        output["cpu_seconds"] = own
        return
    used = config.stash.get(CPU, 0.0) or own
    given = config.option.markexpr
    most = next((most for part, most in MOST_CPU_SECONDS.items() if part in given), used)
    if SHORT and used > most:
        print(f"\n{used:.0f} CPU seconds, at most {most}: make the tests shorter")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

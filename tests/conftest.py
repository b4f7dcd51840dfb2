"""Profiles of generated tests, and the signals that tests start from.

HYPOTHESIS_PROFILE=ordinary (the default): the same eight or so examples in every run.
HYPOTHESIS_PROFILE=thorough: more, and fresh ones; `make test-thorough`, before a release.
HYPOTHESIS_PROFILE=sanitize: fresh ones by the thousand; `make sanitize`, for the kernels alone.
HYPOTHESIS_PROFILE=long: thousands of fresh ones per property, for an hour or more.
Tests marked `slow` are left out of the first. Where a property names its own number of examples,
`tests.effort.examples` scales it by the profile.

Who starts the tests may ignore Ctrl-C (``nohup make test &``, many runners in CI). A process
inherits that, and Python then installs no handler. So the disposition is set here: for the tests,
and with them for all programs that they start, as an exec gives handled signals their default.
"""

from __future__ import annotations

import gc
import os
import signal
import threading

import pytest
from hypothesis import HealthCheck, settings

from tests.effort import PROFILE

# An instance with its constraints is a large draw, and no test here asserts a time.
COMMON = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)

settings.register_profile("ordinary", COMMON, max_examples=8, derandomize=True)
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
gc.set_threshold(5_000)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what lives to the end out of every garbage collection."""
    gc.freeze()


if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

"""Other packages that solve parts of the problem, wrapped as methods named ``peer/…``.

A peer gets the problem through its own interface, with the best settings we know of, and its answer
is priced by our evaluator, like everybody's. Each states in its caption what it solves itself and
what we had to do for it. They are found here and not among the registered methods, because they
answer special cases only. ``pip install 'replica-placement[peers]'`` brings them.
"""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING

from placement.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from placement.methods.registry import Method

__all__ = ["CAPTIONS", "PREFIX", "find_method"]

PREFIX = "peer/"

_HOMES = {
    "peer/monolithic-milp": "benchmarks.peers.whole_milp",
    "peer/pbp-pmedian": "benchmarks.peers.pbp",
    "peer/quoracle": "benchmarks.peers.quoracle_quorums",
    "peer/spopt": "benchmarks.peers.spopt_pmedian",
}

CAPTIONS = MappingProxyType(
    {
        "peer/monolithic-milp": "One mixed-integer program for HiGHS over all leaders, as in a "
        "textbook: Church–Cohon rows, one binary per leader and quorum radius, no first plan and "
        "no reductions. The same HiGHS, threads and limits as our milp.",
        "peer/pbp-pmedian": "Exact p-median (reduced models or Benders, chosen by its router) at "
        "the relative gap of 0 that it sets; the special case of weak reads only. At a time limit "
        "it returns no sites.",
        "peer/quoracle": "Quorum algebra. It knows one latency per node and chooses neither sites "
        "nor leaders, so that our loop enumerates them for it and adds the clients' part; quoracle "
        "prices the commit of each (majority system, latency-optimal strategy).",
        "peer/spopt": "p-median by PuLP with HiGHS (faster there than its default, CBC) at a "
        "relative gap of 5e-10; the special case of weak reads only. At a time limit it raises, or "
        "passes an incumbent on as optimal, because PuLP says so: then we count it as unproven.",
    }
)
"""Captions beside the numbers of a peer."""


def find_method(name: str) -> Method:
    """Return a registered method, or one of the peers.

    Raises
    ------
    InputError
        When there is none of that name.
    MissingDependencyError
        For a peer whose package is not installed.
    UnsupportedError
        As :func:`placement.methods.registry.load_method`.
    """
    if not name.startswith(PREFIX):
        from placement.methods.registry import load_method

        return load_method(name)
    if name not in _HOMES:
        raise InputError(
            "unknown peer", field="method", value=name, expected="one of " + ", ".join(_HOMES)
        )
    try:
        module = importlib.import_module(_HOMES[name])
    except ImportError as error:
        raise MissingDependencyError(
            f"{name} needs a package that is not installed ({error}); "
            "pip install 'replica-placement[peers]'"
        ) from error
    method: Method = vars(module)["METHOD"]
    return method

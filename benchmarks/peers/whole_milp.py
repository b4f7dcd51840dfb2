"""The mixed-integer program that a competent modeller writes first, given to HiGHS whole."""

from __future__ import annotations

import dataclasses

from placement.methods.options import Options
from placement.methods.registry import Method, load_method, refusal, run
from placement.plan import Plan
from placement.problem import Problem

__all__ = ["METHOD"]

SETTINGS = {"recipe": "textbook", "start": "none", "reduce": False}
"""Settings of our ``milp`` that leave out all that makes it more than a textbook model."""


def _refuses(problem: Problem) -> str | None:
    return refusal(load_method("milp"), problem)


def _call(problem: Problem, options: Options) -> Plan:
    told = dataclasses.replace(options, settings=SETTINGS)
    return run(load_method("milp"), problem, told).replace(method=METHOD.name)


METHOD = Method(
    name="peer/monolithic-milp",
    call=_call,
    summary="one textbook mixed-integer program for HiGHS",
    exact=True,
    refuses=_refuses,
    reference="Church and Cohon 1976 for closest assignment",
)

"""Sweeps: one problem per number of replicas and voters.

:func:`sweep` solves a grid and says what one more replica brings;
:mod:`placement.analysis.pareto_frontier` finds the frontier of latency and cost.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from placement.errors import InputError, LimitError, SolverError, UnsupportedError
from placement.feasibility.feasible_plans import repaired
from placement.methods.options import Options, Progress
from placement.methods.registry import Method, explained, load_method, run
from placement.model.instance import Instance
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import elements, function, mapping, whole
from placement.support.status import Termination

if TYPE_CHECKING:
    import pandas as pd

# Questions with varied numbers of replicas and voters, and the columns of a table of their plans


def check_question(
    question: Instance | Problem,
    progress: Callable[..., None] | None,
    settings: Mapping[str, object] | None,
) -> None:
    """Check the types of the arguments of a sweep or a frontier."""
    if not isinstance(question, (Instance, Problem)):
        raise InputError("neither an instance nor a problem", field="question", value=question,
                         expected="a placement.Instance or a placement.Problem")  # fmt: skip
    if progress is not None:
        function(progress, "progress")
    if settings is not None:
        mapping(settings, "settings")


def with_counts(
    question: Instance | Problem, replicas: int | tuple[int, int], voters: int | None
) -> Problem:
    """Return the question with other numbers; None: the voters of the problem, 3 of an instance."""
    if isinstance(question, Instance):
        return Problem(question, replicas=replicas, voters=3 if voters is None else voters)
    if voters is None:
        return question.replace(replicas=replicas)
    return question.replace(replicas=replicas, voters=voters)


def voter_counts(
    question: Instance | Problem, voters: Iterable[int] | int | None
) -> list[int | None]:
    """Numbers of voters; None stands for the voters of the problem, which may have names."""
    if voters is not None:
        return [*sorted(set(whole_numbers(voters, "voters")))]
    if isinstance(question, Instance):
        return [3]
    return [question.rules.voters if isinstance(question.voters, int) else None]


def whole_numbers(values: Iterable[int] | int, field: str) -> list[int]:
    """Return numbers >= 1 as a list, or raise an InputError that names the field."""
    if isinstance(values, (int, float)):
        values = (values,)  # a fraction is refused below
    numbers = []
    for value in elements(values, field, "whole numbers >= 1"):
        numbers.append(whole(value, field, minimum=1))
    if not numbers:
        raise InputError("none given", field=field, expected="at least one number")
    return numbers


def value_in_ms(plan: Plan) -> float:
    """Return the minimised value of a plan in ms: mean latency without money, or its objective."""
    objective = plan.problem.objective
    if not plan.found or objective.minimises_mean:
        return plan.mean_latency
    return objective.in_ms(plan.problem, plan.objective)


def minimised(question: Instance | Problem) -> dict[str, str]:
    """Return the minimised value in words, its name, its unit; no words for the mean latency."""
    if isinstance(question, Instance):
        return {"objective": "", "minimised": "", "unit": "ms"}
    goal = question.objective
    words = goal.describe().removeprefix("minimise ").replace("maximise ", "late, not ", 1)
    return {"objective": words, "minimised": goal.headline(question), "unit": goal.unit(question)}


def plan_columns(plan: Plan) -> dict[str, object]:
    """Shared columns of the two tables."""
    priced = plan.problem.instance.prices is not None and plan.found
    return {
        "status": plan.status.value,
        "score": plan.score if plan.found else math.nan,
        "mean_latency": plan.mean_latency,
        "value": value_in_ms(plan),
        "bound": plan.bound,
        "gap": plan.gap if plan.found else math.nan,
        "cost": plan.cost if priced else math.nan,
        "seconds": plan.seconds,
        "leader": plan.leader,
        "voter_sites": plan.voters,
        "replica_sites": plan.replicas,
    }


SWEEP_COLUMNS = (
    "replicas", "voters", "status", "score", "mean_latency", "value", "gain", "gain_percent",
    "bound", "gap", "cost", "seconds", "leader", "voter_sites", "replica_sites", "reason",
)  # fmt: skip
"""Columns of a sweep; see :func:`sweep`."""

_REALS, _TEXTS = SWEEP_COLUMNS[3:12], ("status", "reason")


def sweep(
    question: Instance | Problem,
    *,
    replicas: Iterable[int] | int,
    voters: Iterable[int] | int | None = None,
    method: str = "exact",
    time_limit: float | None = None,
    gap_limit: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[int, int, Progress], None] | None = None,
    settings: Mapping[str, object] | None = None,
) -> pd.DataFrame:
    """Solve for every number of replicas and voters.

    Parameters
    ----------
    question
        An instance, or a problem whose constraints hold in every cell.
    replicas
        Numbers of replicas.
    voters
        Numbers of voters; None: those of the problem, or 3 for an instance. Cells with more voters
        than replicas are left out.
    method
        Name of a registered method.
    time_limit, gap_limit, seed, threads, settings
        For each cell, as in :func:`placement.solve`.
    progress
        Called with (replicas, voters, report).

    Returns
    -------
    pandas.DataFrame
        One row per cell, ordered by voters, then replicas: ``replicas``, ``voters``, ``status``
        (that of the plan, or "refused", "failed", "not run" after Ctrl-C), ``score``
        (ms·operations), ``mean_latency`` (ms), ``value`` (ms: what is minimised, such as a
        percentile or a worst case; the mean latency where that is minimised), ``gain`` (ms by
        which the value is lower than with one replica fewer and as many voters; negative when the
        replica harms, NaN when either is not known) and ``gain_percent`` of it, ``bound`` and
        ``gap`` (of the objective), ``cost`` (NaN without prices), ``seconds``, ``leader``,
        ``voter_sites``, ``replica_sites``, ``reason``. ``table.attrs["objective"]``: the objective
        in words, empty for the mean.

    Notes
    -----
    Each cell starts from the plan of the cell before, and from the data that its method carries
    over. A gain between two optimal cells is proven. Otherwise it is the difference of the
    best known plans, and the gaps say how far it can be off.
    """
    import pandas as pd

    check_question(question, progress, settings)
    chosen = load_method(method)  # a name that does not exist is an error of the whole
    given: dict[str, object] = {name: setting.default for name, setting in chosen.settings.items()}
    if "certificate" in chosen.settings:
        given["certificate"] = False  # the plans and their proofs are not kept
    given.update(settings or {})

    common = Options(
        time_limit=time_limit, gap_limit=gap_limit, seed=seed, threads=threads, settings=given
    )

    def ask(answer: Method, problem: Problem, before: Plan | None) -> Plan:
        options = common
        # A session holds searches for the mean: other objectives start from the cell before.
        alone = answer.session is None or not problem.objective.minimises_mean
        if alone and before is not None:
            start = repaired(problem, before.configuration, problem.rules.replicas_max)
            options = dataclasses.replace(options, start=start, warm_start=before.warm_start)
        if progress is not None:
            size, count = problem.rules.replicas_max, problem.rules.voters
            options = dataclasses.replace(
                options, progress=functools.partial(progress, size, count)
            )
        return explained(run(answer, problem, options), options.time_limit)

    rows: list[dict[str, object]] = []
    stopped = False
    sizes = sorted(set(whole_numbers(replicas, "replicas")))
    for count in voter_counts(question, voters):
        before: Plan | None = None
        previous = -1
        answer = chosen.in_session()
        cells = list(_cells(question, sizes, count))
        for size, asked in cells:
            row: dict[str, object] = dict.fromkeys(SWEEP_COLUMNS, math.nan)
            row.update(replicas=size, voters=count, leader=None, reason="")
            row.update(voter_sites=(), replica_sites=())
            plan = None
            if stopped:
                row.update(status="not run", reason="interrupted before its turn")
            else:
                try:
                    if not isinstance(asked, Problem):
                        raise asked
                    plan = ask(answer, asked, before)
                    row.update(plan_columns(plan))
                    row.update(
                        voters=plan.problem.rules.voters,
                        seconds=plan.seconds,
                        reason="; ".join(plan.reasons),
                    )
                    stopped = plan.termination is Termination.INTERRUPTED
                except (InputError, LimitError, UnsupportedError) as error:
                    row.update(status="refused", reason=str(error))
                except SolverError as error:
                    row.update(status="failed", reason=str(error))
                except KeyboardInterrupt:
                    row.update(status="not run", reason="interrupted")
                    stopped = True
            both = before is not None and plan is not None and before.found and plan.found
            if before is not None and plan is not None and both and size == previous + 1:
                value = value_in_ms(before)
                gain = value - value_in_ms(plan)
                row.update(gain=gain, gain_percent=100 * gain / value if value else 0.0)
            rows.append(row)
            before, previous = plan, size
    if not rows:
        words = "no number of voters fits into any number of replicas"
        raise InputError(words, field="voters", expected="voters <= replicas")
    types: dict[str, type] = {**dict.fromkeys(_REALS, float), **dict.fromkeys(_TEXTS, str)}
    types["replicas"] = int
    if all(row["voters"] is not None for row in rows):
        types["voters"] = int
    table = pd.DataFrame(rows, columns=list(SWEEP_COLUMNS), dtype=object).astype(types)
    table.attrs.update(minimised(question))
    return table


def _cells(
    question: Instance | Problem, sizes: Sequence[int], count: int | None
) -> Iterator[tuple[int, Problem | InputError | LimitError | UnsupportedError]]:
    """Yield every size that so many voters allow, with its problem or why there is none."""
    last: Problem | None = None  # from which the next differs in its number alone
    for size in sizes:
        if count is not None and size < count:
            continue
        try:
            if last is None:
                last = with_counts(question, size, count)
            else:
                last = last.replace(replicas=size)
            yield size, last
        except (InputError, LimitError, UnsupportedError) as error:
            yield size, error

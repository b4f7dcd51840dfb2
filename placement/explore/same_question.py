"""The command line and the Python lines that ask the question of the page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from placement.evaluation.moves import CurrentSites
from placement.explore.question import Question
from placement.model.constraints import Diversity

__all__ = ["Origin", "command_line", "python_lines"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of the instance of the server: a data set or a path, and its options.

    Attributes
    ----------
    source
        Name of a data set, or a path.
    mix, seed
        Of the workload of a data set; mix None: its default.
    words
        Further options of the command line that changed the instance.
    """

    source: str
    mix: str | None = None
    seed: int = 0
    words: tuple[str, ...] = ()


_LISTS = (
    ("--pin", "pinned"),
    ("--pin-voter", "pinned_voters"),
    ("--forbid", "forbidden"),
    ("--no-vote", "non_voters"),
)


def command_line(question: Question, origin: Origin) -> tuple[str, tuple[str, ...]]:
    """Return the command, and the parts of the question without an option, in words."""
    problem, cannot = question.problem, list(_without_option(question))
    words = ["placement", "solve", origin.source]
    if origin.mix is not None:
        words += ["--mix", origin.mix]
    if origin.seed:
        words += ["--workload-seed", str(origin.seed)]
    words += origin.words
    for option, value in (("--replicas", problem.replicas), ("--voters", problem.voters)):
        words += _counts(option, value)
    if problem.witnesses:
        words += _counts("--witnesses", problem.witnesses)
    for option, single in (
        ("--quorum", problem.quorum),
        ("--leader", problem.leader),
        ("--survive", problem.survive),
        ("--budget", problem.budget),
        ("--cost-weight", problem.cost_weight or None),
        ("--protocol", problem.protocol),
    ):
        if single is not None:
            words += [option, _text(single)]
    if problem.leaders is not None:
        words += [word for name in problem.leaders for word in ("--leaders", name)]
    for option, field in _LISTS:
        words += [word for name in getattr(problem, field) for word in (option, name)]
    words += [word for rule in problem.diversity for word in _rule_words(rule)]
    if problem.decay != 1:
        words += ["--decay", _text(problem.decay)]
    for client, factor in question.demand.items():
        words += ["--scale-demand", f"{client}={_text(factor)}"]
    if question.percentile is not None:
        words += ["--percentile", _text(question.percentile), "--spread", _text(question.spread)]
    if question.method != "exact":
        words += ["--method", question.method]
    if question.time_limit is not None:
        words += ["--time-limit", _text(question.time_limit)]
    return shlex.join(words), tuple(cannot)


def _without_option(question: Question) -> Iterator[str]:
    """Yield the parts of a question that the command line has no option for."""
    if question.added:
        yield "added sites"
    if question.interval is not None:
        yield "one interval alone"
    if question.mix:
        yield "the operation mix"
    if question.problem.moves is not None:
        yield "moves from the present configuration"


def _text(value: object) -> str:
    """Return an option's value; a float so that it reads back as the same float."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)


def _counts(option: str, value: object) -> list[str]:
    """Return the words of a number, a range, or a list of sites."""
    if isinstance(value, range):
        return [option, f"{min(value)}..{max(value)}"]
    if isinstance(value, tuple) and isinstance(value[0], str):
        return [word for name in value for word in (option, name)]
    if isinstance(value, tuple):
        return [option, f"{value[0]}..{value[1]}"]
    return [option, str(value)]


def _rule_words(rule: Diversity) -> list[str]:
    """Return the options of a diversity rule."""
    words: list[str] = []
    if rule.cap is not None:
        words += ["--cap", f"{rule.level}={rule.cap}:{rule.role}"]
    if rule.min_domains is not None:
        words += ["--distinct", f"{rule.level}={rule.min_domains}:{rule.role}"]
    if rule.least is not None:
        words += ["--require", f"{rule.level}:{rule.domain}={rule.least}:{rule.role}"]
    return words


def python_lines(question: Question, origin: Origin) -> str:
    """Return lines of Python that ask the question; the last one makes the plan."""
    problem = question.problem
    load = [repr(origin.source)]
    if origin.mix is not None:
        load.append(f"mix={origin.mix!r}")
    if origin.seed:
        load.append(f"seed={origin.seed}")
    changed = [
        name for name, used in (("with_mix", question.mix), ("with_site", question.added)) if used
    ]
    lines = ["import placement"]
    if changed:
        names = ", ".join(changed)
        lines.append(f"from placement.model.changed_instance import {names}")
    if question.percentile is not None:
        lines.append("from placement.tail.rtt_spread import percentile_of_spread")
    if problem.diversity:
        lines.append("from placement import Diversity")
    lines += ["", f"instance = placement.load({', '.join(load)})"]
    if origin.words:
        lines.append(f"# the command line changed it further: {shlex.join(origin.words)}")
    for site in question.added:
        lines.append(
            f"instance = with_site(instance, {site.name!r}, {site.latitude!r}, {site.longitude!r})"
        )
    if question.interval is not None:
        at = f"instance.intervals.index({question.interval!r})"
        lines.append(f"instance = instance.at_interval({at})")
    if question.mix:
        lines.append(f"instance = with_mix(instance, {dict(question.mix)!r})")
    if question.demand:
        lines.append(f"instance = placement.scale_demand(instance, {dict(question.demand)!r})")
    given: list[tuple[str, object]] = [("replicas", problem.replicas), ("voters", problem.voters)]
    for field, default in (
        ("quorum", None),
        ("witnesses", 0),
        ("leader", None),
        ("leaders", None),
        ("pinned", ()),
        ("pinned_voters", ()),
        ("forbidden", ()),
        ("non_voters", ()),
        ("diversity", ()),
        ("survive", None),
        ("decay", 1.0),
        ("budget", None),
        ("cost_weight", 0.0),
    ):
        value = getattr(problem, field)
        if value != default:
            given.append((field, list(value) if isinstance(value, tuple) else value))
    if problem.protocol is not None:
        given.append(("protocol", str(problem.protocol)))
    if isinstance(problem.current, CurrentSites):
        given.append(("current", problem.current.document()))
    lines.append("problem = placement.Problem(")
    lines += ["    instance,", *(f"    {field}={value!r}," for field, value in given)]
    if problem.moves is not None:
        lines.append(f"    moves=placement.Moves(**{dict(problem.moves.given)!r}),")
    if question.percentile is not None:
        call = f"percentile_of_spread(instance, {question.percentile!r}, {question.spread!r})"
        lines.append(f"    objective={call},")
    lines.append(")")
    solve = ["problem"]
    if question.method != "exact":
        solve.append(repr(question.method))
    if question.time_limit is not None:
        solve.append(f"time_limit={question.time_limit!r}")
    lines.append(f"plan = placement.solve({', '.join(solve)})")
    return "\n".join(lines) + "\n"

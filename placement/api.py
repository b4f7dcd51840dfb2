"""The two public calls that cross from names and files to the model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from placement.errors import InputError, nearest
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.plan import Plan
from placement.plan import evaluate as evaluate_configuration
from placement.problem import Problem
from placement.support.checks import instance_of, text

__all__ = ["evaluate", "load"]


def load(source: str | Path, *, mix: str | None = None, seed: int = 0) -> Instance:
    """Load a bundled data set by name, or an instance from its files.

    Parameters
    ----------
    source
        A data set (``placement show datasets`` lists them), or the path of an instance written by
        :func:`placement.io.save_instance`: its folder or its manifest; or a plan, whose instance
        is meant.
    mix
        For a data set, the operation mix of the generated workload; None: its default.
    seed
        For a data set, the seed of the workload.

    Raises
    ------
    InputError
        When there is no such data set or file, or the file is bad.
    """
    from placement import datasets

    if not isinstance(source, (str, os.PathLike)):
        raise InputError("not a name", field="instance", value=source,
                         expected="the name of a data set, or a path")  # fmt: skip

    if isinstance(source, str) and source in datasets.names():
        return datasets.load(source, mix=mix, seed=seed)
    path = Path(source)
    if not _exists(path):
        words = "no such data set or file"
        names = datasets.names()
        expected = "a path, or one of " + ", ".join(names) + nearest(str(source), names)
        raise InputError(words, field="instance", value=str(source), expected=expected)
    if path.is_file() and path.suffix.lower() in (".csv", ".tsv", ".parquet"):
        expected = f"a folder; placement import {path} -o FOLDER makes one of RTTs"
        raise InputError("a table, and no instance", source=str(path), expected=expected)
    if mix is not None:
        text(mix, "mix")
    if mix is not None or seed:
        words = "a workload can be chosen for a bundled data set only"
        field, value = ("seed", seed) if mix is None else ("mix", mix)
        expected = "none: the instance has its own demand"
        raise InputError(words, field=field, value=value, expected=expected)
    from placement.io import load_instance
    from placement.io.plan_file import plan_instance

    return plan_instance(path) or load_instance(path)


def evaluate(
    problem: Problem,
    *,
    leader: str,
    voters: Sequence[str],
    replicas: Sequence[str],
) -> Plan:
    """Score any configuration, given by names.

    Parameters
    ----------
    problem
        The question; the configuration may break its constraints.
    leader, voters, replicas
        Names of sites, ℓ ∈ V ⊆ R; where the question has witnesses, they are voters outside R.

    Returns
    -------
    Plan
        Status ``feasible``, or ``violating`` with what it breaks in `reasons`.

    Raises
    ------
    InputError
        For an unknown site, a leader that holds no replica, and a voter that holds none where the
        question has no witnesses.
    """
    instance = instance_of(problem, Problem, "problem", "a placement.Problem").instance
    chosen = Configuration.of(
        int(instance.site_indices([leader], "leader")[0]),
        instance.site_indices(voters, "voters").tolist(),
        instance.site_indices(replicas, "replicas").tolist(),
    )
    if problem.rules.witnesses:
        _inside(instance, (chosen.leader,), chosen.replicas, "leader", "one of the replicas")
    else:
        _inside(instance, chosen.voters, chosen.replicas, "voters", "one of the replicas")
    _inside(instance, (chosen.leader,), chosen.voters, "leader", "one of the voters")
    return evaluate_configuration(problem, chosen)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have: too long, or with a NUL
        return False


def _inside(
    instance: Instance, inner: Sequence[int], outer: Sequence[int], field: str, expected: str
) -> None:
    for site in inner:
        if site not in outer:
            words = "not part of the configuration"
            raise InputError(words, field=field, value=instance.sites[site], expected=expected)
    if not inner:
        raise InputError("none given", field=field, expected="at least one site")

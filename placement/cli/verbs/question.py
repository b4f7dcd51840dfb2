"""``placement question``: the file of a command line or of a plan, and the schema of such files."""

from __future__ import annotations

import argparse
import dataclasses
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.cli import exit_codes as exits
from placement.cli.options import Subparsers, Switch, add_verb, question_of, written
from placement.cli.output import check_target, print_json
from placement.cli.problem_options import present_configuration
from placement.errors import InputError, PlacementWarning
from placement.question import GROUPS, KEYS, Question, json_schema, question_from, toml_text

if TYPE_CHECKING:
    from placement.problem import Problem


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = add_verb(verbs, "question", run)
    parser.ask(*GROUPS, required=(), optional=True)
    schema = Switch("--schema", "", "print the JSON schema of question files")
    parser.add("", schema, *written("write the question as TOML"))


def _of_plan(args: argparse.Namespace) -> Question | None:
    """Return the question that a plan file answers; None for another file."""
    from placement.io.formats.document import read_document
    from placement.io.plan_file import FORMAT, load_plan
    from placement.io.problem_document import question_of as question_of_problem

    document = read_document(args.instance)
    if document.values.get("format") != FORMAT:
        return None
    about, given = document.table("instance"), vars(args).get("given", ())
    if given:
        option = KEYS[min(given)].option
        raise InputError("a plan has a question already", field=option, expected="the plan alone")
    problem = load_plan(args.instance).problem
    source = about.text("source", "")
    if source and not about.has("seed"):
        source = os.path.relpath(Path(args.instance).parent / source)
    asked = document.table("asked").values if document.has("asked") else {}
    rest = question_from(asked, source=args.instance)
    more = {
        "instance": source or args.instance,
        "mix": about.values.get("mix"),
        "workload_seed": about.values.get("seed") or 0,
        "method": document.text("method"),
        **{key.name: value for key, value in rest.given()},
    }
    if problem.current is not None:
        _check_today(args.instance, rest, problem)
    return question_of_problem(problem, **more)


def _check_today(plan: str, asked: Question, problem: Problem) -> None:
    """Warn where no file says what ran when the plan was made."""
    from placement.evaluation.moves import CurrentSites

    words = "the plan does not name the file of what runs today: add today = FILE"
    if asked.today is not None:
        try:
            here = present_configuration(problem.instance, asked.today, asked.database)
            if CurrentSites.of(here, problem.instance) == problem.current:
                return
            words = f"{asked.today} says another configuration than the one that ran for this plan"
        except (InputError, OSError):
            words = f"{asked.today}, which said what runs today, cannot be read any more"
    warnings.warn(f"{plan}: {words}", PlacementWarning, stacklevel=3)


def run(args: argparse.Namespace) -> int:
    """Print the question that the options ask, or that a plan answers, as a question file.

    Every verb takes the file in place of an instance.
    """
    if args.schema:
        print_json(json_schema())
        return exits.FOUND
    if args.instance is None:
        raise InputError("the following arguments are required: INSTANCE, or --schema")
    check_target(args)
    asked = _of_plan(args) if args.instance.lower().endswith(".json") else None
    asked = dataclasses.replace(asked or question_of(args), source="", lines={})
    if args.output is None:
        print(toml_text(asked), end="")
    else:
        from placement.io.formats.files import write_file

        files: dict[str, Any] = {  # which are looked for beside the file
            key.name: os.path.relpath(value, Path(args.output).parent)
            for key, value in asked.given()
            if key.file and Path(value).exists()
        }
        text = toml_text(dataclasses.replace(asked, **files))
        write_file(args.output, text.encode("utf-8"), force=args.force)
        print(f"Written to {args.output}")
    return exits.FOUND

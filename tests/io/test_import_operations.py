"""Operations of one's own on the command line, and CSV that is safe to open."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from placement.cli.output import frame_csv
from placement.errors import InputError
from placement.io import load_instance
from placement.model.operations import RELAYED_STRONG_READ, Operation


def imported(folder: Path, counts: str, *options: str) -> int:
    from placement.cli.argument_parser import Parser
    from placement.cli.verbs import import_

    (folder / "rtt.csv").write_text("x,a,b\na,0,7\nb,8,0\n")
    (folder / "counts.csv").write_text(counts)
    parser = Parser()
    import_.add_parser(parser.add_subparsers())
    args = parser.parse_args(
        ["import", str(folder / "rtt.csv"), "--counts", str(folder / "counts.csv"), "-o",
         str(folder / "mine"), *options]
    )  # fmt: skip
    return import_.run(args)


def test_operations_are_defined_on_the_command_line(tmp_path: Path) -> None:
    counts = "client,audit,relayed_strong_read,weak_read\na,1,2,3\nb,4,5,6\n"
    code = imported(tmp_path, counts, "--operation", "audit:near=1,relay=0.3", "--operation",
                    "at: noon:quorum=2")  # fmt: skip
    assert code == 0
    audit, relayed, weak = load_instance(tmp_path / "mine").operations
    assert audit == Operation("audit", near=1, relay=0.3)
    assert relayed == RELAYED_STRONG_READ
    assert weak.name == "weak_read"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("audit", "--operation: not NAME=OPERATION, or NAME:near=1,relay=0.3: got 'audit'"),
        ("audit:", "not NAME:ROUND_TRIPS=NUMBER"),
        ("audit:far=1", "got 'far=1', expected NAME:.* a name of near, relay"),
        ("audit:near=many", "not a number: got 'many'"),
        ("audit:near=1,near=1", "given twice"),
        ("audit:near=-1", "out of range: got '-1'"),
        ("audit:near=nan", "out of range: got 'nan'"),
        (":near=1", "not a name"),
    ],
)
def test_bad_operations(tmp_path: Path, option: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        imported(tmp_path, "client,audit\na,1\nb,2\n", "--operation", option)


def test_an_operation_that_is_not_defined(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown operation: got 'audit'.*--operation"):
        imported(tmp_path, "client,audit\na,1\nb,2\n")


def test_csv_for_people_holds_no_formula_and_no_invisible_characters() -> None:
    names = ["=cmd|'/c calc'!A1", "+1", "-2", "@sum", " =1", "\u202eevil", "a\tb", "plain"]
    table = pd.DataFrame(
        {"site": names, "ms": [-1.5] * len(names), "=h": [("=a", "b")] * len(names)}
    )
    lines = frame_csv(table).splitlines()
    assert lines[0] == "site,ms,'=h"
    cells = [line.split(",")[0] for line in lines[1:]]
    assert cells == [
        "'=cmd|'/c calc'!A1",
        "'+1",
        "'-2",
        "'@sum",
        "' =1",
        "\\u202eevil",
        "a\\tb",
        "plain",
    ]
    assert {line.split(",")[1] for line in lines[1:]} == {"-1.5"}  # numbers stay numbers
    assert all(line.endswith("'=a; b") for line in lines[1:])

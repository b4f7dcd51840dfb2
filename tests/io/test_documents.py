"""Hostile JSON and TOML: refused with file and key, in one place, whatever the document is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from placement import InputError
from placement.cli import main
from placement.io import load_instance, load_plan, save_instance
from placement.io.formats.document import jsonable, parse_json, read_document
from placement.report.result_file import read_results
from tests.io.worlds import small

DEEP = "[" * 600 + "]" * 600
LONG = "1" * 5000
JSON = [
    (f'{{"a": {{"b": [1, {LONG}]}}}}', "a.b[1]: a number out of range: got 1111"),
    (f'{{"a": 1{"0" * 400}}}', "a: a number out of range: got 1000"),
    (f'{{"a": -{LONG}.5}}', "a: a number out of range: got -1111"),
    ('{"a": [{}, {"b": 1e999}]}', "a[1].b: a number out of range: got 1e999"),
    (f'{{"a": {{"b": {DEEP}}}}}', "a.b[0][0]"),
    ('{"a": ' * 600 + "1" + "}" * 600, "nested too deeply: expected at most 200 levels"),
    ("[" * 200_000, "nested too deeply"),
    (r'{"a": {"b": "\ud800"}}', r"a.b: not text: got '\ud800'"),
    (r'{"a": {"\udfff": 1}}', r"a: not text: got '\udfff'"),
    ('{"a": 1, "b": 2, "a": 3}', "a: a key given twice"),
    ('{"a": Infinity}', "not JSON: got 'Infinity'"),
]


@pytest.mark.parametrize(("text", "message"), JSON, ids=[text[:20] for text, _ in JSON])
def test_what_no_reader_of_json_should_take(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    for read in (read_document, load_plan, load_instance):
        with pytest.raises(InputError) as caught:
            read(path)
        assert message in str(caught.value)
        assert str(caught.value).startswith(str(path))
        assert len(str(caught.value)) < 500


TOML = [
    (f"[x]\na = 1\nb = {LONG}", "x.b: a number out of range"),
    ("a = 0x" + "f" * 5000, "a: a number out of range"),
    ("a = [1, nan]", "a[1]: a number out of range: got nan"),
    ("a = 1e999", "a: a number out of range: got 1e999"),
    ("a = " + "[" * 5000, "nested too deeply"),
    ("[" + ".".join("a" * 600) + "]\nb = 1", "nested too deeply: expected at most 200 levels"),
]


@pytest.mark.parametrize(("text", "message"), TOML, ids=[text[:20] for text, _ in TOML])
def test_what_no_reader_of_toml_should_take(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_instance(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_numbers_at_the_edge_and_characters_of_two_halves_are_read() -> None:
    text = '{"a": [1.7976931348623157e308, 5e-324, %s, 1e300], "b": "\\ud83d\\ude00"}' % ("9" * 308)
    assert parse_json(text, "x") == json.loads(text)
    assert parse_json(json.dumps({"a": "1" * 5000}), "x") == {"a": "1" * 5000}
    deep = json.loads("[" * 199 + "]" * 199)
    assert parse_json(json.dumps(jsonable({"a": deep}, "x")), "x") == {"a": deep}


def test_a_long_key_does_not_make_a_long_search() -> None:
    key = "k" * 100_000
    text = json.dumps({key: list(range(100_000))})[:-2] + ", 1e999]}"
    with pytest.raises(InputError) as caught:
        parse_json(text, "x")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", ["zzz", "Infinity", "1", 1, None, ["nan"]])
def test_a_number_that_json_has_not_is_one_of_three(tmp_path: Path, value: object) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"stats": {"x": [{"$float": value}]}, "y": {"$float": "-inf"}}))
    document = read_document(path)
    assert document.plain("y") == float("-inf")
    with pytest.raises(InputError, match=r"x\.json: stats\.x: not a number of the form") as caught:
        document.table("stats").plain("x")
    assert caught.value.value == value


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "a\0b", "."])
def test_what_is_no_file_is_not_read(path: str) -> None:
    if path.startswith("/dev") and not os.path.exists(path):
        pytest.skip("this system has no such device")
    with pytest.raises(InputError, match=r"not a regular file|not a file path"):
        read_document(path)


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.json")
    with pytest.raises(InputError, match="not a regular file"):
        read_document(tmp_path / "p.json")


@pytest.mark.parametrize("text", [f'{{"kind": {LONG}}}', DEEP, f'{{"kind": "run", "x": {LONG}}}'])
def test_results_are_read_as_strictly(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text + '\n{"kind": "row"}\n')
    with pytest.raises(InputError, match="row 1"):
        read_results(path)
    assert main(["report", str(path), "-o", str(tmp_path / "x.html")]) == 1


def test_a_last_line_that_is_whole_is_refused_and_not_dropped(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for text in (f'{{"kind": "row", "n": {LONG}}}', "[" * 100_000):
        path.write_text(text + "\n")
        with pytest.raises(InputError, match="row 1"):
            read_results(path)
    path.write_text('{"kind": "row", "n": \n')
    assert read_results(path).dropped == path.stat().st_size


def test_a_manifest_is_read_as_strictly(tmp_path: Path) -> None:
    manifest = save_instance(small(), tmp_path / "w")
    document = json.loads(manifest.read_text())
    document["operations"][0]["near"] = 123456789
    manifest.write_text(json.dumps(document).replace("123456789", LONG))
    with pytest.raises(InputError, match=r"instance\.json: operations\[0\]\.near: a number out"):
        load_instance(tmp_path / "w")

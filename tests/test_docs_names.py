"""Files, modules and objects that the documentation names exist."""

import importlib
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from placement.cli.dispatch import GONE

ROOT = Path(__file__).resolve().parents[1]
TREES = ("placement", "formulations", "heuristics", "benchmarks")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
SOURCES = [
    path
    for tree in TREES
    for kind in ("py", "c", "h")
    for path in sorted((ROOT / tree).rglob(f"*.{kind}"))
]
DOTTED = re.compile(r"(?<![\w./-])((?:placement|formulations|heuristics|benchmarks)(?:\.\w+)+)")
FILE = re.compile(r"(?<![\w./*<{-])((?:\.\./)*(?:[\w-]+/)*[\w-]+\.(?:py|c|h))(?![\w*])")
EXTENSIONS = {"methods", "verbs", "explainers", "objectives", "databases", "feeds"}
"""Groups of entry points."""
PRESENT = defaultdict(list, {"setup.py": [ROOT / "setup.py"]})
"""Paths of the files of each name."""
for each in (
    path for tree in (*TREES, "tests", "docs", ".ci") for path in (ROOT / tree).rglob("*.*")
):
    PRESENT[each.name].append(each)


@cache
def exists(dotted):
    """Return whether a dotted name is a module, or an object of a module."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            if hasattr(thing, part):
                thing = getattr(thing, part)
            else:  # fields of dataclasses have no attribute of the class
                return part in getattr(thing, "__annotations__", {})
        return True
    return False


def is_entry_point_group(dotted):
    package, _, name = dotted.rpartition(".")
    return package == "placement" and name in EXTENSIONS


def dotted_names(text):
    for name in DOTTED.findall(text):
        if name.rsplit(".", 1)[1] not in {"csv", "json", "toml", "py", "md", "html", "png"}:
            yield name


def prose(path):
    """Return the docstrings and comments of a source file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return "\n".join(re.findall(r"/\*.*?\*/|//[^\n]*", text, re.DOTALL))
    comments = re.findall(r"(?:^|\s)#.*$", text, re.MULTILINE)
    return "\n".join([*re.findall(r'^ *r?"""(.*?)"""', text, re.M | re.S), *comments])


@cache
def leads_somewhere(name):
    """Return whether a file that prose names is there: its path, or the end of its path."""
    tail = Path(name.replace("../", "")).parts
    return tail[-1] in PRESENT and (
        len(tail) == 1 or any(path.parts[-len(tail) :] == tail for path in PRESENT[tail[-1]])
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_a_page_exist(page):
    text = page.read_text(encoding="utf-8")
    lost = {n for n in dotted_names(text) if not exists(n) and not is_entry_point_group(n)}
    assert not lost
    assert not {name for name in FILE.findall(text) if not leads_somewhere(name)}


def test_names_in_docstrings_and_comments_exist():
    lost = []
    for path in SOURCES:
        text = prose(path)
        wrong = {n for n in dotted_names(text) if not exists(n) and not is_entry_point_group(n)}
        wrong |= {name for name in FILE.findall(text) if not leads_somewhere(name)}
        lost += [f"{path.relative_to(ROOT)}: {name}" for name in wrong]
    assert not lost, "\n".join(lost)


def test_every_c_source_has_a_place_in_the_code_map():
    page = (ROOT / "docs/code-map.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w/]*csrc[\w/]*/)` \| (.+) \|$", page, re.M))
    for path in SOURCES:
        if path.suffix in (".c", ".h"):
            folder = f"{path.parent.relative_to(ROOT).as_posix()}/"
            assert f"`{path.name}`" in rows[folder], path


PRONOUN = re.compile(
    r"(?:what|whatever|who|whom|whoever|which|it|its|they|them|their|this|that|these|those"
    r"|such|so|the same|same|the others?|others|one of|each of them|all of (?:it|them))\b",
    re.IGNORECASE,
)


def test_docstrings_begin_with_a_noun_or_a_verb():
    """A reader who comes from a search has no earlier sentence that a pronoun could refer to."""
    lost = []
    for path in [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))]:
        if path.suffix == ".py":
            text = path.read_text(encoding="utf-8")
            docstrings = re.findall(r'(?:^|:\n) *r?"""\s*([^\n]*)', text)
            lost += [f"{path.relative_to(ROOT)}: {one}" for one in docstrings if PRONOUN.match(one)]
    assert not lost, "\n".join(lost)


def test_every_term_of_the_glossary_has_a_module():
    rows = re.findall(
        r"^\| (.+?) \| (.+?) \| (.+?) \|$", (ROOT / "docs/glossary.md").read_text(), re.M
    )
    rows = [row for row in rows if row[0] not in ("term", "---")]
    assert len(rows) > 60
    for term, _, where in rows:
        assert exists(where.strip("`")), term
    terms = [term for term, _, _ in rows]
    assert len(set(terms)) == len(terms)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_name_no_verb_that_is_gone(page):
    present = page.read_text(encoding="utf-8").partition("### Taken away")[0]
    assert not GONE.keys() & set(re.findall(r"`placement ([a-z]+)\b", present))

"""The documentation is true: doctests of all modules, links, names of methods."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import placement.methods

ROOT = Path(__file__).resolve().parents[1]


def modules():
    for package in ("placement", "formulations", "heuristics"):
        root = importlib.import_module(package)
        yield package
        for info in pkgutil.walk_packages(root.__path__, package + "."):
            if not info.name.endswith(("__main__", "_kernel", "_scenarios")):
                yield info.name


def test_doctests():
    tried = 0
    for name in modules():
        module = importlib.import_module(name)
        # doctest looks long for the lines of every docstring; most modules have no session.
        source = Path(module.__file__ or "")
        if source.suffix == ".py" and ">>>" in source.read_text(encoding="utf-8"):
            found = doctest.testmod(module)
            assert found.failed == 0, name
            tried += found.attempted
    assert tried > 20


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))],
                         ids=lambda page: page.name)  # fmt: skip
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path) if path else page
        assert there.exists(), f"{page.name} links to {target}"
        if anchor and there.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in slugs, f"{page.name} links to {target}"


def test_every_method_is_documented():
    pages = "".join(p.read_text(encoding="utf-8") for p in ROOT.glob("docs/*.md"))
    for name in placement.methods.registry.available():
        assert f"`{name}`" in pages, name


def test_the_python_of_the_readme_runs(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    assert "optimal, proven" in capsys.readouterr().out


ELSEWHERE = {"datasets.md"}  # tests/datasets/test_geo.py runs its blocks and looks at the results
# pages with sessions of the command line are run by tests/test_docs_console.py
LONG = {"contingency.md", "formulations.md"}  # half a minute each
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def pages_with_python():
    for page in sorted(ROOT.glob("docs/**/*.md")):
        text = page.read_text(encoding="utf-8")
        if page.name not in ELSEWHERE and "```python" in text and "```console" not in text:
            marks = [pytest.mark.slow] if page.name in LONG else []
            yield pytest.param(page, marks=marks, id=page.name)


@pytest.mark.parametrize("page", list(pages_with_python()))
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    """Every block of a page, in one namespace; a session prints what is shown below it."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        line = text[: found.start(1)].count("\n")
        code = found.group(1)
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
            outcome = doctest.DocTestRunner(optionflags=FLAGS).run(test, clear_globs=False)
            assert outcome.attempted
            assert outcome.failed == 0, f"{page.name}, line {line}"
            names.update(test.globs)
        else:
            exec(compile("\n" * line + code, str(page), "exec"), names)


def test_public_names_exist_and_are_documented():
    for name in placement.__all__:
        thing = getattr(placement, name)
        assert name == "__version__" or isinstance(thing, tuple) or thing.__doc__, name

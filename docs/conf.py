"""Sphinx: the pages of this folder, and the reference made of the docstrings (`make docs`)."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils.nodes import Element, document, reference
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # the checkout documents itself, installed or not

import placement  # noqa: E402  # after the path

project = "replica-placement"
author = "the authors of replica-placement"
version = release = placement.__version__

extensions = ["myst_parser", "sphinx.ext.apidoc", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"replica-placement {release}"
html_copy_source = False
html_show_copyright = False
toc_object_entries = False  # thousands of them in the menu of every page would take a minute

# --- the pages

myst_heading_anchors = 4  # links to headings work as they do on a code host

# --- the reference

apidoc_modules = [
    {
        "path": f"../{package}",
        "destination": f"api/{package}",
        "module_first": True,
        "separate_modules": False,
        "exclude_patterns": ["**/cli/**", "**/verb.py", "**/verb_options.py", "**/__main__.py"],
        "automodule_options": {"members", "show-inheritance"},
    }
    for package in ("placement", "formulations", "heuristics")
]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # a dataclass lists its fields once
nitpicky = True
nitpick_ignore_regex = [  # other packages, names that only a type checker has, private classes
    ("py:.*", r"(?!(placement|formulations|heuristics)\.).*"),
    ("py:(class|obj)", r".*\._\w+"),
]
# A name that only a type checker imports is found by search alone; the first of several will do.
suppress_warnings = ["ref.python"]
default_role = "code"  # docstrings set names in single backquotes


def keep_bars(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Let |R| be the number of elements of R, which reStructuredText takes for a substitution."""
    del app, what, name, thing, options
    literal = False
    for number, line in enumerate(lines):
        literal = line.startswith("    ") if literal and line.strip() else literal
        if not literal:
            lines[number] = "".join(
                part if part.startswith("``") else re.sub(r"(?<!\\)\|", r"\\|", part)
                for part in re.split(r"(``[^`]*``)", line)
            )
        literal = literal or line.rstrip().endswith("::")


def set_formulas(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Set what a docstring indents by four or more, a formula or an example, as it stands."""
    del app, what, name, thing, options
    before = ""
    result: list[str] = []
    for line in lines:
        opens = line.startswith("    ") and result and not result[-1].strip()
        if opens and before and not re.match(r"\s|[-*:.>]|\d+\.|.*::$", before):
            result += ["::", ""]
        result.append(line)
        if line.strip():
            before = line
    lines[:] = result


def skip_what_lives_elsewhere(
    app: Sphinx, what: str, name: str, thing: object, skip: bool, options: object
) -> bool | None:
    """Document a name where it is defined, not in every package that passes it on."""
    del options
    if what != "module" or skip:
        return None
    here = app.env.current_document.autodoc_module
    home = getattr(thing, "__module__", None)
    if isinstance(home, str) and callable(thing):
        return True if home != here else None
    # a constant has no home: it is passed on when a module below has the same object
    module = importlib.import_module(here)
    if not hasattr(module, "__path__"):
        return None
    return True if f"{name}:" not in source(here) and f"{name} =" not in source(here) else None


def source(module: str) -> str:
    """Return the text of a module."""
    return Path(str(importlib.import_module(module).__file__)).read_text(encoding="utf-8")


def say_whose(app: Sphinx, doctree: document) -> None:
    """Give names in signatures and docstrings the module that their own module has them from.

    Sphinx only searches for the name, and several modules have, say, a class Settings.
    """
    from sphinx import addnodes

    del app
    for node in doctree.findall(addnodes.pending_xref):
        home, first = node.get("py:module"), str(node.get("reftarget", "")).partition(".")
        if node.get("refdomain") != "py" or not home:
            continue
        thing = vars(importlib.import_module(home)).get(first[0])
        module, name = (getattr(thing, a, None) for a in ("__module__", "__qualname__"))
        if isinstance(module, str) and isinstance(name, str):
            node["reftarget"] = ".".join(filter(None, (module, name, first[2])))


def home_of(target: str) -> tuple[str, object] | None:
    """Return where a name that a package passes on is defined, and what it is."""
    package, _, name = target.rpartition(".")
    try:
        thing = getattr(importlib.import_module(package), name)
    except (ImportError, AttributeError, ValueError):
        return None
    if isinstance(home := getattr(thing, "__module__", None), str):
        return f"{home}.{getattr(thing, '__qualname__', name)}", thing
    below = [module for module in sorted(sys.modules) if module.startswith(package + ".")]
    found = [module for module in below if vars(sys.modules[module]).get(name) is thing]
    return next(((f"{m}.{name}", thing) for m in found if f"\n{name}" in source(m)), None)


def find_public_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element
) -> reference | None:
    """Lead ``placement.solve`` to where ``solve`` is documented."""
    target = str(node.get("reftarget", ""))
    home = home_of(target) if node.get("refdomain") == "py" else None
    if home is None or home[0] == target:
        return None
    name, thing = home
    kind = "class" if isinstance(thing, type) else "func" if callable(thing) else "data"
    domain = env.get_domain("py")
    found: Any = domain.resolve_xref(env, node["refdoc"], app.builder, kind, name, node, content)
    return found


def write_list_of_names(app: Sphinx) -> None:
    """Write api/index.rst: the names of ``import placement``, and the packages."""
    del app
    rows = []
    for name in sorted(placement.__all__, key=str.lower):
        thing = getattr(placement, name)
        if isinstance(thing, ModuleType):  # has a page of its own below
            continue
        home = getattr(thing, "__module__", None) or "placement.model.operations"
        role = "class" if isinstance(thing, type) else "func" if callable(thing) else "data"
        said = (thing.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
        if role == "data":
            said = "The operations of the model, as tuples of coefficients."
        rows += [f"   * - :py:{role}:`placement.{name} <{home}.{name}>`"]
        rows += ["     - " + said.replace("|", r"\|")]
    text = "\n".join(
        [
            "Reference",
            "=========",
            "",
            "What ``import placement`` offers; each name leads to its page.",
            "",
            ".. list-table::",
            "   :widths: 30 70",
            "",
            *rows,
            "",
            "All modules, made of their docstrings. ``placement`` holds the problem, the evaluator "
            "and the faces, ``formulations`` the exact methods, ``heuristics`` the fast ones.",
            "",
            ".. toctree::",
            "   :maxdepth: 1",
            "",
            "   placement/modules",
            "   formulations/modules",
            "   heuristics/modules",
            "",
        ]
    )
    page = HERE / "api" / "index.rst"
    page.parent.mkdir(exist_ok=True)
    if not page.is_file() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the above."""
    app.connect("builder-inited", write_list_of_names, priority=100)
    app.connect("autodoc-process-docstring", set_formulas, priority=100)  # before napoleon
    app.connect("autodoc-process-docstring", keep_bars, priority=900)  # after napoleon
    app.connect("autodoc-skip-member", skip_what_lives_elsewhere)
    app.connect("doctree-read", say_whose)
    app.connect("missing-reference", find_public_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

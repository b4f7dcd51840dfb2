"""The part of YAML that configuration files of Patroni need: nested tables of scalars.

Lists and texts of several lines are read over: no key that is needed stands inside one.
"""

from __future__ import annotations

import re

from placement.databases.systems.flow_values import FlowValue, parse_flow
from placement.errors import InputError

__all__ = ["YamlTable", "yaml_documents"]

YamlTable = dict[str, "FlowValue | YamlTable"]

_LINE = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#:-][^:#]*?|-[^\s:#][^:#]*?)\s*:(?:\s+(.*))?$"""
)
_COMMENT = re.compile(r"\s+#.*$")


def yaml_documents(text: str, source: str) -> list[YamlTable]:
    """Return the tables of a text, one for each document; empty documents are left out.

    Raises
    ------
    InputError
        With file and row, for a line that is not understood.
    """
    found = []
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if re.fullmatch(r"(---|\.\.\.)(\s.*)?", line.rstrip()):
            found.append(_table(lines, source))
            lines = []
        else:
            lines.append((number, line))
    found.append(_table(lines, source))
    return [table for table in found if table]


def _table(lines: list[tuple[int, str]], source: str) -> YamlTable:
    top: YamlTable = {}
    stack: list[tuple[int, YamlTable]] = [(-1, top)]
    inner = -1  # lines that are further in belong to a list or a text of several lines
    for number, line in lines:
        body = line.strip()
        if not body or body.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip(" "))
        if inner >= 0 and indent > inner:
            continue
        inner = -1
        if body == "-" or body.startswith("- "):
            inner = indent
            continue
        where = f"{source}, row {number}"
        found = _LINE.fullmatch(body)
        if found is None:
            raise InputError(
                "not understood", source=where, value=body, expected="key: value, as YAML has it"
            )
        key = _scalar(found[1], where)
        value = found[2] or ""
        if not value.startswith(("'", '"')):
            value = _COMMENT.sub("", f" {value}").strip()
        while stack[-1][0] >= indent:
            stack.pop()
        table = stack[-1][1]
        if key in table:
            raise InputError("given twice", source=where, field=key, expected="once")
        if value in ("", "~"):
            deeper: YamlTable = {}
            table[key] = deeper
            stack.append((indent, deeper))
        elif value[0] in "|>":
            inner = indent
            table[key] = ""
        elif value[0] in "&*!%@`":
            raise InputError("not understood", source=where, field=key, value=value)
        else:
            table[key] = _value(value, where, key)
    return top


def _scalar(text: str, source: str) -> str:
    if text[0] in "'\"":
        value = parse_flow(text, source, "key")
        return value if isinstance(value, str) else text
    return text.strip()


def _value(text: str, source: str, key: str) -> FlowValue:
    if text[0] in "'\"":
        quoted = re.match(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(#.*)?$""", text)
        if quoted is None:
            raise InputError("a quote that never ends", source=source, field=key, value=text)
        return parse_flow(quoted[1], source, key)
    if text[0] in "[{":
        return parse_flow(text, source, key)
    return text

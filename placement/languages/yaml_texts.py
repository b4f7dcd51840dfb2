"""YAML of databases, read by PyYAML: tables, lists and scalars, every scalar as text.

CockroachDB and TiDB take constraints as YAML inside a string, Patroni is configured in it.

>>> parse_flow('{"+region=a": 2, +region=b: [c]}', "zones.sql", "constraints")
{'+region=a': '2', '+region=b': ['c']}
"""

from __future__ import annotations

import yaml

from placement.errors import InputError

YamlValue = str | list["YamlValue"] | dict[str, "YamlValue"]
YamlTable = dict[str, YamlValue]

_NULLS = ("", "~", "null", "Null", "NULL")


def yaml_documents(text: str, source: str) -> list[YamlTable]:
    """Return the tables of a text, one for each document that is not empty.

    Keys without a value are left out; aliases and keys given twice are refused by their row.
    """
    found = []
    for value in _values(text, source):
        if isinstance(value, str | list):
            raise InputError("not a table of keys", source=source, value=value)
        found += [value] if value else []
    return found


def parse_flow(text: str, source: str, field: str) -> YamlValue:
    """Return the value of a text inside a statement; a key without a value is refused."""
    (value,) = _values(text, source, field)
    if value is None:
        raise InputError("no value", source=source, field=field, value=text)
    return value


def _values(text: str, source: str, field: str = "") -> list[YamlValue | None]:
    """Return the value of each document of a text; of the only one in a field."""
    load, one = yaml.BaseLoader, bool(field)
    try:
        nodes = [yaml.compose(text, load)] if one else yaml.compose_all(text, load)
        return [None if node is None else _Nodes(source, field).value(node) for node in nodes]
    except yaml.YAMLError as error:
        raise _refused(error, source, text, field) from None
    except RecursionError:
        raise InputError("nested too deeply", source=source, field=field) from None


def _refused(error: yaml.YAMLError, source: str, text: str, field: str) -> InputError:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or "characters that YAML does not take"
    if field:
        at = "" if mark is None else f" (at character {mark.index + 1})"
        return InputError(f"not YAML: {what}{at}", source=source, field=field, value=text)
    row = source if mark is None else f"{source}, row {mark.line + 1}"
    return InputError(f"not YAML: {what}", source=row, expected="key: value, as YAML has it")


class _Nodes:
    """Values of nodes. Each node is read once: an alias could stand for endless text."""

    def __init__(self, source: str, field: str = "") -> None:
        self.source, self.field = source, field
        self._seen: set[int] = set()

    def _refuse(self, message: str, node: yaml.Node, value: object, expected: str) -> InputError:
        row = self.source if self.field else f"{self.source}, row {node.start_mark.line + 1}"
        return InputError(
            message, source=row, field=self.field or "key", value=value, expected=expected
        )

    def value(self, node: yaml.Node) -> YamlValue | None:
        """Return the value of a node; None for a scalar without text."""
        if id(node) in self._seen:
            raise self._refuse("an alias", node, "*", "the value itself, written out")
        self._seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            return None if node.style is None and node.value in _NULLS else str(node.value)
        if isinstance(node, yaml.SequenceNode):
            items = [self.value(item) for item in node.value]
            return ["" if item is None else item for item in items]
        found: YamlTable = {}
        for key_node, value_node in node.value:
            key = self.value(key_node)
            if not isinstance(key, str) or key == "<<":
                raise self._refuse("not a key", key_node, key, "text")
            if key in found:
                raise self._refuse(f"the key {key!r} twice", key_node, key, "once")
            value = self.value(value_node)
            if value is None and self.field:
                hint = "a value, behind a colon and a blank"
                raise self._refuse(f"no value behind {key!r}", value_node, key, hint)
            if value is not None:
                found[key] = value
        return found

r"""Languages of configurations as text: SQL and YAML, quoted and taken apart.

SQL has two dialects: the standard (a quote is doubled, a backslash is a letter) and that of MySQL
and TiDB (names in backticks, a backslash escapes).

>>> print(sql_string("it's"), sql_name('a"b'), mysql_string("a\\' OR 1"), mysql_name("a`b"))
'it''s' "a""b" 'a\\'' OR 1' `a``b`

YAML is read by PyYAML, every scalar as text. CockroachDB and TiDB take constraints as YAML inside a
string, Patroni is configured in it.

>>> parse_flow('{"+region=a": 2, +region=b: [c]}', "zones.sql", "constraints")
{'+region=a': '2', '+region=b': ['c']}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import yaml

from placement.errors import InputError, require
from placement.text.text_tables import escape

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}
_NUL = "\0"


def _no_nul(value: str) -> str:
    require(_NUL not in value, "name", "a NUL character", value, "text without NUL characters")
    return value


def sql_string(value: str) -> str:
    """Return a string literal of standard SQL."""
    return "'" + _no_nul(value).replace("'", "''") + "'"


def sql_name(value: str) -> str:
    """Return a quoted identifier of standard SQL."""
    return '"' + _no_nul(value).replace('"', '""') + '"'


def mysql_string(value: str) -> str:
    """Return a string literal of MySQL or TiDB: a backslash escapes there, so it is doubled too."""
    return "'" + _no_nul(value).replace("\\", "\\\\").replace("'", "''") + "'"


def mysql_name(value: str) -> str:
    """Return a quoted identifier of MySQL or TiDB."""
    return "`" + _no_nul(value).replace("`", "``") + "`"


def comment(text: str) -> str:
    """Return a line of comment; control characters of the text become escapes, so it stays one."""
    return "-- " + escape(text)


@dataclass(frozen=True, slots=True)
class SqlToken:
    """Part of a statement."""

    #: "word" (keyword, bare name or number), "name" (quoted identifier), "string" or "mark"
    kind: Literal["word", "name", "string", "mark"]
    value: str  #: the text, without quotes and escapes
    line: int  #: line of the file, from 1


def tokens(text: str, source: str, *, backslash: bool = False) -> Iterator[SqlToken]:
    """Yield the tokens of statements, comments left out; refuse what never ends.

    A `backslash` in a string escapes in MySQL and TiDB.
    """
    place, line, end = 0, 1, len(text)
    while place < end:
        here = text[place]
        start = place
        if here.isspace():
            place += 1
        elif text.startswith("--", place) or (backslash and here == "#"):
            stop = text.find("\n", place)
            place = end if stop < 0 else stop
        elif text.startswith("/*", place):
            stop = text.find("*/", place + 2)
            if stop < 0:
                raise InputError("a comment that never ends", source=f"{source}, row {line}")
            inner = text[place + 2 : stop]
            place = stop + 2
            if backslash and inner[:3] == "T![":  # /*T![placement] … */ holds a statement of TiDB
                yield from tokens(inner.partition("]")[2], source, backslash=True)
        elif here in "'\"`":
            value, place = _quoted(text, place, source, line, backslash and here != "`")
            string = here == "'" or (here == '"' and backslash)
            yield SqlToken("string" if string else "name", value, line)
        elif here in "eE" and text.startswith("'", place + 1) and not backslash:
            value, place = _quoted(text, place + 1, source, line, True)
            yield SqlToken("string", value, line)
        elif here.isalnum() or here == "_":
            while place < end and (text[place].isalnum() or text[place] in "_$"):
                place += 1
            yield SqlToken("word", text[start:place], line)
        else:
            place += 1
            yield SqlToken("mark", here, line)
        line += text.count("\n", start, place)


def _quoted(text: str, start: int, source: str, line: int, escapes: bool) -> tuple[str, int]:
    """Return the value of a quoted text, and the place behind it."""
    quote, place, value = text[start], start + 1, []
    while place < len(text):
        here = text[place]
        if here == quote:
            if text.startswith(quote, place + 1):
                value.append(quote)
                place += 2
                continue
            return "".join(value), place + 1
        if here == "\\" and escapes and place + 1 < len(text):
            after = text[place + 1]
            value.append(_ESCAPES.get(after, after))
            place += 2
            continue
        value.append(here)
        place += 1
    raise InputError("a quote that never ends", source=f"{source}, row {line}")


class TokenStream:
    """Tokens, read one by one."""

    def __init__(self, text: str, source: str, *, backslash: bool = False) -> None:
        self.source = source
        self._quotes = "backticks" if backslash else "double quotes"
        self._tokens = list(tokens(text, source, backslash=backslash))
        self._place = 0

    @property
    def next(self) -> SqlToken | None:
        """Return the next token and leave the place unchanged; None at the end."""
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def where(self) -> str:
        """Return file and row of the next token, for messages."""
        token = self.next or (self._tokens[-1] if self._tokens else None)
        return self.source if token is None else f"{self.source}, row {token.line}"

    def refuse(
        self, message: str, field: str, expected: str = "", value: object = None
    ) -> InputError:
        """Return the error for what stands here; without a value, the field tells it."""
        source = self.where()
        if value is None:
            return InputError(message, source=source, field=field, expected=expected)
        return InputError(message, source=source, field=field, value=value, expected=expected)

    def take(self, expected: str) -> SqlToken:
        """Return the next token and go on; refuse the end."""
        token = self.next
        if token is None:
            raise InputError("the text ends here", source=self.where(), expected=expected)
        self._place += 1
        return token

    def accept(self, *words: str) -> bool:
        """Take keywords or marks if they all come next, in any case of letters."""
        ahead = self._tokens[self._place : self._place + len(words)]
        same = len(ahead) == len(words) and all(
            token.kind in ("word", "mark") and token.value.upper() == word
            for token, word in zip(ahead, words, strict=True)
        )
        if same:
            self._place += len(words)
        return same

    def expect(self, *words: str) -> None:
        """Take keywords or marks; refuse anything else."""
        if not self.accept(*words):
            token = self.next
            raise InputError(
                "unexpected text",
                source=self.where(),
                value="the end" if token is None else token.value,
                expected=" ".join(words),
            )

    def name(self, what: str) -> str:
        """Take a name, quoted or bare."""
        token = self.take(what)
        if token.kind not in ("word", "name"):
            raise InputError(
                "unexpected text", source=self.where(), value=token.value, expected=what
            )
        after = self.next
        if (
            token.kind == "word"
            and after is not None
            and (after.kind, after.value) == ("mark", "-")
        ):
            raise InputError(
                "a name with '-' that is not in quotes",
                source=self.where(),
                value=f"{token.value}-",
                expected=f"{what} in {self._quotes}",
            )
        return token.value

    def folded_name(self, what: str) -> str:
        """Take a name where bare names are folded to lower case."""
        token = self.next
        name = self.name(what)
        return name if token is not None and token.kind == "name" else name.lower()

    def skip_statement(self) -> None:
        """Go behind the next semicolon."""
        while self.next is not None:
            token = self.take("a semicolon")
            if (token.kind, token.value) == ("mark", ";"):
                return


# --- YAML ------------------------------------------------------------------------------------

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

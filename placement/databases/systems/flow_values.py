"""Values in the flow style of YAML, which holds JSON: lists, tables and scalars.

CockroachDB and TiDB take constraints in this form inside a string. Only what constraints need is
read: no tags, anchors or multi-line scalars. All scalars come back as text.
"""

from __future__ import annotations

import json

from placement.errors import InputError

__all__ = ["FlowValue", "parse_flow"]

FlowValue = str | list["FlowValue"] | dict[str, "FlowValue"]

_DEPTH = 20


def parse_flow(text: str, source: str, field: str) -> FlowValue:
    """Return the value of a text.

    Raises
    ------
    InputError
        Naming the field, for anything that is no such value.

    Examples
    --------
    >>> parse_flow('{"+region=a": 2, +region=b: 1}', "zones.sql", "constraints")
    {'+region=a': '2', '+region=b': '1'}
    >>> parse_flow("[[+region=a], [+region=b]]", "zones.sql", "lease_preferences")
    [['+region=a'], ['+region=b']]
    """
    reader = _FlowReader(text, source, field)
    value = reader.value(0)
    reader.blanks()
    if reader.place < len(text):
        raise reader.refuse("text behind the value")
    return value


class _FlowReader:
    def __init__(self, text: str, source: str, field: str) -> None:
        self.text, self.source, self.field = text, source, field
        self.place = 0

    def refuse(self, message: str) -> InputError:
        return InputError(
            f"{message} (at character {self.place + 1})",
            source=self.source,
            field=self.field,
            value=self.text,
            expected="a list [a, b] or a table {a: 1, b: 2}",
        )

    def blanks(self) -> None:
        while self.place < len(self.text) and self.text[self.place].isspace():
            self.place += 1

    def next(self) -> str:
        self.blanks()
        return self.text[self.place] if self.place < len(self.text) else ""

    def value(self, depth: int) -> FlowValue:
        if depth > _DEPTH:
            raise self.refuse("nested too deeply")
        if self.next() == "[":
            return self._list(depth)
        if self.next() == "{":
            return self._table(depth)
        return self._scalar()

    def _list(self, depth: int) -> list[FlowValue]:
        self.place += 1
        found: list[FlowValue] = []
        while self.next() != "]":
            found.append(self.value(depth + 1))
            if self.next() == ",":
                self.place += 1
            elif self.next() != "]":
                raise self.refuse("no comma between values" if self.next() else "no ]")
        self.place += 1
        return found

    def _table(self, depth: int) -> dict[str, FlowValue]:
        self.place += 1
        found: dict[str, FlowValue] = {}
        while self.next() != "}":
            key = self._scalar()
            if self.next() != ":":
                raise self.refuse("no colon behind a key")
            self.place += 1
            if key in found:
                raise self.refuse(f"the key {key!r} twice")
            found[key] = self.value(depth + 1)
            if self.next() == ",":
                self.place += 1
            elif self.next() != "}":
                raise self.refuse("no comma between entries" if self.next() else "no }")
        self.place += 1
        return found

    def _scalar(self) -> str:
        quote = self.next()
        if quote == '"':
            try:
                value, length = json.JSONDecoder().raw_decode(self.text[self.place :])
            except json.JSONDecodeError:
                raise self.refuse("a bad string") from None
            self.place += length
            return str(value)
        if quote == "'":
            return self._single()
        start = self.place
        while self.place < len(self.text):
            here = self.text[self.place]
            # a colon ends a key only before a blank: "+zone:a" is one word
            after = self.text[self.place + 1 : self.place + 2]
            if here in ",[]{}" or (here == ":" and not after.strip()):
                break
            self.place += 1
        value = self.text[start : self.place].strip()
        if not value:
            raise self.refuse("no value")
        return value

    def _single(self) -> str:
        place, found = self.place + 1, []
        while True:
            stop = self.text.find("'", place)
            if stop < 0:
                raise self.refuse("a quote that never ends")
            found.append(self.text[place:stop])
            if not self.text.startswith("'", stop + 1):
                self.place = stop + 1
                return "'".join(found)
            place = stop + 2

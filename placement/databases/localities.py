"""Names of places: names of a database, and names of the instance.

A database speaks of regions, data centres or servers; the instance has sites. A table says which
is which: the columns ``locality`` and ``site``, a row each, and further columns that a system needs
(``host``, ``zone``, ``cloud``, ``nodes``). Where the database names servers, a site may have
several rows, one per server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from placement.errors import InputError
from placement.support.checks import text

__all__ = ["Localities", "Locality", "load_localities", "name_refusal"]

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Locality:
    """A place by its name in the database.

    Attributes
    ----------
    name
        Region, data centre or server, as the database calls it.
    site
        Name of the site of the instance.
    facts
        Further columns of the table, by name.
    """

    name: str
    site: str
    facts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        text(self.name, "locality")
        text(self.site, "site")
        object.__setattr__(self, "facts", MappingProxyType(dict(self.facts)))


@dataclass(frozen=True, slots=True)
class Localities:
    """Names in the database, and the sites that they stand for.

    Parameters
    ----------
    sites
        All sites of the instance. A site without a row stands under its own name.
    rows
        The table, in its order.

    Raises
    ------
    InputError
        For a name given twice, and for a site that the instance does not have.
    """

    sites: tuple[str, ...]
    rows: tuple[Locality, ...] = ()

    def __post_init__(self) -> None:
        known, seen = set(self.sites), set[str]()
        for row in self.rows:
            if row.site not in known:
                raise InputError(
                    "unknown site", field="site", value=row.site, expected="a site of the instance"
                )
            if row.name in seen:
                raise InputError(
                    "given twice", field="locality", value=row.name, expected="one row for a name"
                )
            seen.add(row.name)

    @classmethod
    def plain(cls, sites: Sequence[str]) -> Localities:
        """Return the names where the database calls every place as the instance does."""
        return cls(tuple(sites))

    def site_of(self, name: str, source: str, place: str) -> str:
        """Return the site that a name of the database stands for.

        Raises
        ------
        InputError
            Naming file (`source`) and field (`place`), for a name without a site.
        """
        for row in self.rows:
            if row.name == name:
                return row.site
        if name in self.sites and not any(row.site == name for row in self.rows):
            return name
        import difflib

        known = [*(row.name for row in self.rows), *self.sites]
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise InputError(
            "no site stands for this locality",
            source=source,
            field=place,
            value=name,
            expected=f"a site, or a name of the table of localities{hint}",
        )

    def of_site(self, site: str) -> tuple[Locality, ...]:
        """Return the rows of a site; without a row, the site under its own name."""
        found = tuple(row for row in self.rows if row.site == site)
        return found or (Locality(site, site),)

    def only(self, site: str) -> Locality:
        """Return the one name of a site.

        Raises
        ------
        InputError
            When the table has several: a system that places by region needs one.
        """
        found = self.of_site(site)
        if len(found) > 1:
            raise InputError(
                f"the site {site!r} has {len(found)} localities",
                field="locality",
                value=[row.name for row in found],
                expected="one, because this system places replicas by locality and number",
            )
        return found[0]

    def nodes(self, site: str) -> int | None:
        """Return how many nodes a site has, from the column ``nodes``; None where not given."""
        given = [row for row in self.rows if row.site == site and row.facts.get("nodes")]
        if not given:
            return None
        total = 0
        for row in given:
            count = row.facts["nodes"]
            if not count.isdecimal() or len(count) > 9:
                raise InputError(
                    "not a number of nodes", field="nodes", value=count, expected="a whole number"
                )
            total += int(count)
        return total


def name_refusal(name: str, system: str) -> str | None:
    """Return why a name cannot stand in a constraint of a system, or None.

    Constraints of most systems are text inside text, with separators but no escape. A name is used
    only if it has nothing in it that any of them takes for a separator.
    """
    if _NAME.fullmatch(name):
        return None
    return (
        f"{system} has no escape for the locality {name!r} in a constraint; map it (--localities) "
        "to letters, digits, '_', '.' and '-', at most 63 of them, first and last a letter or digit"
    )


def load_localities(path: str | os.PathLike[str] | None, sites: Sequence[str]) -> Localities:
    """Read the table of localities: CSV, TSV or Parquet with a header, or a JSON object of names.

    A JSON object is ``{"name in the database": "site", …}``.

    Raises
    ------
    InputError
        With file and row, for a table without the columns ``locality`` and ``site``, and as
        :class:`Localities` does.
    """
    if path is None:
        return Localities.plain(sites)
    from placement.io.formats.document import read_document
    from placement.io.formats.tables import is_blank, name_cell, read_table

    source = os.fspath(path)
    rows = []
    if Path(path).suffix.lower() == ".json":
        document = read_document(path)
        rows = [Locality(name, document.text(name)) for name in document.values]
    else:
        table = read_table(path)
        name, site = table.column("locality"), table.column("site")
        others = [i for i in range(len(table.columns)) if i not in (name, site)]
        for number, cells in zip(table.numbers, table.rows, strict=True):
            where = f"{source}, row {number}"
            rows.append(
                Locality(
                    name_cell(cells[name], where, "locality"),
                    name_cell(cells[site], where, "site"),
                    {table.columns[i]: str(cells[i]) for i in others if not is_blank(cells[i])},
                )
            )
    try:
        return Localities(tuple(sites), tuple(rows))
    except InputError as error:
        raise error.at(source) from None

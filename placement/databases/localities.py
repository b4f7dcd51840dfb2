"""Names of places: names of a database, and names of the instance.

A database speaks of regions, data centres or servers; the instance has sites. A table says which
is which: the columns ``locality`` and ``site``, a row each, and further columns that a system needs
(``host``, ``zone``, ``cloud``, ``nodes``). Where the database names servers, a site may have
several rows, one per server.
"""

from __future__ import annotations

import csv
import difflib
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from placement.errors import InputError, require
from placement.support.checks import text

_MOST_NAMES = 10

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

    @property
    def place(self) -> tuple[str, str, str]:
        """Return name, cloud and zone; the last two are empty where the table has none."""
        return self.name, self.facts.get("cloud", ""), self.facts.get("zone", "")


@dataclass(frozen=True, slots=True)
class Localities:
    """Names in the database, and the sites that they stand for.

    Parameters
    ----------
    sites
        All sites of the instance. A site without a row stands under its own name.
    rows
        The table, in its order.
    derived
        Whether the rows are names that a cloud provider has for its regions, in the place of a
        table: then a site may stand under its own name too.

    Raises
    ------
    InputError
        For a name given twice, and for a site that the instance does not have.
    """

    sites: tuple[str, ...]
    rows: tuple[Locality, ...] = ()
    derived: bool = False

    def __post_init__(self) -> None:
        known, seen = set(self.sites), set[tuple[str, ...]]()
        for row in self.rows:
            require(row.site in known, "site", "unknown site", row.site, "a site of the instance")
            expected = "one row for a name, or rows with different zones"
            require(row.place not in seen, "locality", "given twice", row.name, expected)
            seen.add(row.place)

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
        found = {row.site for row in self.rows if row.name == name}
        if len(found) == 1:
            return found.pop()
        others = [row.name for row in self.rows if row.site == name]
        if name in self.sites and not found and (self.derived or not others):
            return name
        message, expected = "no site stands for", "a site, or a name of the table of localities"
        known = [*(row.name for row in self.rows), *self.sites]
        close = [one for one in difflib.get_close_matches(name, known, n=2) if one != name]
        if found:
            message = "several sites stand for"
            expected = f"one site for the name: the table has {', '.join(sorted(found))} by zone"
        elif others:
            expected += f", where the site {name!r} is called {', '.join(map(repr, others[:3]))}"
        elif close:
            expected += f" (did you mean {close[0]!r}?)"
        message += " this locality"
        raise InputError(message, source=source, field=place, value=name, expected=expected)

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
        words = f"the site {site!r} has {len(found)} localities"
        expected = "one, because this system places replicas by locality and number"
        require(len(found) <= 1, "locality", words, [row.name for row in found], expected)
        return found[0]

    def nodes(self, site: str) -> int | None:
        """Return how many nodes a site has, from the column ``nodes``; None where not given."""
        rows = (row for row in self.rows if row.site == site)
        given = [row.facts["nodes"] for row in rows if row.facts.get("nodes")]
        for count in given:
            if not count.isdecimal() or len(count) > 9:
                raise InputError(
                    "not a number of nodes", field="nodes", value=count, expected="a whole number"
                )
        return sum(map(int, given)) if given else None


def is_plain(name: str) -> bool:
    """Return whether a name has nothing in it that a constraint takes for a separator."""
    return _NAME.fullmatch(name) is not None


def name_refusals(
    localities: Localities, sites: Iterable[str], system: str, *more: str
) -> list[str]:
    """Return why names cannot stand in constraints of a system: one sentence, or none.

    Constraints of most systems are text inside text, with separators but no escape. A name is used
    only if it has nothing in it that any of them takes for a separator. `more` are further names.
    """
    names = [localities.only(site).name for site in sites]
    bad = [name for name in (*names, *more) if not is_plain(name)]
    if not bad:
        return []
    listed = ", ".join(map(repr, bad[:_MOST_NAMES])) + ", …" * (len(bad) > _MOST_NAMES)
    return [
        f"{system} has no escape for {listed} in a constraint: give the names that the database "
        "has for these sites with --localities FILE (export writes a template where there is no "
        "such file), of letters, digits, '_', '.' and '-', at most 63 of them, first and last a "
        "letter or digit"
    ]


def plain_names(sites: Sequence[str]) -> tuple[Locality, ...]:
    """Return a name for each site with nothing in it that a constraint takes for a separator."""
    rows: dict[str, Locality] = {}
    for number, site in enumerate(sites, 1):
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", site).strip("-_.").lower()[:60]
        name = site if is_plain(site) else plain or f"region-{number}"
        while name in rows:
            name += "x"
        rows[name] = Locality(name, site)
    return tuple(rows.values())


def localities_template(sites: Sequence[str]) -> str:
    """Return a table of localities as CSV, to be corrected: a row for each site."""
    rows = [["locality", "site"], *([row.name, row.site] for row in plain_names(sites))]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def load_localities(path: str | os.PathLike[str] | None, sites: Sequence[str]) -> Localities:
    """Read the table of localities: CSV, TSV or Parquet with a header, or a JSON object of names.

    A JSON object is ``{"name in the database": "site", …}``. Without a table, a site that is a
    region of a cloud is called as the programs of its provider call it. Errors name file and row.
    """
    if path is None:
        from placement.datasets.cloud_regions import programmatic_names

        known = programmatic_names().items()
        rows = [Locality(name, site) for site, name in known if site in {*sites}]
        return Localities(tuple(sites), tuple(rows), derived=True)
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

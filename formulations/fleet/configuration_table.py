"""All configurations of the databases of a fleet, priced by products of arrays.

Where the databases have the same sites, RTTs and rules they have the same configurations k, with
leader ℓ, voters V and replicas R. Eq. 1 and the price of the use of the shared limits are both
linear in what differs between the databases:

    Σ_c near[c] · d(c, R)  +  Σ_c relay[c] · d(near(c, R), ℓ)  +  quorum · q_ℓ(V)
        +  Σ_{r ∈ R} each[r]  +  led[ℓ]  +  (|R| − 1) · shipped[ℓ]

where led holds direct demand too. So the objective plus price of all configurations of many
databases is one product, (databases × terms) by (terms × configurations).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from formulations.fleet import tuning
from placement.evaluation.score import quorum_latency
from placement.evaluation.voter_choice import best_voters_of_each
from placement.fleet.fleet_plan import SharedRows, own_prices
from placement.model.configuration import Configuration
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray

_BLOCK = 50  # databases in one product, which then fits into the caches


@dataclass(frozen=True, eq=False)
class ConfigurationTable:
    """Every leader and replica set that the rules of a problem allow, with the best voters."""

    #: by leader and replicas, in lexicographic order of the replicas
    configurations: tuple[Configuration, ...]
    served: FloatArray  #: RTTs of the terms of demand, shape (2 · clients + 1, configurations)
    sites: FloatArray  #: weights of each, led and shipped, shape (3 · sites, configurations)

    @classmethod
    def of(cls, problem: Problem) -> ConfigurationTable | None:
        """Return the table of a problem; None where it has too many, or no such terms."""
        rules, demand = problem.rules, problem.demand
        sizes = range(rules.replicas_min, rules.replicas_max + 1)
        free = int(rules.may_hold.sum())
        most = sum(size * math.comb(free, size) for size in sizes)
        if most > tuning.TABLE_CONFIGURATIONS or demand.scenarios > 1 or problem.limits:
            return None
        sites = np.flatnonzero(rules.may_hold).tolist()
        pinned = set(np.flatnonzero(rules.must_hold).tolist())
        pairs: list[tuple[int, tuple[int, ...]]] = []
        for size in sizes:
            sets = [one for one in combinations(sites, size) if pinned <= set(one)]
            good = rules.obeyed("replicas", np.array(sets, dtype=np.intp).reshape(-1, size))
            pairs += [(led, one) for one, ok in zip(sets, good, strict=True) if ok for led in one]
        led, sets = [one for one, _ in pairs], [one for _, one in pairs]
        voters = best_voters_of_each(demand, rules, led, sets)
        found = [
            Configuration.of(leader, chosen, replicas)
            for (leader, replicas), chosen in zip(pairs, voters, strict=True)
            if chosen is not None
        ]
        rtt, between = demand.client_rtt[0], demand.site_rtt[0]
        leaders = np.array([one.leader for one in found], dtype=np.intp)
        held = np.zeros((len(found), len(between)), dtype=np.bool_)
        for row, one in zip(held, found, strict=True):
            row[list(one.replicas)] = True
        served = np.empty((2 * len(rtt) + 1, len(found)))
        for c, row in enumerate(rtt):
            near = np.where(held, row, np.inf).argmin(axis=1)
            served[c], served[len(rtt) + c] = row[near], between[near, leaders]
        waits = np.array([one.voters for one in found]).reshape(-1, rules.voters)
        served[-1] = quorum_latency(between, leaders, waits, rules.quorum)
        leads = np.eye(len(between))[leaders]
        shipped = leads * (held.sum(axis=1, keepdims=True) - 1)
        return cls(tuple(found), served, np.hstack([held, leads, shipped]).T.copy())

    def outside(self, hold: BoolArray, lead: BoolArray) -> BoolArray:
        """Return the configurations with a replica or the leader where none can be."""
        none = np.flatnonzero(~np.concatenate([hold, lead]))
        return np.asarray(self.sites[none].any(axis=0))


class PricedRow(NamedTuple):
    """Objective plus price of each configuration in the table of a database."""

    table: ConfigurationTable
    priced: FloatArray

    @property
    def least(self) -> float:
        """Lower bound on the least; no term is below 0, so its rounding errors are a part of it."""
        terms = len(self.table.served) + len(self.table.sites) + 4
        return float(self.priced.min()) * (1 - 2 * terms * float(np.finfo(np.float64).eps))

    def best(self, *able: BoolArray) -> Configuration | None:
        """Return the cheapest among sites that can hold a replica, and that can lead.

        Of several with an equal price, it is the first of the table.
        """
        priced = np.where(self.table.outside(*able), np.inf, self.priced) if able else self.priced
        best = int(priced.argmin())
        return self.table.configurations[best] if np.isfinite(priced[best]) else None


class FleetTables:
    """Tables of the databases of a fleet, one for all that have the same."""

    def __init__(self, rows: SharedRows) -> None:
        self.rows = rows
        known: dict[object, ConfigurationTable | None] = {}
        self._tables: list[ConfigurationTable | None] = []
        for member in rows.fleet.members:
            problem = member.problem
            key = _content((problem.demand.client_rtt, problem.demand.site_rtt, problem.rules))
            if key not in known:
                known[key] = ConfigurationTable.of(problem)
            self._tables.append(known[key])
        self._kept: dict[int, FloatArray] = {}

    def by_table(self, numbers: Sequence[int]) -> dict[ConfigurationTable | None, list[int]]:
        """Return some databases by their tables; None: they have too many configurations."""
        found: dict[ConfigurationTable | None, list[int]] = {}
        for number in numbers:
            found.setdefault(self._tables[number], []).append(number)
        return found

    def each(
        self, numbers: Sequence[int], prices: FloatArray
    ) -> Iterator[tuple[int, PricedRow | None]]:
        """Yield each of some databases with the row of its table; None: it has no table."""
        units: dict[ConfigurationTable, FloatArray] = {}
        for first in range(0, len(numbers), _BLOCK):
            block, rows = numbers[first : first + _BLOCK], dict[int, PricedRow]()
            for table, mine in self.by_table(block).items():
                if table is not None:
                    if table not in units:
                        units[table] = self.unit_prices(table, prices)
                    priced = self.priced(table, mine, prices, units[table])
                    rows |= {n: PricedRow(table, row) for n, row in zip(mine, priced, strict=True)}
            yield from ((number, rows.get(number)) for number in block)

    def costs(self, table: ConfigurationTable, numbers: Sequence[int]) -> list[FloatArray]:
        """Return the objective of each configuration, an array for each of some databases.

        It is +∞ where a configuration does not fit even alone.
        """
        fresh = [number for number in numbers if number not in self._kept]
        found = dict(zip(fresh, self._objectives(table, fresh), strict=True)) if fresh else {}
        if (len(self._kept) + len(found)) * len(table.configurations) <= tuning.KEPT_COSTS:
            self._kept |= found
        return [found[n] if n in found else self._kept[n] for n in numbers]

    def _objectives(self, table: ConfigurationTable, numbers: Sequence[int]) -> FloatArray:
        members = [self.rows.fleet.members[number] for number in numbers]
        demands = [member.problem.demand for member in members]
        terms = np.array([np.concatenate([d.near[0], d.relay[0], d.quorum]) for d in demands])
        direct = np.array([d.direct[0] @ d.client_rtt[0] for d in demands])
        sites = direct.shape[1]
        found = terms @ table.served + direct @ table.sites[sites : 2 * sites]
        for row, member in zip(found, members, strict=True):
            own = own_prices(member.problem)
            if own is not None:
                row += ((own @ table.sites[:sites]) * table.sites[sites : 2 * sites]).sum(axis=0)
            row[table.outside(*self.rows.fitting_sites(member))] = np.inf
        return np.asarray(found)

    def unit_prices(self, table: ConfigurationTable, prices: FloatArray) -> FloatArray:
        """Return the price of a unit stored, led and shipped, shape (3, configurations)."""
        units = self.rows.unit_prices(prices)
        terms = table.sites.reshape(*units.shape, -1)
        return np.array([unit @ term for unit, term in zip(units, terms, strict=True)])

    def priced(
        self,
        table: ConfigurationTable,
        numbers: Sequence[int],
        prices: FloatArray,
        units: FloatArray,
    ) -> FloatArray:
        """Return objective plus price of databases, shape (databases, configurations)."""
        members = [self.rows.fleet.members[number] for number in numbers]
        amounts, added = self.rows.amounts(members, prices)
        found = amounts @ units
        if added.any():
            found += added @ table.sites[: added.shape[1]]
        for row, cost in zip(found, self.costs(table, numbers), strict=True):
            row += cost
        return np.asarray(found)


def _content(value: object) -> object:
    """Return the content of arrays and rules as something that can be compared."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, tuple):
        return tuple(map(_content, value))
    if dataclasses.is_dataclass(value):
        return tuple(_content(getattr(value, field.name)) for field in dataclasses.fields(value))
    return value

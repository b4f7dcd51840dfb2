"""Problem: an instance and the constraints a plan must obey."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from placement.errors import InputError, nearest
from placement.evaluation.cost_model import CostModel, LinearCost, cost_model
from placement.evaluation.moves import CurrentSites, LinearLimit, MoveCosts, Moves
from placement.evaluation.objective import MEAN_LATENCY, MeanLatency
from placement.evaluation.waits.wait_checks import check_waits
from placement.measures.measure import Limit, Measure
from placement.model.configuration import Configuration
from placement.model.constraints import (
    Rules,
    SiteRule,
    allowed_sites,
    compile_rules,
    is_count,
    majority,
    voters_of_all,
)
from placement.model.demand import Demand, aggregate, decay_weights
from placement.model.instance import Instance, instance_facts
from placement.model.operations import Operation
from placement.model.protocols import Protocol, operations_under
from placement.support.checks import (
    LARGEST,
    FloatArray,
    elements,
    instance_of,
    number,
    plain_number,
    text,
)
from placement.support.entry_points import entry_points

_NOTHING: tuple[Any, ...] = ()

ALL_REPLICAS = "replicas"
"""`voters` of a problem in which every replica votes."""


@cache
def _fields_of_measures() -> Callable[..., Mapping[str, object]]:
    """Return the function that turns what is asked of measures into fields; read once."""
    found: Callable[..., Mapping[str, object]] = entry_points("placement.questions")[
        "measures"
    ].load()
    return found


@cache
def _arguments(function: Callable[..., None]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


@dataclass(frozen=True, eq=False)
class Problem:
    """A question about an instance.

    How much is free decides the tier of Sharov et al.: with `replicas` and `voters` given by name
    only the leader is chosen (tier 1); with `replicas` by name and a number of voters, the roles
    (tier 2); with numbers, everything (tier 3).

    Parameters
    ----------
    instance
        Sites, clients, RTTs and demand.
    replicas
        |R|: a number, an inclusive range ``(3, 7)`` or ``range(3, 8)``, or the sites by name.
    voters
        |V|, witnesses included: a number, or the sites by name. Default: every replica votes, and
        the witnesses besides, which needs the replicas as a number or by name.
    quorum
        Votes a commit waits for, 1 <= m <= |V| (flexible quorums); None: a majority.
    witnesses
        Voters that hold no replica, counted in `voters` and not in `replicas`: a number, or the
        sites by name. A witness votes, serves no reads and cannot lead.
    leader
        The site that must lead.
    leaders
        Candidate leaders; None: every site that may vote.
    pinned, pinned_voters
        Sites that must hold a replica, must vote.
    forbidden
        Sites that may not hold a replica, nor be a witness.
    non_voters
        Sites that may hold a replica but not vote, nor be a witness.
    diversity
        :class:`Diversity` rules.
    survive
        A failure-domain level. The service survives the loss of any one domain of this level:
        enough of the original voters remain to commit and to elect a leader, that is
        max(m, v − m + 1), which for majorities is a majority. Shorthand for at most
        v − max(m, v − m + 1) voters per domain.
    decay
        τ >= 1 of Eq. 2, for instances with several intervals.
    budget
        Largest cost per month (needs prices in the instance).
    cost_weight
        Weight of the monthly cost in the objective, in ms·operations per unit of cost.
    objective
        What is minimised; the mean latency unless given.
    protocol
        The commit protocol, as :class:`Protocol` or as its text ("epaxos:slow=0.05"): what the
        operations of each kind wait for. None: that of the instance, or else what the operations of
        the instance say.
    current
        The configuration that runs today: a :class:`Configuration` on site indices, or a table of
        `leader`, `voters` and `replicas` by name. It need not obey the rules.
    moves
        Prices of the changes to it, and limits on them: :class:`Moves`.
    minimise, maximise
        A measure (:mod:`placement.measures`) or its text: "cost", "p99(writes)", "within 100 ms".
        Given to build the objective, and told by it.
    keep
        Limits on measures, or their texts: "p99(writes) <= 150 ms".
    distributions
        Of RTTs, for percentiles and shares in time: one, or one for each interval whose RTTs vary.
    outages
        Probability of each outage, by site, LEVEL:DOMAIN or "any LEVEL", for "mean over outages".

    Raises
    ------
    InputError
        For anything that contradicts itself or the instance. A question that is well put but has
        no answer is not an error: solving it gives a plan with status ``infeasible``.
    """

    instance: Instance
    _: KW_ONLY
    replicas: int | tuple[int, int] | range | Sequence[str]
    voters: int | Sequence[str] = ALL_REPLICAS
    quorum: int | None = None
    witnesses: int | Sequence[str] = 0
    leader: str | None = None
    leaders: Sequence[str] | None = None
    pinned: Sequence[str] = ()
    pinned_voters: Sequence[str] = ()
    forbidden: Sequence[str] = ()
    non_voters: Sequence[str] = ()
    diversity: Sequence[SiteRule] = ()
    survive: str | None = None
    decay: float = 1.0
    budget: float | None = None
    cost_weight: float = 0.0
    objective: MeanLatency = MEAN_LATENCY
    protocol: Protocol | str | None = None
    current: CurrentSites | Configuration | Mapping[str, object] | None = None
    moves: Moves | None = None
    minimise: InitVar[Measure | str | None] = None
    maximise: InitVar[Measure | str | None] = None
    keep: InitVar[Sequence[Limit | str] | Limit | str] = _NOTHING
    distributions: InitVar[object] = _NOTHING
    outages: InitVar[Mapping[str, float] | None] = None

    def __new__(cls, *given: object, **named: object) -> Problem:
        """Refuse a name that is no field with the nearest one, before anything is checked."""
        known = _arguments(cls.__init__)
        for name, value in named.items():
            if name not in known:
                words = f"unknown argument of {cls.__name__}{nearest(name, known)}"
                raise InputError(words, field=name, value=value)
        return super().__new__(cls)

    def __post_init__(
        self,
        minimise: Measure | str | None,
        maximise: Measure | str | None,
        keep: Sequence[Limit | str] | Limit | str,
        distributions: object,
        outages: Mapping[str, float] | None,
    ) -> None:
        instance_of(
            self.instance, Instance, "instance", "a placement.Instance (placement.load reads one)"
        )
        rules: list[SiteRule] = (
            [self.diversity]
            if isinstance(self.diversity, SiteRule)
            else [*elements(self.diversity, "diversity", "a list of Diversity(level, …)")]  # type: ignore[list-item]  # checked next
        )
        for rule in rules:
            if not isinstance(rule, SiteRule):
                raise InputError(
                    "not a rule", field="diversity", value=rule, expected="Diversity(level, …)"
                )
        object.__setattr__(self, "diversity", tuple(rules))
        for field in ("leaders", "pinned", "pinned_voters", "forbidden", "non_voters"):
            names = getattr(self, field)
            if isinstance(names, str):
                names = (names,)
            if names is not None and type(names) is not tuple:
                object.__setattr__(self, field, elements(names, field, "a list of names"))
        for field in ("replicas", "voters", "witnesses"):
            value = getattr(self, field)
            if isinstance(value, Iterable) and not isinstance(value, (range, str)):
                object.__setattr__(
                    self, field, elements(value, field, "a number, a range or a list of names")
                )
            else:
                object.__setattr__(self, field, plain_number(value))
        if self.voters == ALL_REPLICAS:
            object.__setattr__(self, "voters", voters_of_all(self.replicas, self.witnesses))
        if not isinstance(self.objective, MeanLatency):
            raise InputError("not an objective", field="objective", value=self.objective,
                             expected="one of placement.evaluation.objective")  # fmt: skip
        asked = {
            "minimise": minimise,
            "maximise": maximise,
            "keep": keep,
            "distributions": distributions,
            "outages": outages,
        }
        if any(given is not None and given is not _NOTHING for given in asked.values()):
            self._ask(asked)
        if self.survive is not None:
            text(self.survive, "survive")
        decay_weights(1, self.decay)
        if self.budget is not None:
            number(self.budget, "budget", maximum=LARGEST)
        number(self.cost_weight, "cost_weight", maximum=LARGEST)
        if (self.budget is not None or self.cost_weight) and self.instance.prices is None:
            raise InputError(
                "a budget or a weight of the cost needs prices, and the instance has none",
                field="budget" if self.budget is not None else "cost_weight",
                value=self.budget if self.budget is not None else self.cost_weight,
                expected="an instance with prices: Instance(prices=Prices(…)), or --prices",
            )
        if self.current is not None:
            object.__setattr__(self, "current", CurrentSites.of(self.current, self.instance))
        if self.moves is not None:
            instance_of(self.moves, Moves, "moves", "placement.Moves(…)")
            if self.current is None:
                words = "moves from no present configuration"
                expected = "current=…, the configuration that runs today"
                raise InputError(words, field="moves", value=self.moves.given, expected=expected)
        if self.protocol is None:
            object.__setattr__(self, "protocol", self.instance.protocol)
        elif not isinstance(self.protocol, Protocol):
            object.__setattr__(self, "protocol", Protocol(text(self.protocol, "protocol")))
        _ = self.rules, self.demand, self._costs, self.limits  # all four validate
        self._check_roles()
        self.objective.check(self)

    @property
    def needs_roles(self) -> bool:
        """Return whether operations have waits or constants, or some voters hold no replica.

        What is known of questions of the four coefficients alone then does not hold.
        """
        return self.demand.has_waits or self.rules.witnesses > 0

    def _check_roles(self) -> None:
        if self.protocol is not None or self.needs_roles:
            check_waits(self)

    def _ask(self, asked: Mapping[str, object]) -> None:
        """Put a question of measures into objective, budget and moves."""
        fields = _fields_of_measures()
        told = {"objective": self.objective, "budget": self.budget, "moves": self.moves}
        for name, value in fields(asked, **told).items():
            object.__setattr__(self, name, value)

    def replace(self, **changes: object) -> Problem:
        """Return a copy with some fields changed, validated again.

        Another number of replicas alone is quick: the masks of the sites are shared.
        """
        if changes.keys() == {"replicas"} and is_count(self.replicas) and type(self) is Problem:
            replicas = changes["replicas"]
            if is_count(replicas):
                return self._with_count(replicas)
        asked = {name: changes.pop(name, default) for name, default in _ASKED.items()}
        return dataclasses.replace(self, **asked, **changes)  # type: ignore[arg-type]  # checked at run time

    def _with_count(self, replicas: int | tuple[int, int] | range) -> Problem:
        """Return a copy with another number of replicas: all else is known to be valid."""
        copy = object.__new__(Problem)
        fields = {field: self.__dict__[field] for field in _FIELDS}
        copy.__dict__.update(
            fields,
            replicas=replicas,
            demand=self.demand,
            operations=self.operations,
            _allowed=self._allowed,
        )
        copy.__dict__["rules"] = compile_rules(copy, self._allowed, self.rules)  # validates
        copy._check_roles()
        copy.objective.check(copy)
        return copy

    @cached_property
    def demand(self) -> Demand:
        """Demand aggregated over the intervals."""
        return aggregate(self.instance, self.decay, self.operations)

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """Operations with the paths and waits of this question, under the names of the instance."""
        given, rules = self.instance.operations, self.rules
        if self.protocol is None and not any(one.waits for one in given):
            return given
        return operations_under(self.protocol, self.instance, rules.voters, rules.quorum)

    @cached_property
    def rules(self) -> Rules:
        """Return the constraints on site indices."""
        return compile_rules(self, self._allowed)

    @cached_property
    def _allowed(self) -> tuple[Rules, int]:
        """Roles that each site may and must take for any number of replicas, and the pins."""
        return allowed_sites(self)

    @property
    def minimises_mean(self) -> bool:
        """Return whether the objective is the mean latency alone: no loss, percentile or price."""
        weighs = self.cost_weight or (self.moves is not None and self.moves.priced)
        return self.objective.minimises_mean and not weighs

    @property
    def present(self) -> Configuration | None:
        """The configuration that runs today, on site indices; None: none is given."""
        if self.current is None:
            return None
        assert isinstance(self.current, CurrentSites)
        return self.current.on(self.instance)

    @cached_property
    def move_costs(self) -> MoveCosts | None:
        """Prices of moves from the present configuration and limits on them; None without."""
        present = self.present
        if self.moves is None or present is None:
            return None
        return MoveCosts(self.instance, present, self.moves)

    @cached_property
    def limits(self) -> tuple[LinearLimit, ...]:
        """Limits on the cost, on the changes and on the GB copied, as far as they are given."""
        found = () if self.move_costs is None else self.move_costs.limits
        model, budget = self._costs, self.rules.budget
        if model is None or budget is None:
            return found
        return (LinearLimit("budget", budget, model), *found)

    @property
    def _costs(self) -> CostModel | None:
        """The cost model of the instance; None without prices."""
        return None if self.instance.prices is None else cost_model(self.instance)

    def added_cost(self, leader: int) -> LinearCost | None:
        """Return the added term of the objective under a leader, in ms·operations; or None.

        The cost with its weight, and the price of the move from the present configuration.
        """
        total: LinearCost | None = None
        if self.cost_weight:
            model = self._costs
            assert model is not None
            total = model.linear(leader).times(self.rules.cost_weight)
        if self.moves is not None and self.moves.priced:
            assert self.move_costs is not None
            price = self.move_costs.price.linear(leader).times(self.demand.operations)
            total = price.plus(total)
        return total

    def move_price(self, configuration: Configuration) -> float:
        """Return the price of the move to a configuration over the horizon, in ms·operations."""
        if self.moves is None or not self.moves.priced:
            return 0.0
        assert self.move_costs is not None
        return self.demand.operations * self.move_costs.price.value(configuration)

    def site_costs(self, leader: int) -> FloatArray | None:
        """Return the cost of a replica at each site under a leader, shape (sites,).

        The leader's own entry has what a plan costs under it anyway, with its vote; where all
        replicas vote, every entry has the vote. The cost of a configuration is the sum over its
        replicas, and :attr:`cost_parts` besides. None without prices.
        """
        model = self._costs
        if model is None:
            return None
        linear = model.linear(leader)
        if not linear.constant and linear.voter is None:
            return linear.replica
        costs = linear.replica.copy()
        costs[leader] += linear.constant
        if linear.voter is not None:
            all_vote = self.rules.replicas_max == self.rules.data_voters
            votes = slice(None) if all_vote else leader
            costs[votes] += linear.voter[votes]
        return costs

    @cached_property
    def cost_parts(self) -> tuple[str, ...]:
        """Parts of the cost that count and that :meth:`site_costs` does not hold.

        "near reads": costs of the nearest replica of each client; "votes": replicas that do not
        vote cost less; "moves": prices or limits of moves. The first two only where a budget or a
        weight of the cost is given.
        """
        moves = () if self.moves is None else ("moves",)
        model = self._costs
        if model is None or (self.budget is None and not self.cost_weight):
            return moves
        linear, rules = model.linear(0), self.rules
        some_vote = linear.voter is not None and rules.replicas_max > rules.data_voters
        near = linear.nearest is not None
        parts = [*(["near reads"] if near else []), *(["votes"] if some_vote else [])]
        return (*parts, *moves)

    @property
    def tier(self) -> int:
        """Return the tier: 1 (the leader is free), 2 (roles and leader) or 3 (everything)."""
        rules = self.rules
        if not np.array_equal(rules.may_hold, rules.must_hold):
            return 3
        return 1 if int(rules.may_vote.sum()) == rules.data_voters else 2

    def __repr__(self) -> str:
        return f"<Problem on {self.instance.name!r}: {describe(self)}>"

    def _repr_html_(self) -> str:
        """Return a small table, which notebooks show."""
        from placement.report.notebook import facts_table

        asked = [("Question", describe(self)), *instance_facts(self.instance)]
        return facts_table("Problem", asked)

    def __getstate__(self) -> dict[str, object]:
        fields = {field.name for field in dataclasses.fields(self)}
        return {key: value for key, value in self.__dict__.items() if key in fields}


_FIELDS = frozenset(field.name for field in dataclasses.fields(Problem))
_ASKED = {
    name: Problem.__dict__[name]
    for name in ("minimise", "maximise", "keep", "distributions", "outages")
}


def describe(problem: Problem) -> str:
    """Return the question in a line of words."""
    rules = problem.rules
    count, most = str(rules.replicas_min), rules.replicas_max
    count += f" to {most}" * (most > rules.replicas_min)
    parts = [
        f"{count} replica{'' if count == '1' else 's'}",
        f"{rules.voters} voter{'' if rules.voters == 1 else 's'}",
    ]
    if rules.witnesses:
        named = rules.must_witness is not None
        names = f": {', '.join(map(str, problem.witnesses))}" if named else ""  # type: ignore[arg-type]  # they are names
        noun = f"witness{'' if rules.witnesses == 1 else 'es'}"
        parts[-1] += f" ({rules.witnesses} {noun}{names})"
    if rules.quorum != majority(rules.voters):
        parts.append(f"quorum {rules.quorum}")
    if problem.tier < 3:
        parts.append("replicas fixed" if problem.tier == 2 else "replicas and voters fixed")
    if problem.protocol is not None:
        parts.append(f"protocol {problem.protocol}")
    if problem.leader is not None:
        parts.append(f"leader {problem.leader}")
    if problem.leaders is not None:
        parts.append(f"{len(problem.leaders)} leader candidates")
    for field in ("pinned", "pinned_voters", "forbidden", "non_voters"):
        if getattr(problem, field):
            parts.append(f"{field.replace('_', ' ')}: {', '.join(getattr(problem, field))}")
    parts.extend(dict.fromkeys(group.why for group in rules.groups))
    if rules.budget is not None:
        parts.append(f"budget {rules.budget:g}")
    if rules.cost_weight:
        parts.append(f"cost weight {rules.cost_weight:g}")
    if isinstance(problem.current, CurrentSites) and problem.moves is not None:
        parts.append(f"moves from {', '.join(problem.current.replicas)}")
        parts.extend(
            f"at most {limit.most:g} {limit.noun}"
            for limit in problem.limits[-2:]
            if limit.name != "budget"
        )
    if problem.objective.describe():
        parts.append(problem.objective.describe())
    if problem.decay != 1:
        parts.append(f"decay {problem.decay:g}")
    return ", ".join(parts)

"""Existence of plans, a first plan, violations of a configuration, reasons of infeasibility.

Sharov et al. (PVLDB 8(12), 2015, section 6.3) first analyse the level of failure diversity that a
database preserves today, and only suggest configurations that keep it (:func:`kept_diversity`).

A question with witnesses at given sites W is one without them. In the new question every site of W
must hold a replica and vote, may not lead, and is farther from every client than any other site. So
a configuration (ℓ, V, R) with the witnesses W becomes (ℓ, V, R ∪ W): no operation goes to W, as the
leader is nearer to each client, and V waits as before. |R| grows by |W|, and rules for replicas
bind R alone, by levels in which every site of W is a domain of its own.

Configurations of the two questions are one to one, with equal scores and the same rules for voters.
Where the sites of the witnesses are not given, each choice of them is such a question, and the best
of all is the best: a proof of each proves the whole.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from placement.errors import InputError, LimitError, UnitsWarning
from placement.evaluation.cost_model import configuration_cost
from placement.evaluation.voter_choice import best_voters
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity, GroupRule, Rules
from placement.model.instance import Instance
from placement.model.site_families import SiteSubset, subsets
from placement.problem import Problem
from placement.support.checks import BoolArray
from placement.support.entry_points import Group


def complete_configuration(
    problem: Problem, leader: int, prefer: Sequence[int], size: int | None = None
) -> Configuration | None:
    """Feasible configuration led by `leader`, taking the sites that come first in `prefer`.

    Parameters
    ----------
    problem
        The question, without witnesses.
    leader
        Site index.
    prefer
        Site indices in order of preference; sites left out come last, in site order.
    size
        |R|; None: the smallest size in the range that works for the voters found first.

    Returns
    -------
    Configuration or None
        None only when no configuration with this leader (and size) obeys all rules: the search is
        complete. Voters are then chosen again by
        :func:`placement.evaluation.voter_choice.best_voters`.

    Raises
    ------
    LimitError
        When the search has too many dead ends (millions, on crossing levels).
    """
    rules = problem.rules
    if not rules.may_lead[leader]:
        return None
    seen = dict.fromkeys(int(site) for site in prefer)
    seen.update(dict.fromkeys(range(len(rules.may_hold))))
    order = list(seen)
    costs = problem.site_costs(leader) if rules.budget is not None else None
    budget = np.inf if rules.budget is None else rules.budget
    must_vote = frozenset(np.nonzero(rules.must_vote)[0].tolist()) | {leader}
    must_hold = frozenset(np.nonzero(rules.must_hold)[0].tolist())
    voters_first = SiteSubset(
        [site for site in order if rules.may_vote[site]],
        rules.voters,
        must_vote,
        (*rules.of("voters"), *(group.caps_only() for group in rules.of("replicas"))),
        cost=costs,
        budget=budget,
    )
    holders = [site for site in order if rules.may_hold[site]]
    sizes = [*range(rules.replicas_min, rules.replicas_max + 1)] if size is None else [size]
    if costs is not None:  # else every set of voters is tried with more replicas than are paid for
        fixed = list(must_hold | {leader})
        free = sorted(costs[site] for site in holders if site not in fixed)
        paid = [costs[fixed].sum() + sum(free[: max(n - len(fixed), 0)]) for n in sizes]
        most = budget + 1e-9 * (1 + abs(budget))
        sizes = [n for n, least in zip(sizes, paid, strict=True) if least <= most]
    failed: set[object] = set()
    for voters in subsets(voters_first):
        # Voter sets from the same domains leave the same room for the other replicas.
        signature = (
            tuple(sorted(tuple(g.labels[s] for g in rules.of("replicas")) for s in voters)),
            frozenset(voters) & must_hold,
            None if costs is None else voters,
        )
        if signature in failed:
            continue
        for target in sizes:
            replicas_next = SiteSubset(
                holders,
                target,
                frozenset(voters) | must_hold,
                rules.of("replicas"),
                cost=costs,
                budget=budget,
                nodes=voters_first.nodes,
            )
            for replicas in subsets(replicas_next):
                best = best_voters(problem.demand, rules, leader, replicas)
                for chosen in (voters if best is None else best, voters):
                    found = Configuration.of(leader, chosen, replicas)
                    if not _over_budget(problem, found):
                        return found
            voters_first.nodes = replicas_next.nodes  # the limit is on all dead ends together
        failed.add(signature)
    return None


def _over_budget(problem: Problem, configuration: Configuration) -> bool:
    """Return whether near reads or votes, which no price of a site holds, exceed the budget."""
    if not problem.cost_parts or problem.budget is None:
        return False
    cost = configuration_cost(problem.instance, configuration)
    return cost > problem.budget + 1e-9 * (1 + abs(problem.budget))


def repaired(
    problem: Problem, before: Configuration | None, size: int | None = None
) -> Configuration | None:
    """Change the answer to a similar problem until it obeys the constraints of this one.

    Sites of `before` are kept where the constraints allow, voters first; the leader is kept where
    it may lead, else one of the voters, the replicas or the other sites leads, in this order.
    `size` is |R| of the result; None: that of `before`, or the closest one allowed. None when the
    search for a feasible configuration finds none or becomes too long, and with witnesses.
    """
    if before is None or problem.rules.witnesses:
        return None
    rules = problem.rules
    if size is None:
        size = min(max(len(before.replicas), rules.replicas_min), rules.replicas_max)
    prefer = (*before.voters, *before.replicas)
    leaders = dict.fromkeys((before.leader, *prefer, *np.nonzero(rules.may_lead)[0].tolist()))
    try:
        for leader in leaders:
            found = complete_configuration(problem, leader, prefer, size)
            if found is not None and not problem.objective.violations(problem, found):
                return found
    except (LimitError, TimeoutError):
        pass
    return None


def find_feasible(problem: Problem, prefer: Sequence[int] = ()) -> Configuration | None:
    """Find some feasible configuration, or None when there is provably none.

    Leaders are tried in order of preference, then in site order; with witnesses, under one choice
    of their sites after another.
    """
    for places in witness_places(problem):
        named = named_question(problem, places)
        found = None if named is None else find_feasible(named, prefer)
        if found is not None:
            return original(found, places)
    if problem.rules.witnesses:
        return None
    leaders = dict.fromkeys([*map(int, prefer), *range(len(problem.rules.may_lead))])
    for leader in leaders:
        found = complete_configuration(problem, leader, prefer)
        if found is not None:
            return found
    return None


def violations(problem: Problem, configuration: Configuration) -> tuple[str, ...]:
    """Every constraint that a configuration breaks, in words; empty when it is feasible."""
    rules, sites = problem.rules, problem.instance.sites
    leader, voters, replicas = configuration.leader, configuration.voters, configuration.replicas
    broken = []
    if len(set(replicas)) != len(replicas) or len(set(voters)) != len(voters):
        broken.append("a site is listed twice")
    if leader not in voters:
        broken.append(f"the leader {sites[leader]} is not a voter")
    witnesses = configuration.witnesses
    if rules.witnesses:
        if len(witnesses) != rules.witnesses:
            broken.append(f"{len(witnesses)} witnesses instead of {rules.witnesses}")
        if leader in witnesses:
            broken.append(f"the leader {sites[leader]} is a witness")
    else:
        broken += [f"the voter {sites[site]} is not a replica" for site in witnesses]
    if not rules.replicas_min <= len(replicas) <= rules.replicas_max:
        asked = (
            str(rules.replicas_min)
            if rules.replicas_min == rules.replicas_max
            else f"{rules.replicas_min} to {rules.replicas_max}"
        )
        broken.append(f"{len(replicas)} replicas instead of {asked}")
    if len(voters) != rules.voters:
        broken.append(f"{len(voters)} voters instead of {rules.voters}")
    holding = voters if not rules.witnesses else tuple(s for s in voters if s not in witnesses)
    roles: list[tuple[str, tuple[int, ...], BoolArray, BoolArray | None]] = [
        ("replica", replicas, rules.may_hold, rules.must_hold),
        ("vote", holding, rules.may_vote, rules.must_vote),
        ("leader", (leader,), rules.may_lead, None),
    ]
    if rules.witnesses and rules.may_witness is not None:
        roles.insert(2, ("witness", witnesses, rules.may_witness, rules.must_witness))
    for role, chosen, allowed, needed in roles:
        broken += [f"no {role} is allowed at {sites[s]}" for s in chosen if not allowed[s]]
        if needed is not None:
            missing = [s for s in needed.nonzero()[0].tolist() if s not in chosen]
            broken += [f"a {role} is required at {sites[s]}" for s in missing]
    for group in rules.groups:
        if not group.satisfied(voters if group.role == "voters" else replicas):
            broken.append(f"{group.why} does not hold")
    broken += [why for limit in problem.limits if (why := limit.broken(configuration))]
    if not broken:
        broken.extend(problem.objective.violations(problem, configuration))
    return tuple(dict.fromkeys(broken))  # a rule may stand for several on site indices


def reasons_infeasible(problem: Problem) -> tuple[str, ...]:
    """Return numbers that show there is no plan, in words; empty when these checks find none.

    Each check is a separate necessary condition (counts, caps, domains, pins, budget), so a
    reason given here is a proof. Conflicts between several rules need a search.
    """
    rules, instance = problem.rules, problem.instance
    found = []
    holders, voters = np.count_nonzero(rules.may_hold), np.count_nonzero(rules.may_vote)
    found.extend(_witness_reasons(rules))
    if holders < rules.replicas_min:
        found.append(
            f"{rules.replicas_min} replicas are asked for, but only {holders} of "
            f"{len(instance.sites)} sites may hold one"
        )
    if voters < rules.data_voters:
        kind = "voters with a replica" if rules.witnesses else "voters"
        asked = f"{rules.data_voters} {kind} are asked for"
        found.append(f"{asked}, but only {voters} sites may vote")
    needed = rules.must_hold.nonzero()[0]
    if len(needed) > rules.replicas_max:
        # Each pin is possible alone; together with voters that have no choice they are too many.
        names = ", ".join(instance.sites[s] for s in needed)
        found.append(
            f"{len(needed)} sites must hold a replica, pinned or as the only ones that may vote "
            f"({names}), but at most {rules.replicas_max} may be placed"
        )
    if not np.count_nonzero(rules.may_lead):
        found.append("no site may lead: every leader candidate is forbidden or may not vote")
    for group in rules.groups:
        found.extend(_group_reasons(group, rules, instance))
    found.extend(problem.objective.reasons_infeasible(problem))
    found.extend(_budget_reasons(problem))
    return tuple(dict.fromkeys(found))


def _witness_reasons(rules: Rules) -> list[str]:
    if not rules.witnesses or rules.may_witness is None:
        return []
    able = np.count_nonzero(rules.may_witness)
    if able < rules.witnesses:
        return [f"{rules.witnesses} witnesses are asked for, but only {able} sites may be one"]
    if (able := np.count_nonzero(rules.able_voters)) < rules.voters:
        return [
            f"{rules.voters} voters are asked for, but only {able} sites may vote, with a replica "
            "or as a witness"
        ]
    together = np.count_nonzero(rules.may_hold | rules.may_witness)
    if together < rules.replicas_min + rules.witnesses:
        return [
            f"{rules.replicas_min} replicas and {rules.witnesses} witnesses are asked for, but "
            f"only {together} sites may hold a replica or be a witness"
        ]
    return []


def _group_reasons(group: GroupRule, rules: Rules, instance: Instance) -> list[str]:
    voting = group.role == "voters"
    allowed: BoolArray = rules.able_voters if voting else rules.may_hold
    pinned: BoolArray = rules.must_vote if voting else rules.must_hold
    least = rules.voters if voting else rules.replicas_min
    most = rules.voters if voting else rules.replicas_max
    room = np.bincount(group.labels[allowed], minlength=len(group.names))
    domains = int((room > 0).sum())
    found = []
    if group.cap is not None:
        fit = int(np.minimum(room, group.cap).sum())
        if fit < least:
            found.append(
                f"{group.why}: the level {group.level} has {domains} domains with allowed sites, "
                f"so at most {fit} {group.role} fit, but {least} are asked for"
            )
        held = np.bincount(group.labels[pinned], minlength=len(group.names))
        for domain in np.nonzero(held > group.cap)[0]:
            sites = [instance.sites[s] for s in np.nonzero(pinned)[0] if group.labels[s] == domain]
            found.append(
                f"{group.why}: {len(sites)} pinned sites share the {group.level} "
                f"{group.names[domain]} ({', '.join(sites)}), and at most {group.cap} may"
            )
    too_few = group.infeasible_reason(room, most)
    return [*found, too_few] if too_few else found


def _budget_reasons(problem: Problem) -> list[str]:
    rules = problem.rules
    if rules.budget is None or not rules.may_lead.any():
        return []
    cheapest = np.inf
    for leader in np.nonzero(rules.may_lead)[0]:
        costs = problem.site_costs(int(leader))
        if costs is None:
            return []
        pinned = rules.must_hold.copy()
        pinned[leader] = True
        free = np.sort(costs[rules.may_hold & ~pinned])
        missing = max(0, rules.replicas_min - int(pinned.sum()))
        if len(free) >= missing:
            cheapest = min(cheapest, float(costs[pinned].sum() + free[:missing].sum()))
    if cheapest > rules.budget * (1 + 1e-9) and np.isfinite(cheapest):
        return [
            f"the budget is {rules.budget:g}, but the cheapest {rules.replicas_min} replicas cost "
            f"{cheapest:g} together"
        ]
    return []


# The configurations one change away from another one: the neighbourhood of local searches


def neighbours(problem: Problem, configuration: Configuration) -> Iterator[Configuration]:
    """Yield the O(|R|·S) neighbours of a configuration that obey the masks of the rules.

    A neighbour swaps a replica with a site outside (the added site takes over the roles), moves a
    vote to a replica without one, names another leader, or, where |R| may vary, adds a replica or
    removes one that does not vote. Diversity rules and the budget are left to the caller.
    """
    rules = problem.rules
    leader, voters, replicas = configuration.leader, configuration.voters, configuration.replicas
    outside = [s for s in np.nonzero(rules.may_hold)[0].tolist() if s not in replicas]
    for old in replicas:
        if rules.must_hold[old]:
            continue
        for new in outside:
            if old in voters and not rules.may_vote[new]:
                continue
            if old == leader and not rules.may_lead[new]:
                continue
            yield Configuration.of(
                new if old == leader else leader,
                [new if v == old else v for v in voters],
                [new if r == old else r for r in replicas],
            )
    for old in voters:
        if rules.must_vote[old]:
            continue
        for new in replicas:
            if new in voters or not rules.may_vote[new]:
                continue
            if old != leader:
                exchanged = [new if v == old else v for v in voters]
                yield Configuration.of(leader, exchanged, replicas)
            elif rules.may_lead[new]:
                yield Configuration.of(new, [new if v == old else v for v in voters], replicas)
    for new in voters:
        if new != leader and rules.may_lead[new]:
            yield dataclasses.replace(configuration, leader=new)
    if len(replicas) < rules.replicas_max:
        for new in outside:
            yield Configuration.of(leader, voters, [*replicas, new])
    if len(replicas) > rules.replicas_min:
        for old in replicas:
            if old not in voters and not rules.must_hold[old]:
                yield Configuration.of(leader, voters, [r for r in replicas if r != old])


# Every choice of roles on given replicas: voters, witnesses and leader


def role_choices(problem: Problem, replicas: tuple[int, ...]) -> Iterator[Configuration]:
    """Yield every configuration on given replicas; not all obey the rules about domains.

    Where no operation needs a leader, one leader stands for all.
    """
    rules = problem.rules
    votes = {int(s) for s in np.nonzero(rules.must_vote)[0]}
    voting = [s for s in replicas if rules.may_vote[s]]
    free = rules.witness_sites(replicas).tolist()
    for voters in itertools.combinations(voting, rules.data_voters):
        if not votes <= set(voters):
            continue
        leaders = [site for site in voters if rules.may_lead[site]]
        for witnesses in itertools.combinations(free, rules.witnesses):
            for leader in leaders[:1] if problem.demand.leaderless else leaders:
                yield Configuration(leader, (*voters, *witnesses), replicas)


# Explanation of an infeasible problem, by the registered explainers


class Explainer(Protocol):
    """Interface of a registered function."""

    def __call__(self, problem: Problem, *, seconds: float) -> Iterable[str]:
        """Return sentences that say why a problem has no plan, as far as the time suffices."""


EXPLAINERS: Group[Explainer] = Group(
    "placement.explainers",
    "explainer",
    lambda found: found if callable(found) else None,
    "a function",
)
"""All registered explainers."""


def explain_infeasible(problem: Problem, seconds: float = math.inf) -> tuple[str, ...]:
    """Return why a problem has no plan, from every explainer in turn, in `seconds` for all.

    SolverError when one finds a plan, so that "infeasible" was wrong.
    """
    sentences: list[str] = []
    end = time.perf_counter() + seconds
    for name in EXPLAINERS.names():
        if (left := end - time.perf_counter()) > 0:
            sentences.extend(map(str, EXPLAINERS.load(name)(problem, seconds=left)))
    return tuple(sentences)


# Failure diversity that a present deployment has, as rules that a new plan keeps


def kept_diversity(
    instance: Instance,
    voters: Iterable[str],
    replicas: Iterable[str],
    levels: Sequence[str] | None = None,
) -> tuple[Diversity, ...]:
    """Return the rules that keep the diversity of a deployment at every level.

    At most as many voters per domain as the fullest domain has today, so that every loss of a
    domain that leaves a quorum today leaves one afterwards; and replicas in at least as many
    domains as today. Rules that forbid nothing are left out. `levels` None: all of the instance but
    the sites themselves. InputError for an unknown site or level.
    """
    known = [level for level in instance.levels if level != "site"] if levels is None else levels
    voting = instance.site_indices(voters, "voters").tolist()
    held = instance.site_indices(replicas, "replicas").tolist()
    rules: list[Diversity] = []
    for level in known:
        labels = instance.labels(level)
        # A site without a domain fails alone.
        domain = [site if label is None else label for site, label in enumerate(labels)]
        fullest = max(Counter(domain[site] for site in voting).values(), default=0)
        if 0 < fullest < len(voting):
            rules.append(Diversity(level, "voters", cap=fullest))
        distinct = len({domain[site] for site in held})
        if distinct > 1:
            rules.append(Diversity(level, "replicas", min_domains=distinct))
    return tuple(rules)


# A question with witnesses at given sites as one without: replicas that no client is near to

MOST_PLACES = 2_000
"""Choices of sites for the witnesses that are proven one by one: each takes milliseconds."""


def count_places(problem: Problem) -> int:
    """Return how many choices of sites for the witnesses there are. O(1)."""
    rules = problem.rules
    if rules.may_witness is None:
        return 0
    named = 0 if rules.must_witness is None else int(rules.must_witness.sum())
    if named > rules.witnesses:
        return 0
    return math.comb(int(rules.may_witness.sum()) - named, rules.witnesses - named)


def witness_places(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Yield every choice of sites for the witnesses, in site order.

    Some leave no site for the leader, or too few for replicas, voters, or a rule about one domain:
    they are left out.
    """
    rules = problem.rules
    if rules.may_witness is None:
        return
    must = np.zeros_like(rules.may_witness) if rules.must_witness is None else rules.must_witness
    named = np.nonzero(must)[0].tolist()
    free = np.nonzero(rules.may_witness & ~must)[0].tolist()
    for more in itertools.combinations(free, rules.witnesses - len(named)):
        places = sorted((*named, *more))
        others = np.ones_like(rules.may_hold)
        others[places] = False
        enough = (
            (rules.may_lead & others).any()
            and np.count_nonzero(rules.may_hold & others) >= rules.replicas_min
            and np.count_nonzero(rules.may_vote & others) >= rules.data_voters
            and all(
                np.count_nonzero(rules.may_hold & others & (group.labels == group.domain))
                >= group.least
                for group in rules.of("replicas")
            )
        )
        if enough:
            yield tuple(places)


def original(found: Configuration, places: tuple[int, ...]) -> Configuration:
    """Return a configuration of the question without witnesses as one with them at some sites."""
    return Configuration.of(
        found.leader, found.voters, [site for site in found.replicas if site not in places]
    )


def named_question(problem: Problem, places: tuple[int, ...]) -> Problem | None:
    """Return the question without witnesses that stands for one with them at given sites.

    `places` is one of :func:`witness_places`. None where an RTT is as large as numbers may be.
    O(C·S + S²).
    """
    rules, given = problem.rules, problem.instance
    at = np.zeros(len(given.sites), dtype=bool)
    at[list(places)] = True
    spread = []
    for group in (group for group in rules.groups if group.rule is not None):
        if group.role == "replicas":  # each place is a domain of its own
            labels = group.labels.copy()
            labels[list(places)] = len(group.names) + np.arange(len(places))
            called = (*group.names, *(given.sites[site] for site in places))
            least = None if group.min_domains is None else group.min_domains + len(places)
            group = dataclasses.replace(group, labels=labels, names=called, min_domains=least)
        spread.append(group)
    rtt = given.client_rtt.copy()
    rtt[..., list(places)] = rtt.max(axis=-1, keepdims=True) + 1.0
    most = min(rules.replicas_max, int(np.count_nonzero(rules.may_hold & ~at)))

    def names(chosen: BoolArray) -> list[str]:
        return [given.sites[site] for site in np.nonzero(chosen)[0].tolist()]

    try:
        with warnings.catch_warnings():  # of the units, which the instance was warned of
            warnings.simplefilter("ignore", UnitsWarning)
            instance = given.replace(client_rtt=rtt, prices=None)
        return Problem(
            instance,
            replicas=(rules.replicas_min + len(places), most + len(places)),
            voters=rules.voters,
            quorum=rules.quorum,
            leaders=names(rules.may_lead & ~at),
            pinned=names(rules.must_hold | at),
            pinned_voters=names(rules.must_vote | at),
            forbidden=names(~rules.may_hold & ~at),
            non_voters=names(rules.may_hold & ~rules.may_vote & ~at),
            diversity=spread,
            survive=problem.survive,
            decay=problem.decay,
            protocol=problem.protocol,
        )
    except InputError:
        return None

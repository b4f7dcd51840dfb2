"""Other packages that solve parts of the problem, wrapped as methods named ``peer/…``.

A peer gets the problem through its own interface, with the best settings we know of, and its answer
is priced by our evaluator, like everybody's. Its caption says what it solves itself and what we had
to do for it. They are found here and not among the registered methods, because they answer special
cases only. ``pip install 'replica-placement[peers]'`` brings them.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import math
import time
from collections.abc import Callable, Iterable
from types import MappingProxyType

import numpy as np

from placement.errors import InputError, MissingDependencyError, SolverError
from placement.evaluation.score import nearest
from placement.methods.options import Options, Progress
from placement.methods.registry import Method, load_method, refusal, run
from placement.model.configuration import Configuration
from placement.model.constraints import majority
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import FloatArray
from placement.support.status import SearchEnd, Termination, end_early

__all__ = ["CAPTIONS", "PREFIX", "find_method"]

PREFIX = "peer/"
CAPTIONS = MappingProxyType(
    {
        "peer/monolithic-milp": "One mixed-integer program for HiGHS over all leaders, as in a "
        "textbook: Church–Cohon rows, one binary per leader and quorum radius, no first plan and "
        "no reductions. The same HiGHS, threads and limits as our milp.",
        "peer/pbp-pmedian": "Exact p-median (reduced models or Benders, chosen by its router) at "
        "the relative gap of 0 that it sets; the special case of weak reads only. At a time limit "
        "it returns no sites.",
        "peer/quoracle": "Quorum algebra. It knows one latency per node and chooses neither sites "
        "nor leaders, so that our loop enumerates them for it and adds the clients' part; quoracle "
        "prices the commit of each (majority system, latency-optimal strategy).",
        "peer/scip": "The textbook p-median program in SCIP, a row for each client and site, by "
        "PySCIPOpt; the special case of weak reads only.",
        "peer/spopt": "p-median by PuLP with HiGHS (faster there than its default, CBC) at a "
        "relative gap of 5e-10; the special case of weak reads only. At a time limit it raises, or "
        "passes an incumbent on as optimal, because PuLP says so: then we count it as unproven.",
    }
)
"""Captions beside the numbers of a peer."""

_TOLERANCE = 5e-10
"""Relative gap at which these solvers stop; their bound is lowered by it."""


def find_method(name: str) -> Method:
    """Return a registered method, or one of the peers.

    MissingDependencyError for a peer whose package is not installed.
    """
    if not name.startswith(PREFIX):
        return load_method(name)
    if name not in _METHODS:
        raise InputError(
            "unknown peer", field="method", value=name, expected="one of " + ", ".join(_METHODS)
        )
    try:
        return _METHODS[name]()
    except ImportError as error:
        raise MissingDependencyError(
            f"{name} needs a package that is not installed ({error}); "
            "pip install 'replica-placement[peers]'"
        ) from error


# --- p-medians ----------------------------------------------------------------------------------

Medians = Callable[[FloatArray, int, Options], tuple[Iterable[int], bool]]
"""Costs, shape (clients, sites), and p -> open sites, and whether they are proven optimal."""


def _p_median_only(problem: Problem) -> str | None:
    """Return why a problem is no p-median problem, or None."""
    demand, rules = problem.demand, problem.rules
    if demand.relay.any() or demand.direct.any() or demand.quorum.any():
        return "it solves the p-median problem, and there are operations that involve the leader"
    if rules.replicas_min != rules.replicas_max:
        return "it takes one number of replicas"
    if rules.voters != 1 or rules.groups or rules.cost_weight or rules.budget is not None:
        return "it knows no voters, failure domains or prices"
    if not rules.may_hold.all() or rules.must_hold.any():
        return "it is given neither pins nor forbidden sites here"
    if demand.scenarios != 1:
        return "it takes one matrix of RTTs"
    return None


def _p_median(name: str, solve: Medians, summary: str, reference: str) -> Method:
    """Return a method that hands the weighted RTTs over and prices what comes back."""

    def call(problem: Problem, options: Options) -> Plan:
        started = time.perf_counter()
        demand = problem.demand
        near = np.asarray(demand.near[0], dtype=np.float64)
        reading = near > 0
        cost = np.ascontiguousarray(near[reading, np.newaxis] * demand.client_rtt[0][reading])
        chosen, proven = solve(cost, problem.rules.replicas_min, options)
        sites = sorted({int(site) for site in chosen})
        configuration = Configuration.of(sites[0], [sites[0]], sites)
        worth = problem.objective.value(problem, configuration)
        return Plan.of(
            problem,
            configuration,
            method=name,
            bound=worth * (1 - _TOLERANCE) if proven else -np.inf,
            termination=Termination.FINISHED if proven else Termination.TIME_LIMIT,
            stats={"peer_seconds": time.perf_counter() - started},
        )

    return Method(
        name, call, summary=summary, exact=True, refuses=_p_median_only, reference=reference
    )


def _pbp() -> Method:
    import pbp_pmedian  # type: ignore[import-not-found]  # an optional extra without types

    def solve(cost: FloatArray, p: int, options: Options) -> tuple[Iterable[int], bool]:
        limit = 600.0 if options.time_limit is None else options.time_limit
        # its rows are facilities, its columns clients
        _, sites, _, status, engine = pbp_pmedian.solve(cost.T.copy(), p, time_limit=limit)
        if sites is None:  # its only answer at a limit
            raise SolverError(f"pbp-pmedian ({engine}) gave no sites: status {status}")
        return sites, status == 0

    reference = "PyPI pbp-pmedian; Duran-Mateluna et al. 2023"
    return _p_median(
        "peer/pbp-pmedian", solve, "the p-median special case by pbp-pmedian", reference
    )


def _scip() -> Method:
    from pyscipopt import Model, quicksum  # type: ignore[import-not-found]  # an optional extra

    def solve(cost: FloatArray, p: int, options: Options) -> tuple[Iterable[int], bool]:
        model = Model()
        model.hideOutput()
        if options.time_limit is not None:
            model.setParam("limits/time", options.time_limit)
        opened = [model.addVar(vtype="B") for _ in range(cost.shape[1])]
        served = [[model.addVar(ub=1.0, obj=float(x)) for x in row] for row in cost]
        model.addCons(quicksum(opened) == p)
        for row in served:
            model.addCons(quicksum(row) == 1)
            for part, site in zip(row, opened, strict=True):
                model.addCons(part <= site)
        model.optimize()
        chosen = [j for j, site in enumerate(opened) if model.getVal(site) > 0.5]
        return chosen, model.getStatus() == "optimal"

    reference = "PyPI pyscipopt; ReVelle and Swain 1970"
    return _p_median("peer/scip", solve, "the p-median special case by SCIP", reference)


def _spopt() -> Method:
    import pulp  # type: ignore[import-untyped]  # an optional extra without types
    from spopt.locate import PMedian  # type: ignore[import-not-found]  # the same

    def solve(cost: FloatArray, p: int, options: Options) -> tuple[Iterable[int], bool]:
        # the weights are in the costs: spopt multiplies both, and gives the mean only
        model = PMedian.from_cost_matrix(cost, np.ones(len(cost)), p_facilities=p)
        solver = pulp.HiGHS(
            msg=False, timeLimit=options.time_limit, gapRel=_TOLERANCE, threads=options.threads
        )
        try:
            model = model.solve(solver)
        except RuntimeError as error:  # its only answer to anything but "optimal"
            raise SolverError(f"spopt: {error}") from error
        opened = [i for i, variable in enumerate(model.fac_vars) if variable.value() > 0.5]
        # at a limit PuLP calls an incumbent "Optimal"; its solution status tells them apart
        return opened, model.problem.sol_status == pulp.LpSolutionOptimal

    reference = "PySAL spopt, locate.PMedian"
    return _p_median("peer/spopt", solve, "the p-median special case by spopt", reference)


# --- the whole problem --------------------------------------------------------------------------


def _monolithic() -> Method:
    """The mixed-integer program that a competent modeller writes first, given to HiGHS whole."""
    name = "peer/monolithic-milp"
    plain = {"recipe": "textbook", "start": "none", "reduce": False}

    def call(problem: Problem, options: Options) -> Plan:
        told = dataclasses.replace(options, settings=plain)
        return run(load_method("milp"), problem, told).replace(method=name)

    return Method(
        name,
        call,
        summary="one textbook mixed-integer program for HiGHS",
        exact=True,
        refuses=lambda problem: refusal(load_method("milp"), problem),
        reference="Church and Cohon 1976 for closest assignment",
    )


# --- quoracle: prices the commit of every (leader, voters) that our loop shows it ----------------

_SCALE = 1000.0
"""Seconds that stand for a millisecond: quoracle's timedelta counts in microseconds."""


def commit_latency(rtt: list[float]) -> float:
    """Return what quoracle says a majority commit costs a leader with these RTTs to the voters.

    RTTs are in ms, the leader's own 0 among them.
    """
    import quoracle

    nodes = [
        quoracle.Node(f"n{i}", latency=datetime.timedelta(seconds=ms * _SCALE))
        for i, ms in enumerate(rtt)
    ]
    system = quoracle.QuorumSystem(writes=quoracle.majority(nodes))
    strategy = system.strategy(optimize="latency", write_fraction=1)
    latency: datetime.timedelta = strategy.latency(write_fraction=1)
    return latency.total_seconds() / _SCALE


def resilience(voters: int) -> int:
    """Voters that may be lost under a majority system, by quoracle."""
    import quoracle

    nodes = [quoracle.Node(f"n{i}") for i in range(voters)]
    found: int = quoracle.QuorumSystem(writes=quoracle.majority(nodes)).write_resilience()
    return found


def _majorities_only(problem: Problem) -> str | None:
    rules, demand = problem.rules, problem.demand
    if rules.replicas_min != rules.replicas_max or rules.voters != rules.replicas_min:
        return "every node votes in quoracle: it takes |V| = |R| only"
    if rules.quorum != majority(rules.voters):
        return "it is given a majority system here"
    if rules.groups or rules.cost_weight or rules.budget is not None or demand.scenarios != 1:
        return "it knows no failure domains, prices or changing RTTs"
    if not rules.may_hold.all() or rules.must_hold.any() or not rules.may_lead.all():
        return "it is given neither pins nor forbidden sites here"
    return None


def _enumerate(problem: Problem, options: Options) -> Plan:
    """Score every set of voters under every leader, each commit priced by quoracle."""
    demand, size = problem.demand, problem.rules.voters
    client_rtt, site_rtt = demand.client_rtt[0], demand.site_rtt[0]
    started = time.perf_counter()
    best, incumbent, done = math.inf, None, 0
    end = SearchEnd()
    sites = range(client_rtt.shape[1])
    total = math.comb(len(sites), size) * size
    with end_early(end):
        for replicas in itertools.combinations(sites, size):
            near = nearest(client_rtt, replicas)
            reads = float(demand.near[0] @ client_rtt[np.arange(len(near)), near])
            for leader in replicas:
                spent = time.perf_counter() - started
                if options.time_limit is not None and spent > options.time_limit:
                    raise TimeoutError
                wait = commit_latency([float(site_rtt[leader, v]) for v in replicas])
                value = (
                    reads
                    + float(demand.relay[0] @ site_rtt[near, leader])
                    + float(demand.direct[0] @ client_rtt[:, leader])
                    + float(demand.quorum[0]) * wait
                )
                done += 1
                if value < best:
                    best, incumbent = value, Configuration.of(leader, replicas, replicas)
            options.report(Progress(time.perf_counter() - started, best, done=done, total=total))
    if incumbent is not None:
        worth = problem.objective.value(problem, incumbent)
        if not math.isclose(worth, best, rel_tol=1e-6):
            raise SolverError(f"quoracle's latencies give {best!r}, the evaluator {worth!r}")
    complete = end.termination is Termination.FINISHED
    return Plan.of(
        problem,
        incumbent,
        method="peer/quoracle",
        bound=best * (1 - _TOLERANCE) if complete else -math.inf,
        termination=end.termination,
        stats={"linear_programs": done, "of": total, "resilience": resilience(size)},
    )


def _quoracle() -> Method:
    import quoracle  # noqa: F401 - a missing package is told before the question is put

    return Method(
        "peer/quoracle",
        _enumerate,
        summary="enumeration of leaders and voters, each commit priced by quoracle",
        exact=True,
        refuses=_majorities_only,
        complexity="C(S, v)·v linear programs over all quorums of v nodes",
        reference="Whittaker et al., Read-Write Quorum Systems Made Practical, PaPoC 2021",
    )


_METHODS: dict[str, Callable[[], Method]] = {
    "peer/monolithic-milp": _monolithic,
    "peer/pbp-pmedian": _pbp,
    "peer/quoracle": _quoracle,
    "peer/scip": _scip,
    "peer/spopt": _spopt,
}

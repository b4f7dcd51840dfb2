"""Values of every variable at a configuration, from their meaning: the referee of the rows."""

import numpy as np

from formulations.milp.program_model import PlacementProgram
from formulations.milp.program_rows import ProgramVariables
from formulations.solvers.linear_program import LinearProgram
from placement.evaluation.score import nearest, quorum_latency
from placement.evaluation.waits.wait_latency import wait_latency
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray


def values_at(
    milp: PlacementProgram, program: LinearProgram, configuration: Configuration
) -> FloatArray:
    """Return the columns' values at a configuration."""
    assign(milp.variables, configuration)
    return np.array([var.value for var in program.columns], dtype=np.float64)


def assign(variables: ProgramVariables, configuration: Configuration) -> None:
    """Set every variable to its value at a configuration, for warm starts and for checks.

    The configuration need not be feasible; one that uses what `ProgramData` left out cannot be
    expressed and is recognised by rows that do not hold.
    """
    terms = variables.terms
    demand, rules = terms.demand, terms.problem.rules
    leader, voters, replicas = configuration.leader, configuration.voters, configuration.replicas
    for container, chosen in (
        (variables.x, replicas),
        (variables.v, voters),
        (variables.y, (leader,)),
    ):
        for site in container:
            container[site].set_value(int(site in chosen))
    near = nearest(demand.client_rtt, replicas)
    server = [int(near[row.scenario, row.client]) for row in terms.clients]
    for i, r in variables.z:
        variables.z[i, r].set_value(int(r == server[i]))
    for i, r in variables.Z:
        order = terms.clients[i].order
        served = server[i] in order and order.index(server[i]) <= order.index(r)
        variables.Z[i, r].set_value(int(served))
    for (b, r, ell), flow in variables.F.items():
        group = terms.classes[b]
        share = sum(terms.clients[i].relay for i in group.members if server[i] == r)
        # the members of a class may sum to a rounding error more than its weight
        flow.set_value(min(1.0, share / group.weight) if ell == leader else 0.0)
    for (i, r, ell), flow in variables.f.items():
        flow.set_value(int(server[i] == r and ell == leader))
    # with fewer voters than votes no wait is right: the row that counts voters breaks then
    votes = min(rules.quorum, len(voters))
    waits = {
        k: float(quorum_latency(demand.site_rtt[k], leader, voters, votes))
        for k in {k for k, _ in terms.radii}
    }
    for (k, ell, j), chosen_radius in variables.t.items():
        hit = ell == leader and terms.radii[k, ell][j] == waits[k]
        chosen_radius.set_value(int(hit))
    for (k, ell, j), reached in variables.T.items():
        hit = ell == leader and terms.radii[k, ell][j] >= waits[k]
        reached.set_value(int(hit))
    ended = _ends(variables, configuration, leader)
    for (j, k, ell, i), reached in variables.E.items():
        hit = ell == leader and terms.led[j, k, ell].radii[i] >= ended[j, k]
        reached.set_value(int(hit))
    for (ell, r), vote in variables.u.items():
        vote.set_value(int(ell == leader and r in voters))
    for k, q in variables.q.items():
        q.set_value(waits[k] / variables.longest_wait(k))
    heard: dict[int, set[int]] = {}
    for k in waits:
        # the leader hears itself first, whatever other sites lie at distance 0
        others = np.array(sorted(set(voters) - {leader}), dtype=np.intp)
        order = np.argsort(demand.site_rtt[k, leader, others], kind="stable")
        heard[k] = {leader, *others[order[: rules.quorum - 1]].tolist()}
    for (k, ell, r), vote in variables.g.items():
        vote.set_value(int(ell == leader and r in heard[k]))
    for (ell, r), held in variables.w.items():
        held.set_value(int(ell == leader and r in replicas))
    for (n, d), covered in variables.e.items():
        group_rule = rules.groups[n]
        members = voters if group_rule.role == "voters" else replicas
        covered.set_value(int(d in group_rule.labels[list(members)]))


def _ends(
    variables: ProgramVariables, configuration: Configuration, leads: int
) -> dict[tuple[int, int], float]:
    """Return how long each wait beside the rounds of votes lasts, by (wait, scenario)."""
    demand, rules = variables.terms.demand, variables.terms.problem.rules
    leader = np.array([leads], dtype=np.intp)
    lasts = {}
    for j, k in {key[:2] for key in variables.terms.led}:
        world = (demand.waits[j], demand.client_rtt[k], demand.site_rtt[k])
        voters, replicas = np.array([configuration.voters]), np.array([configuration.replicas])
        near = leader[np.newaxis]  # no part of a leader's wait
        long = wait_latency(*world, leader, voters, replicas, near, rules.quorum)
        lasts[j, k] = float(long[0, 0])
    return lasts

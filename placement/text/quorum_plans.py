"""The plan of a quorum store as text: the answer, and the worst losses."""

from __future__ import annotations

from placement.quorumstore.plan import QuorumPlan
from placement.support.status import Status
from placement.text import escape, number_text, table, wrap

_MOST_LOSSES = 8


def _value(plan: QuorumPlan) -> str:
    """Return the value of the goal with its name."""
    goal = plan.problem.goal
    names = {
        "threshold": "max(T_r, T_w)",
        "reads": "T_r",
        "writes": "T_w",
        "weighted": f"{goal.read_weight:g} T_r + {goal.write_weight:g} T_w",
    }
    text = f"{plan.value:,.2f} ms, {names[goal.target.value]}"
    if not plan.problem.rules.contingency:
        return text
    normal, worst = goal.normal_weight, goal.worst_weight
    if (normal, worst) == (0, 1):
        return text + ", worst loss"
    return text + (f", {normal:g} normal + {worst:g} worst loss" if worst else ", normal")


def _known(plan: QuorumPlan) -> str:
    """Return the status in words, and whether something proven has no certificate."""
    proven = plan.status in (Status.OPTIMAL, Status.INFEASIBLE)
    bare = proven and not plan.certified
    return f"{plan.status}, no certificate" if bare else str(plan.status)


def quorum_plan_text(plan: QuorumPlan) -> str:
    """Return the configuration with its quorums, its value, and the thresholds after losses."""
    model = "N-1C" if plan.problem.rules.contingency else "BA"
    if plan.configuration is None:
        reasons = [wrap(f"  {escape(reason)}", indent="    ") for reason in plan.reasons]
        head = f"{_known(plan)}: no configuration ({model}, {plan.method})"
        return "\n".join([head, *reasons])
    worst_first = sorted(plan.losses[1:], key=lambda effect: -effect.threshold)[:_MOST_LOSSES]
    rows = [
        [
            "+".join(effect.lost) or "(nothing)",
            number_text(effect.read_threshold),
            number_text(effect.write_threshold),
        ]
        for effect in (plan.normal, *worst_first)
    ]
    return "\n".join(
        [
            f"{_known(plan)} ({model}, {plan.method}): {_value(plan)}",
            f"Replicas  {escape(', '.join(plan.replicas))}",
            f"N-R-W     {len(plan.replicas)}-{plan.read_quorum}-{plan.write_quorum}",
            f"Mean      {plan.mean_latency:.2f} ms in normal operation",
            "",
            "Thresholds, worst losses first",
            table(["lost", "read ms", "write ms"], rows, right=(1, 2), indent="  "),
        ]
    )

"""Read strategies that need no search: the paper's, and the closest majority of each gateway."""

from __future__ import annotations

from heuristics.online.reads.paper_paths import others_of
from placement.errors import InputError
from placement.online.reads import Quorum, ReadProblem, ReadStrategy, ThresholdQuorums
from placement.online.reads.leader_share import uniform_share

__all__ = ["fixed_strategies"]

_MOST_QUORUMS = 20_000
"""Quorums of a gateway above which the uniform strategy is left out."""


def fixed_strategies(problem: ReadProblem) -> dict[str, ReadStrategy]:
    """Return the strategies by name.

    - ``leaseholder``: every read goes to L.
    - ``nearest majority``: every gateway but L asks the majority without L that answers first.
    - ``uniform majority``: the majority is drawn uniformly (the paper's quorum read).
    - ``leader or majority, x``: the paper's coin: L with probability x, else a uniform majority; x
      evens out the reads of all nodes where gateways are alike
      (:func:`placement.online.reads.leader_share.uniform_share`).

    Raises
    ------
    InputError
        For a problem without a leaseholder, or whose quorums are not thresholds.

    Notes
    -----
    O(quorums); the strategies with uniform majorities are left out above 20,000 per gateway.
    """
    leader, system = problem.leader, problem.quorums
    if leader is None or not isinstance(system, ThresholdQuorums):
        raise InputError(
            "no leaseholder, or no majorities", field="problem", value=system,
            expected="a leaseholder and ThresholdQuorums",
        )  # fmt: skip
    alone: Quorum = (leader,)
    gateways = range(problem.nodes)

    def nearest(gateway: int) -> Quorum:
        if gateway == leader:
            return alone
        near = sorted(others_of(gateway, problem.nodes, leader), key=lambda v: (
            float(problem.rtt[gateway, v]), v))  # fmt: skip
        return tuple(sorted((gateway, *near[: problem.nodes // 2])))

    found = {
        "leaseholder": ReadStrategy.of(problem, [{alone: 1.0} for _ in gateways]),
        "nearest majority": ReadStrategy.of(problem, [{nearest(g): 1.0} for g in gateways]),
    }
    if max(system.count(gateway) for gateway in gateways) > _MOST_QUORUMS:
        return found

    def uniform(share: float) -> ReadStrategy:
        mixtures: list[dict[Quorum, float]] = []
        for gateway in gateways:
            quorums = [] if gateway == leader else list(system.quorums(gateway))
            mixture = {quorum: (1.0 - share) / len(quorums) for quorum in quorums}
            mixtures.append({alone: share if quorums else 1.0, **mixture})
        return ReadStrategy.of(problem, mixtures)

    share = float(uniform_share(problem.nodes))
    found["uniform majority"] = uniform(0.0)
    found[f"leader or majority, x = {share:.3f}"] = uniform(share)
    return found

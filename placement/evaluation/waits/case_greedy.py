"""The cheapest sites that meet a case of a leader's waits, by the greedy of its blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from placement.evaluation.waits.wait_cases import FORBIDDEN, WaitCases

__all__ = ["CaseGreedy"]


class CaseGreedy:
    """The cases of one leader, and the least sums of sites that meet them.

    Parameters
    ----------
    cases
        Of the leader alone.
    """

    def __init__(self, cases: WaitCases) -> None:
        self.number = len(cases.price)
        self._member: list[list[int]] = cases.member.tolist()
        self._blocks: list[list[tuple[int, int, int]]] = [
            list(zip(least[:count], parent[:count], family[:count], strict=True))
            for count, least, parent, family in zip(
                cases.count.tolist(),
                cases.least.tolist(),
                cases.parent.tolist(),
                cases.family.tolist(),
                strict=True,
            )
        ]

    def met(self, replicas: Collection[int]) -> list[int]:
        """Return the numbers of the cases that a replica set meets."""
        return [
            case
            for case in range(self.number)
            if not any(self._member[case][s] & FORBIDDEN for s in replicas)
            and all(
                sum(self._member[case][s] >> block & 1 for s in replicas) >= least
                for block, (least, _, _) in enumerate(self._blocks[case])
            )
        ]

    def cheapest(
        self, case: int, held: Collection[int], order: Iterable[int], rho: Sequence[int],
        least: int, most: int,
    ) -> int | None:  # fmt: skip
        """Least Σ ρ over `least`..`most` sites that, beside those held, meet a case.

        Parameters
        ----------
        case
            Its number.
        held
            Sites that hold a replica.
        order
            The others that may, by ascending ρ.
        rho
            ρ of every site.

        Returns
        -------
        int or None
            A lower bound of it: the largest of the least sums for one family. None: impossible.
        """
        member, largest = self._member[case], None
        if any(member[s] & FORBIDDEN for s in held):
            return None
        able = [s for s in order if not member[s] & FORBIDDEN]
        families = {family for _, _, family in self._blocks[case]} or {0}
        for family in families:
            shortage = _FamilyShortage(self._blocks[case], family, [member[s] for s in held])
            fillers, wanted = most - shortage.total, max(least - shortage.total, 0)
            total = 0
            for s in able:
                if shortage.total and shortage.lessened_by(member[s]):
                    total += rho[s]
                elif fillers > 0 and (rho[s] < 0 or wanted > 0):
                    fillers, wanted, total = fillers - 1, wanted - 1, total + rho[s]
                elif not shortage.total:
                    break
            if shortage.total or fillers < 0 or wanted > 0:
                return None
            largest = total if largest is None else max(largest, total)
        return largest


class _FamilyShortage:
    """Sites that the blocks of one family still lack.

    Attributes
    ----------
    total
        Sites that are needed at least.
    """

    def __init__(
        self, blocks: Sequence[tuple[int, int, int]], family: int, held: Sequence[int]
    ) -> None:
        self._chain = [block for block, (_, _, of) in enumerate(blocks) if of == family]
        self._open = [
            least - sum(bits >> block & 1 for bits in held)
            for block, (least, _, _) in enumerate(blocks)
        ]
        self._within = [0] * len(blocks)
        self.total = 0
        for block in self._chain:  # smaller blocks come first
            parent = blocks[block][1]
            if parent >= 0:
                self._within[parent] += self._lacking(block)
            else:
                self.total += self._lacking(block)

    def _lacking(self, block: int) -> int:
        return max(0, self._open[block], self._within[block])

    def lessened_by(self, bits: int) -> bool:
        """Count a site of these blocks if one less is needed then, and return whether it is."""
        before: list[tuple[int, int]] = []
        less = 0
        for block in self._chain:
            if bits >> block & 1:
                before.append((block, less))
                left = max(0, self._open[block] - 1, self._within[block] - less)
                less = self._lacking(block) - left
        if less:
            for block, inner in before:
                self._open[block] -= 1
                self._within[block] -= inner
            self.total -= 1
        return bool(less)

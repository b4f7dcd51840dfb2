"""The rules a quorum store is placed under: percentiles, quorums, failures, redirection.

Source: Shankaranarayanan P N, Sivakumar, Rao, Tawarmalani, "Performance sensitive replication in
geo-distributed cloud datastores", DSN 2014; the availability and consistency rules are those of
Dynamo and Cassandra.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import Enum
from fractions import Fraction

from placement.errors import InputError
from placement.support import checks
from placement.support.checks import number

_DENOMINATOR = 10**6
"""Percentiles are read as the closest fraction with at most this denominator."""


class Redirect(Enum):
    """Sites that serve the clients of a lost site, and the latency of their requests then.

    With c(f) the surviving site closest to f (smallest d[f, c], ties to the lower index):

    - ``KEEP``: only the stored copy at f is lost; its clients and their coordinator stay:
      E[f, j] = d[f, j].
    - ``CLOSEST``: the users move to c(f); latency is measured there: E[f, j] = d[c(f), j].
    - ``HOP``: the application stays in f and asks the store in c(f):
      E[f, j] = d[f, c(f)] + d[c(f), j]. This is the EC2 experiment of the paper.

    In every mode the replica at f answers no request.
    """

    KEEP = "keep"
    CLOSEST = "closest"
    HOP = "hop"


class LossScope(Enum):
    """Sites that may be lost at once.

    - ``SITE``: any `failures` sites.
    - ``REGION``: all sites of any one region.
    """

    SITE = "site"
    REGION = "region"


@dataclass(frozen=True, slots=True)
class StoreRules:
    """Rules for every configuration of a key, and the meaning of "latency".

    Parameters
    ----------
    contingency
        False: only the latency of normal operation counts (BA, basic availability). True: the worst
        latency over normal operation and every loss counts (N-1C, N−1 contingency).
    redirect
        Who serves the clients of a lost site; see :class:`Redirect`.
    read_fraction, write_fraction
        p in (0, 1]: share of the reads (writes) that must lie within the threshold, in each
        scenario on its own.
    max_replicas
        Largest N to consider. Ignored where `replicas` fixes it.
    replicas, read_quorum, write_quorum
        N, R, W where policy fixes them; None leaves them to the optimiser.
    failures
        F, number of sites that may be lost at once with both quorums still available.
    loss
        Sites or regions; see :class:`LossScope`.
    distinct_regions
        Whether two replicas may never share a region.

    Raises
    ------
    InputError
        For a value outside its range. Rules that contradict each other (R above what survives, say)
        are no error: solving gives ``infeasible`` with the reasons.

    Notes
    -----
    Strict quorums: consistency R + W >= N + 1; availability: after any loss at least max(R, W)
    replicas remain, which for the loss of any F sites is R, W <= N − F.
    """

    contingency: bool = False
    _: KW_ONLY
    redirect: Redirect = Redirect.HOP
    read_fraction: float = 0.9
    write_fraction: float = 0.9
    max_replicas: int = 5
    replicas: int | None = None
    read_quorum: int | None = None
    write_quorum: int | None = None
    failures: int = 1
    loss: LossScope = LossScope.SITE
    distinct_regions: bool = False

    def __post_init__(self) -> None:
        checks.flag(self.contingency, "contingency")
        checks.flag(self.distinct_regions, "distinct_regions")
        check_member(self.redirect, Redirect, "redirect")
        check_member(self.loss, LossScope, "loss")
        fractions = (("read_fraction", self.read_fraction), ("write_fraction", self.write_fraction))
        for field, share in fractions:
            if number(share, field, minimum=1 / _DENOMINATOR) > 1:
                raise InputError(
                    "out of range",
                    field=field,
                    value=share,
                    expected="a share in (0, 1], not per cent",
                )
        whole = (
            ("max_replicas", self.max_replicas, 1),
            ("replicas", self.replicas, 1),
            ("read_quorum", self.read_quorum, 1),
            ("write_quorum", self.write_quorum, 1),
            ("failures", self.failures, 0),
        )
        for field, count, least in whole:
            optional = field not in ("max_replicas", "failures")
            if count is None and optional:
                continue
            object.__setattr__(self, field, checks.whole(count, field, minimum=least))
        if self.loss is LossScope.REGION and self.failures != 1:
            raise InputError(
                "only one region is lost at a time",
                field="failures",
                value=self.failures,
                expected="1 with LossScope.REGION",
            )

    def pairs(self, sites: int) -> tuple[tuple[int, int, int], ...]:
        """All (N, R, W) worth looking at among `sites` sites, in the order of the tie rule.

        For a fixed set of replicas every order statistic grows with R and W, in every scenario, so
        a quorum that is larger than R + W = N + 1 asks for is never better ("P2"): only such pairs
        are listed, unless both quorums are fixed by policy. Availability R, W <= N − F then gives
        R, W >= F + 1. One pair for N = 3, two for N = 4, three for N = 5 (F = 1).
        """
        sizes = range(1, min(self.max_replicas, sites) + 1)
        if self.replicas is not None:
            sizes = range(self.replicas, min(self.replicas, sites) + 1)
        found = []
        for total in sizes:
            quorums = [(read, total + 1 - read) for read in range(1, total + 1)]
            if self.read_quorum is not None and self.write_quorum is not None:
                quorums = [(self.read_quorum, self.write_quorum)]
            found += [
                (total, read, write)
                for read, write in quorums
                if self.read_quorum in (None, read)
                and self.write_quorum in (None, write)
                and read + write > total
                and max(read, write) <= total - self.failures
            ]
        return tuple(found)

    def needed(self, fraction: float, total: int) -> int:
        """Requests that must be in time: ⌈p·A⌉ in exact arithmetic.

        p is read as the closest fraction with a denominator of at most 10^6, so 0.9 means 9/10 and
        not the binary number next to it; the result is the same for proportional demands.
        """
        share = Fraction(fraction).limit_denominator(_DENOMINATOR) * total
        return -(-share.numerator // share.denominator)


def check_member(value: object, kind: type[Enum], field: str) -> None:
    """Refuse anything but a member of `kind`, strings included: typos must not pass silently."""
    if not isinstance(value, kind):
        names = ", ".join(f"{kind.__name__}.{member.name}" for member in kind)
        raise InputError("unknown choice", field=field, value=value, expected=names)

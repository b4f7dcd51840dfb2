"""Reads from the leaseholder or from a majority, in a database replicated by Raft.

The question and the protocols are those of V. Arora, T. Mittal, D. Agrawal, A. El Abbadi, X. Xue,
Zhiyanan, Zhu Jianfeng, "Leader or majority: why have one when you can have both? Improving read
scalability in Raft-like consensus protocols", HotCloud 2017: send a share x of the reads to the
leaseholder and the others to majorities without it.

- closed forms: :mod:`~placement.online.reads.leader_share`;
- optimal strategies: :class:`ReadProblem`, :func:`evaluate`, :func:`lower_bound`;
- what clients see: :mod:`~placement.online.reads.read_simulator`, and whether it was linearizable:
  :mod:`~placement.online.reads.linearizability`;
- what they see while leaders fail: :mod:`~placement.online.reads.elections`.
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

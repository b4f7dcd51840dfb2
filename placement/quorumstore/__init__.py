"""Leaderless quorum stores (Dynamo, Cassandra): the question, its evaluator and its answer.

The model is that of Shankaranarayanan P N, Sivakumar, Rao, Tawarmalani, "Performance sensitive
replication in geo-distributed cloud datastores", DSN 2014: per key, choose replica sites and
N, R, W so that a percentile of read and write latency is smallest, in normal operation (BA) or in
the worst case over the loss of any one site (N-1C). Exact methods live in
``formulations.quorumstore``, fast ones in ``heuristics.quorumstore``.
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

"""Replica selection: which of a group's servers answers a read, and when it is sent.

After L. Suresh, M. Canini, S. Schmid, A. Feldmann, "C3: Cutting tail latency in cloud data stores
via adaptive replica selection", NSDI 2015. This package has the cluster, the sample path, the
result of a run and the offline window; the policies and the compiled simulator are in
``heuristics.online.selection``, optima in ``formulations.online.selection``.
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

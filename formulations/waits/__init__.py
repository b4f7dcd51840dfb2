"""Placement for operations with waits: the search over sets of replicas.

set_search           the method ``sets``: parts, limits, the plan
set_tables           the numbers of a question as the kernel reads them
exact                the part ``exact.waits`` of the method ``exact``
_kernel, csrc        compiled search (C, limited API; optional)
"""

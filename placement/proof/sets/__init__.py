"""Proofs about operations with waits by a search over replica sets.

prefix_bounds        lower bounds on all sets that begin alike
set_walk             the tree of beginnings, as writer and checker walk it
set_check            check of a certificate
"""

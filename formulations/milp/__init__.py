"""Tier 3 as one mixed-integer linear program, written in Pyomo and solved by HiGHS: a reference.

The whole of placement.problem.Problem goes in: every constraint, RTTs that vary by interval,
prices. Tiers 2 and 1 are the same program with the replicas (and voters) pinned.

==============  ==========================================================================
recipes         the named formulations: which rows express forwarding, nearest, quorum
terms           the data of the program: index sets, coefficients, scale, safe reductions
variables       decision variables, and their values at a given configuration
constraints     roles, counts, diversity, money
latency         nearest replica, forwarding, quorum: the rows that make up Eq. 1
objective       Eq. 1 plus weighted cost, scaled
model           the Pyomo model put together; configuration from a solution
program         the Pyomo model as arrays, for HiGHS
highs           one guarded run of HiGHS: time, Ctrl-C, incumbents, valid bound
relaxation      LP bound and size of a recipe
search          rounds of HiGHS, what is claimed and what is checked
proof           branch and bound on safe LP bounds: a proof without tolerances
start           a configuration to start from
method          the method ``milp``
==============  ==========================================================================

Notation (placement.evaluation.score has Eq. 1): sites S, clients C, scenarios k (one, unless RTTs
vary), leader ℓ, "r ⪯_c s" client c's strict order of sites by (RTT, site order), m the votes a
commit waits for.
"""

"""Tier 3 as one mixed-integer linear program, written in Pyomo and solved by HiGHS: a reference.

The whole of placement.problem.Problem goes in: every constraint, RTTs that vary by interval,
prices. Tiers 2 and 1 are the same program with the replicas (and voters) pinned.

==============  ===========================================================================
recipes         the named formulations: which rows express forwarding, nearest, quorum
program_data    the data of the program: index sets, coefficients, scale, safe reductions
program_model   the Pyomo model: variables, rows, and the objective, Eq. 1 plus weighted cost
lp_strength     LP bound and size of a recipe
cutting_rounds  rounds of HiGHS, its claims and their checks; proof on safe LP bounds
find_start      a configuration to start from
method          the method ``milp``: this program, or those of formulations.linear
==============  ===========================================================================

Notation (placement.evaluation.score has Eq. 1): sites S, clients C, scenarios k (one, unless RTTs
vary), leader ℓ, "r ⪯_c s" client c's strict order of sites by (RTT, site order), m the votes a
commit waits for.
"""

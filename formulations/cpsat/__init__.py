"""Tier 3 in CP-SAT, one model per candidate leader (method ``cp-sat``).

With the leader ℓ given, a client is served no farther than ℓ (ℓ holds a replica), the cost of
serving it from a site is one number, and the whole model is Boolean:

    replica[r]   site r holds a replica
    voter[r]     site r votes
    empty[P]     no site of the set P holds a replica; P runs over the prefixes of the clients'
                 distance chains, so that clients with a common prefix share the literal
    slow[k, i]   in scenario k fewer than m voters lie within the i-th distinct RTT of the leader

    empty[P ∪ {r}] = empty[P] ∧ ¬replica[r]               (clauses along each chain)
    ¬slow[k, i] ⇒ Σ_{r: d(ℓ, r) <= ρ_i} voter[r] >= m     (cardinality with an enforcement literal)
    min  Σ_c ( cost_c(o₁) + Σ_j (cost_c(o_{j+1}) − cost_c(o_j)) · empty[{o₁ … o_j}] )
         + Σ_k D_k (ρ_0 + Σ_i (ρ_{i+1} − ρ_i) · slow[k, i])

where o₁, o₂, … are the client's sites by (RTT, site order) up to the leader and
cost_c(r) = A_c·d(c, r) + B_c·d(r, ℓ). The telescoped sum counts the client at its nearest replica
and nowhere else, also where a farther one would be cheaper. It is the radius (or distance-chain)
formulation of the p-median problem (Elloumi, "A tighter formulation of the p-median problem",
J. Comb. Optim. 19, 2010), with the order made strict and the relay to the leader added.

A single model with all leaders needs the products of "nearest" and "leader"; on 32 measured AWS
regions with |R| = 5 it ran for tens of seconds where the sequence of models takes a few.
"""

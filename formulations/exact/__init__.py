"""Our Lagrangean branch and bound (method ``exact``): proven optima in milliseconds.

===================  ==============================================================================
reduced_problem      one problem as the engine sees it: demand, rules, prices
certificate_events   the mathematics of the bound, and the events that re-prove it
kernel               the compiled kernel, as the search calls it
_kernel, csrc        its C sources (limited API; optional)
_scenarios           compiled search over scenarios with thresholds (csrc/scenarios; optional)
branch_and_bound     the search: bounds of all leaders, then trees; limits, reports, valid bounds
relaxation_tree      the tree whose bounds come from the linear relaxation of the p-median problem
no_plan_proof        proof that there is no configuration
method               the method ``exact``
tuning               all constants that decide about speed alone
===================  ==============================================================================
"""

"""Our Lagrangean branch and bound (method ``exact``): proven optima in milliseconds.

===================  ==============================================================================
reduced_problem      one problem as the engine sees it: demand, rules, prices
certificate_events   the mathematics of the bound, and the events that re-prove it
kernel               the interface of the two kernels
_kernel, csrc        compiled kernel (C, limited API; optional)
_scenarios           compiled search over scenarios with thresholds (csrc/scenarios; optional)
numpy_kernel         a sub-package: the same bound and tree in NumPy, same optimum, slower
many_clients         the same bound by sweeps over the RTTs; clients added up in trees
branch_and_bound     the search: bounds of all leaders, then trees; limits, reports, valid bounds
multi_size           one search for several numbers of replicas
relaxation_tree      the tree whose bounds come from the linear relaxation of the p-median problem
no_plan_proof        proof that there is no configuration
method               the method ``exact``
tuning               all constants that decide about speed alone
===================  ==============================================================================
"""

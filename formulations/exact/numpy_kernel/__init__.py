"""The kernel in NumPy: the fallback where no C compiler was found, and a second opinion in tests.

===================  ==============================================================================
kernel               the interface of :mod:`formulations.exact.kernel`: root bounds and the tree
tree_node            the problem under one leader, and a node of its tree
lagrangean_bound     the bound of a node, and the bounds with one site fixed
inner_minimum        the inner problem of the bound
swap_descent         feasible configurations by swaps
===================  ==============================================================================
"""

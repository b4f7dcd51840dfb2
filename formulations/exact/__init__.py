"""Our Lagrangean branch and bound (method ``exact``): proven optima in milliseconds.

===============  ===========================================================================
core             one problem as the engine sees it: demand, rules, prices
certificate      the mathematics of the bound, and what re-proves it without the search
kernel           the two kernels behind one face
_kernel, csrc    compiled kernel (C, limited API; optional)
numpy_kernel     the same bound and tree in NumPy: same optimum, slower
engine           leaders one after another: scan, then trees; limits, reports, honest bounds
method           the method ``exact``
===============  ===========================================================================
"""

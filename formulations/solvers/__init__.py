"""The one place that calls solvers: HiGHS, CP-SAT, linear programs as arrays, safe bounds."""

"""Linear programs from the rows of measures, leader by leader, for HiGHS and CP-SAT."""

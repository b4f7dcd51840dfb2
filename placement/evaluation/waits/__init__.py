"""Waits: how long they last, their cases for the engine and the checker, rows, refusals.

wait_latency         length of a wait for given members
wait_cases           cases of the waits of a leader, and the least sum of sites that meet a case
wait_floors          lower bounds of waits that vary by interval
wait_rows            waits as linear rows, for milp and cp-sat
wait_checks          refusals and notes
"""

#!/bin/bash
# PuLP 3.3.2: the status is Optimal after a time limit too, if there is any plan. LpStatus[problem.status], which the
# first examples print, says the same of a first plan and of a proven one; only sol_status tells them apart.
#
# Guess before the run: Not Solved, or a word of its own, as HiGHS (kTimeLimit), SCIP (timelimit) and OR-Tools (FEASIBLE) have.
# Seen: of a 3-median of 30 sites whose optimum is 402, CBC's plan of 630 after a limit of 0.001 s is Optimal; sol_status
# is "Solution Found", and "Optimal Solution Found" without the limit. With HiGHS it is the same, once it has a plan.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check pulp==3.3.2
cat > ask.py <<'PY'
import random
import sys

import pulp

SITES = range(30)
random.seed(1)
rtt = [[random.randint(1, 100) for _ in SITES] for _ in SITES]


def ask(limit):
    problem = pulp.LpProblem("median", pulp.LpMinimize)
    is_open = [pulp.LpVariable(f"open_{i}", cat="Binary") for i in SITES]
    serves = [[pulp.LpVariable(f"serves_{j}_{i}", 0, 1) for i in SITES] for j in SITES]
    problem += pulp.lpSum(rtt[j][i] * serves[j][i] for j in SITES for i in SITES)
    problem += pulp.lpSum(is_open) == 3
    for j in SITES:
        problem += pulp.lpSum(serves[j]) == 1
        for i in SITES:
            problem += serves[j][i] <= is_open[i]
            serves[j][i].setInitialValue(int(i == 0))
    for i in SITES:
        is_open[i].setInitialValue(int(i < 3))
    problem.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=limit, warmStart=True))
    return pulp.LpStatus[problem.status], pulp.LpSolution[problem.sol_status], round(pulp.value(problem.objective))


early, late = ask(0.001), ask(600)
print("limit 0.001 s:", *early, "| limit 600 s:", *late)
same = early[:2] == ("Optimal", "Solution Found") and late == ("Optimal", "Optimal Solution Found", 402)
sys.exit(0 if same and early[2] > 402 else "the behaviour has changed")
PY
env/bin/python ask.py

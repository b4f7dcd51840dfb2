#!/bin/bash
# Erlang C (the chance that a request waits for one of c servers) by pyworkforce 0.5.1 and erlanglib 1.2.0: with a load
# above c, where the queue grows for ever, both return a number above 1 without a word, and erlanglib a negative wait and service
# level. Below c both follow the formula.
#
# Guess before the run: an error, 1, or infinity for the wait.
# Seen: load 10 on 8 servers: probability 1.957 by both; a mean wait of -176 s and a service level of -1.44 by erlanglib.
# Load 10 on 11 servers: 0.682 by both.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check pyworkforce==0.5.1 erlanglib==1.2.0
cat > ask.py <<'PY'
import sys

import erlanglib
from pyworkforce.queuing import ErlangC

calls = ErlangC(transactions=100, aht=3, asa=1 / 3, interval=30)
found = {}
for servers in (11, 8):
    chance = erlanglib.erlang_c(servers, 10)
    wait = erlanglib.average_speed_of_answer(servers, 10, chance, 180)
    level = erlanglib.service_level(servers, 10, chance, 20, 180)
    numbers = calls.waiting_probability(servers), chance, wait, level
    found[servers] = [round(float(number), 3) for number in numbers]
    print(f"load {calls.intensity} on {servers}: waits by pyworkforce, by erlanglib; mean wait; level:", found[servers])
same = found[8][:2] == [1.957, 1.957] and found[8][2] < 0 and found[8][3] < 0 and found[11][:2] == [0.682, 0.682]
sys.exit(0 if same else "the behaviour has changed")
PY
env/bin/python ask.py

#!/bin/bash
# clingo 5.8.3 (answer set programming, Python package): numbers are 32-bit integers, and products that do not fit wrap without
# a word. A site with a round-trip time of 60,000 µs for 50,000 requests costs -1,294,967,296, so the optimum is the far site.
#
# Guess before the run: costs have 64 bits, as sums of weights have in MaxSAT solvers; a product that does not fit is an error.
# Seen: of two sites of 20,000 and 60,000 µs, 50,000 requests each, the far one is proven optimal with a negative cost. In ms
# the near one is optimal, with 1,000,000. The logger of clingo gets no message.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib clingo==5.8.3
cat > ask.py <<'PY'
import sys

import clingo

RULES = "1 { open(S) : site(S, _, _) } 1. #minimize { R * N, S : open(S), site(S, R, N) }. #show open/1."
found = []
for unit, near, far in (("us", 20_000, 60_000), ("ms", 20, 60)):
    said = []
    control = clingo.Control(logger=lambda *message: said.append(message))
    control.add("base", [], f"site(near, {near}, 50000). site(far, {far}, 50000). {RULES}")
    control.ground([("base", [])])
    best = []
    with control.solve(yield_=True) as answers:
        best = [([str(atom) for atom in model.symbols(shown=True)], model.cost) for model in answers]
        proven = answers.get().exhausted
    found.append((*best[-1], proven, len(said)))
    print(f"clingo {clingo.__version__}, {unit}: {best[-1][0]}, cost {best[-1][1]}, proven {proven}, messages {len(said)}")
wanted = [(["open(far)"], [-1_294_967_296], True, 0), (["open(near)"], [1_000_000], True, 0)]
sys.exit(0 if found == wanted else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py

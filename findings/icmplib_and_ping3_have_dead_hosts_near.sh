#!/bin/bash
# Two ping libraries have an RTT of 0 for a host that does not answer, so that it is the nearest of all: icmplib 3.0.4
# has means, least and largest of 0.0 ms after losses alone, and ping3 5.1.6 returns False, which counts as 0, for a
# name without an address.
#
# Guess before the run: None, not a number or infinity by icmplib; None (as for a lost packet) or an error by ping3.
# Seen: icmplib 0.0 for each; min() of two hosts, one at 12 ms and one dead, is the dead one. ping3 False.
#
# Needs Python and pip. Nothing is sent: the results of icmplib are made from lists of RTTs, and a name that ends with
# .invalid has no address.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check icmplib==3.0.4 ping3==5.1.6
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
import ping3
from icmplib import Host
dead, alive = Host("192.0.2.1", 3, []), Host("192.0.2.2", 3, [12.0, 12.5, 11.5])
print(f"icmplib {version('icmplib')}: dead min {dead.min_rtt}, avg {dead.avg_rtt}, max {dead.max_rtt}, alive {alive.avg_rtt}")
nearest = min((dead, alive), key=lambda host: host.avg_rtt)
print("nearest:", nearest.address, "is_alive", nearest.is_alive)
unknown = ping3.ping("site.invalid", timeout=1, unit="ms")
print(f"ping3 {ping3.__version__}: {unknown!r}, mean with a host at 12 ms: {(unknown + 12) / 2}")
same = (dead.min_rtt, dead.avg_rtt, dead.max_rtt) == (0, 0, 0) and nearest is dead and unknown is False
sys.exit(0 if same else "the behaviour has changed")
PY
env/bin/python ask.py

#!/bin/bash
# ripe.atlas.sagan 2.0.1 (the RIPE NCC's parser of RIPE Atlas results): last_median_rtt of a traceroute is the RTT of the
# last router that answered when the target did not. A target behind a filter is thus as near as the last router,
# and hops without an answer after it make no difference; total_hops counts them.
#
# Guess before the run: last_median_rtt is None unless the last hop is the target.
# Seen: 9.0 ms, the router's, from a traceroute whose third and last hop (255) had no answer; is_success is False.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check ripe.atlas.sagan==2.0.1 python-dateutil==2.9.0.post0 pytz==2026.6
cat > ask.py << 'PY'
import sys
from importlib.metadata import version
from ripe.atlas.sagan import TracerouteResult
print("ripe.atlas.sagan", version("ripe.atlas.sagan"))
def hop(number, address, rtt):
    return {"hop": number, "result": [{"from": address, "rtt": rtt, "size": 28, "ttl": 60}] * 3}
def ask(hops):
    result = TracerouteResult({
        "af": 4, "dst_addr": "192.0.2.9", "dst_name": "192.0.2.9", "endtime": 1400000010, "from": "192.0.2.2",
        "fw": 4680, "lts": 1, "msm_id": 5001, "msm_name": "Traceroute", "paris_id": 1, "prb_id": 1, "proto": "ICMP",
        "size": 40, "src_addr": "192.0.2.2", "timestamp": 1400000000, "type": "traceroute", "result": hops})
    return result.last_median_rtt, result.total_hops, result.is_success
routers = [hop(1, "192.0.2.3", 1.0), hop(2, "192.0.2.4", 9.0)]
reached = ask([*routers, hop(3, "192.0.2.9", 80.0)])
silent = ask([*routers, {"hop": 255, "result": [{"x": "*"}] * 3}])
print("last_median_rtt, total_hops, is_success: the target answers", reached, "the target is silent", silent)
sys.exit(0 if reached == (80.0, 3, True) and silent == (9.0, 3, False) else "the behaviour has changed")
PY
env/bin/python ask.py

#!/bin/bash
# skyplane 0.3.2: transfer prices of Google Cloud go by the first word of the region, so "us" and "northamerica" (Montreal) are
# two continents, at eight times the price of a pair of US regions. To other clouds, Singapore has the price that the code has in
# mind for Jakarta, and Jakarta that of Singapore.
#
# Guess before its code was read: the prices of the provider's list, with one for all pairs of regions in North America.
# Seen: Iowa to Montreal 0.08 USD per GB, Iowa to South Carolina 0.01. To other clouds Singapore (asia-southeast1) 0.19 and
# Jakarta (asia-southeast2) 0.14, though within Google Cloud Jakarta is the dear one, 0.15 to 0.08.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check --no-deps skyplane==0.3.2
env/bin/pip install -q --disable-pip-version-check rich==13.9.4 requests==2.32.3 cachetools==5.5.0 paramiko==3.5.0 typer==0.15.1 \
    cryptography==44.0.0 2> log || { cat log; exit 2; }
cat > ask.py <<'PY'
import sys
from importlib.metadata import version

from skyplane.compute.cloud_provider import CloudProvider

iowa, carolina, montreal = "gcp:us-central1-a", "gcp:us-east1-b", "gcp:northamerica-northeast1-a"
singapore, jakarta, other = "gcp:asia-southeast1-a", "gcp:asia-southeast2-a", "aws:us-east-1"
pairs = [(iowa, carolina), (iowa, montreal), (singapore, iowa), (jakarta, iowa), (singapore, other), (jakarta, other)]
found = [CloudProvider.get_transfer_cost(*pair) for pair in pairs]
for pair, price in zip(pairs, found):
    print("skyplane", version("skyplane"), " -> ".join(pair), price)
sys.exit(0 if found == [0.01, 0.08, 0.08, 0.15, 0.19, 0.14] else "the behaviour has changed")
PY
env/bin/python ask.py 2> log || { cat log; exit 1; }

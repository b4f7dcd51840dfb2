#!/bin/bash
# geopy 2.5.0: a place without coordinates, (None, None), is at latitude 0 and longitude 0, so a site that is missing in a table
# is in the Gulf of Guinea, with a distance to every other one. One missing number counts as 0 too.
#
# Guess before the run: an error, as for NaN and for a text.
# Seen: (None, None) is 5,638 km from Frankfurt by great_circle, (50.1, None) is 620 km from it; NaN is a ValueError.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check geopy==2.5.0
cat > ask.py <<'PY'
import sys

from geopy.distance import great_circle

FRANKFURT = (50.1, 8.68)
found = {}
for place in ((None, None), None, (0, 0), (None, 8.68), (50.1, None), (float("nan"), 0)):
    try:
        found[place] = round(great_circle(place, FRANKFURT).km)
    except ValueError as error:
        found[place] = type(error).__name__
    print(place, "to Frankfurt:", found[place])
sys.exit(0 if list(found.values()) == [5632, 5632, 5632, 5571, "ValueError", "ValueError"] else "the behaviour has changed")
PY
env/bin/python ask.py

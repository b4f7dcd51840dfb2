#!/bin/bash
# airports 1.0.0 (npm; codes, names and places of airports, by which regions and points of presence are called): some fifty
# airports are more than 1,000 km from where airportsdata 20260905 (PyPI) has those with the same code, and 381 have no place.
# In most cases the name is the same, and the country beside the place is the right one.
#
# Guess before the run: places within 50 km of each other; codes that went to another airport may differ.
# Seen: 54 are more than 1,000 km off. Kandrian in Papua New Guinea is at 41.6 N 25.3 E, in Bulgaria; Kaieteur in Guyana at
# 6.3 S 146.3 E, off New Guinea. Some are such codes: KEA, SHO.
#
# Needs Node.js, npm, Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm init -y > /dev/null
npm install --silent --no-fund --no-audit airports@1.0.0
node -e 'require("fs").writeFileSync("airports.json", JSON.stringify(require("airports")))'
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check airportsdata==20260905 geopy==2.5.0
cat > ask.py <<'PY'
import json
import pathlib
import sys

import airportsdata
from geopy.distance import great_circle

known = airportsdata.load("IATA")
far = {}
placeless = 0
for airport in json.loads(pathlib.Path("airports.json").read_text()):
    code = airport["iata"]
    if code and not airport.get("lat"):
        placeless += 1
    elif code in known and abs(float(airport["lat"])) <= 90:
        here, there = (airport["lat"], airport["lon"]), (known[code]["lat"], known[code]["lon"])
        away = great_circle([float(number) for number in here], there).km
        if away > 1000:
            far[code] = airport["iso"], here, there, round(away), airport.get("name") == known[code]["name"]
print("no place:", placeless, "more than 1,000 km off:", len(far), "of the same name:", sum(one[-1] for one in far.values()))
for code in ("KDR", "KIA", "KEA", "SHO"):
    print(code, *far[code])
sys.exit(0 if placeless == 381 and len(far) == 54 and {"KDR", "KIA"} <= set(far) else "the behaviour has changed")
PY
env/bin/python ask.py

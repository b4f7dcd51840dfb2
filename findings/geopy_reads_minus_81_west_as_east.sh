#!/bin/bash
# geopy 2.5.0: Point reads a text of two coordinates in ways that put a site on the other side of the globe, without an
# error: a sign and a letter of the compass each turn the value, and a decimal comma ends a number.
#
# Guess before the run: "41.5 N -81.0 W" is 81 degrees west, or refused, since it says west twice.
# Seen: 81 degrees east; "-41.5 S" is north. Tried after that: "48,86 2,35" (Paris, as many languages write it) is
# latitude 2, longitude 35, and "48,86; 2,35" too.
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
import geopy
print("geopy", geopy.__version__)
good = True
for text, latitude, longitude in (
    ("41.5 N 81.0 W", 41.5, -81),
    ("41.5 N -81.0 W", 41.5, 81),
    ("-41.5 S, 174 E", 41.5, 174),
    ("48,86 2,35", 2, 35),
    ("48,86; 2,35", 2, 35),
):
    point = geopy.Point(text)
    print(f"{text!r}: latitude {point.latitude}, longitude {point.longitude}")
    good = good and (point.latitude, point.longitude) == (latitude, longitude)
sys.exit(0 if good else "the behaviour has changed")
PY
env/bin/python ask.py

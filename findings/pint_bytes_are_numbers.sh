#!/bin/bash
# Pint 0.25.3: a bit is a number without a unit, so bytes are numbers too, eight times as large. float() of a
# quantity of bytes is not an error but its number of bits, and bytes can be added to counts. 1 Gbit/s is 1 GHz.
#
# Guess before the run: float(1 kB) and 1 GB + 5 are a DimensionalityError, as float(1 m) and 1 m + 5 are.
# Seen: float(1 kB) is 8000.0, 1 GB + 5 is 8000000005 without a unit, and 1 Gbit/s is 10^9 Hz. So a size of 1 kB that
# is handed on as a number counts for 8,000 bytes.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib pint==0.25.3
cat > ask.py << 'PY'
import sys
import pint
unit = pint.UnitRegistry()
asked = {
    "float(1 m)": lambda: float(1 * unit.m),
    "1 m + 5": lambda: 1 * unit.m + 5,
    "float(1 kB)": lambda: float(1 * unit.kB),
    "1 GB + 5": lambda: 1 * unit.GB + 5,
    "1 Gbit/s in Hz": lambda: (1 * unit.Gbit / unit.s).to("Hz"),
}
print("pint", pint.__version__)
found = []
for text, ask in asked.items():
    try:
        found.append(str(ask()))
    except pint.DimensionalityError as error:
        found.append(type(error).__name__)
    print(f"{text}: {found[-1]}")
good = ["DimensionalityError", "DimensionalityError", "8000.0", "8000000005.0 dimensionless"]
sys.exit(0 if found[:4] == good and "hertz" in found[4] else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py

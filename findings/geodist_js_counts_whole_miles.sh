#!/bin/bash
# geodist 0.2.1 (npm): a distance is in miles and cut to whole ones by default, so two sites of a town are 0 apart, and
# a site has ties with all others of its town. Kilometres are cut as well, unless exact is asked for.
#
# Guess before the run: kilometres or metres, with a fraction.
# Seen: 0 for sites 1.1 km apart, 34 for 55.6 km (34.5 miles); 55 with unit km, 55.597… with exact.
#
# Needs Node.js and npm.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm install --silent --no-fund --no-audit geodist@0.2.1 > log 2>&1 || { cat log; exit 2; }
cat > ask.js <<'JS'
const geodist = require("geodist");
const found = [
  geodist([0, 0], [0, 0.01]), geodist([0, 0], [0, 0.5]), geodist([0, 0], [0, 0.5], {unit: "km"}),
  geodist([0, 0], [0, 0.5], {unit: "km", exact: true}).toFixed(3),
];
console.log("geodist", require("geodist/package.json").version, "0.01 degree, 0.5, 0.5 in km, 0.5 in km and exact:", found.join(", "));
if (found.join() !== "0,34,55,55.597") {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node ask.js

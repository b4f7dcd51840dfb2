#!/bin/bash
# node-geo-distance 1.2.0 (npm): a distance is a text. Compared by < the farther of two sites is the nearest one as soon as the
# numbers of digits differ, and sums are texts side by side.
#
# Guess before the run: a number, in metres.
# Seen: of sites at 9, 120 and 1,300 km the one at 120 km is the nearest by < and the first after sort(), and the one at 9 km
# the last. The sum of two distances is NaN to Number(), as it has two points. Number() of one is right.
#
# Needs Node.js and npm.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm install --silent --no-fund --no-audit node-geo-distance@1.2.0 > log 2>&1 || { cat log; exit 2; }
cat > ask.js <<'JS'
const geo = require("node-geo-distance");
const client = {latitude: 0, longitude: 0};
const measure = (km) => ({km, distance: geo.haversineSync(client, {latitude: 0, longitude: km / 111.195})});
const sites = [1300, 9, 120].map(measure);
const nearest = sites.reduce((best, site) => (site.distance < best.distance ? site : best));
const sorted = sites.map((site) => site.distance).sort().map((metres) => Math.round(metres / 1000));
const found = [typeof nearest.distance, nearest.km, sorted.join(" "), Number(sites[0].distance + sites[1].distance)];
console.log("node-geo-distance", require("node-geo-distance/package.json").version, "type, nearest by <, sorted, sum:", found.join(", "));
if (found.join() !== "string,120,120 1300 9,NaN") {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node ask.js

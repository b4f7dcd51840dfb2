#!/bin/bash
# @turf/center-median 7.4.0: the option weight has no effect on the result. A weight is multiplied into the distance, by which
# the same weight is divided again, so the median is that of the places, each counted once.
#
# Guess before the run: with weights 10, 1 and 1 the median is the first place, as it has more than half of the weight.
# Seen: the point 10.6, 10.7 with and without weights, where the first place is 0, 0. The sum of weighted distances is
# more than twice that of the first place. (With the 10 steps that are the default the point is 10.4, 10.4.)
#
# Needs Node.js and npm.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm install --silent --no-fund --no-audit @turf/center-median@7.4.0 @turf/distance@7.4.0 > log 2>&1 || { cat log; exit 2; }
cat > ask.js <<'JS'
const {centerMedian} = require("@turf/center-median");
const {distance} = require("@turf/distance");
const places = [[0, 0, 10], [50, 0, 1], [0, 50, 1]];
const features = places.map(([x, y, operations]) =>
  ({type: "Feature", properties: {operations}, geometry: {type: "Point", coordinates: [x, y]}}));
const all = {type: "FeatureCollection", features};
const total = (at) => Math.round(places.reduce((sum, [x, y, w]) => sum + w * distance(at, [x, y]), 0));
console.log("@turf/center-median", require("@turf/center-median/package.json").version);
const found = [{weight: "operations", counter: 1000}, {counter: 1000}].map((options) => {
  const at = centerMedian(all, options).geometry.coordinates.map((value) => value.toFixed(1));
  console.log(`${options.weight ? "weights 10, 1, 1" : "no weights"}: ${at}, weighted km ${total(at.map(Number))}`);
  return at.join();
});
console.log(`first place: 0,0, weighted km ${total([0, 0])}`);
if (found.join(" ") !== "10.6,10.7 10.6,10.7" || total([10.6, 10.7]) < 2 * total([0, 0])) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node ask.js

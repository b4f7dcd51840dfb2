#!/bin/bash
# hdr-histogram-js 3.0.1: recordValue takes a fraction without an error and counts the whole number
# below it, so latencies under 1 ms count as 0. The largest value alone keeps its fraction.
#
# Guess before the run: a fraction is refused (Java takes whole numbers alone), or rounded everywhere.
# Seen: 0.7, 0.7, 1.6 and 2.9 ms have the median 0 and the mean 0.75, where 1.475 is right; the largest
# is 2.9.
#
# Needs Node.js and npm.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm install --silent --no-fund --no-audit hdr-histogram-js@3.0.1 > log 2>&1 || { cat log; exit 2; }
cat > ask.js <<'JS'
const {build} = require("hdr-histogram-js");
console.log("hdr-histogram-js", require("hdr-histogram-js/package.json").version);
const kept = build();
for (const ms of [0.7, 0.7, 1.6, 2.9]) kept.recordValue(ms);
const found = [kept.getValueAtPercentile(50), kept.mean, kept.maxValue];
console.log("median, mean, largest of 0.7, 0.7, 1.6, 2.9 ms:", found.join(", "));
if (found.join() !== "0,0.75,2.9") {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node ask.js

#!/bin/bash
# jStat 1.9.6 (npm): percentile(values, k) for a k in the last gap between two values returns the smaller of the two, as it is,
# and interpolates everywhere else. So p90 to p99 of ten latencies are the second largest, and p100 is the largest: one slow
# request in ten is in no percentile below that. quantiles() of the package does not do so.
#
# Guess before the run: p95 of 10, 20, …, 100 ms is 95.5 (linear interpolation, as in NumPy, R and Excel).
# Seen: p88 is 89.2, p90, p95 and p99 are 90, p100 is 100. Of 9 times 10 ms and once 5,000 ms p99 is 10 ms.
#
# Needs Node.js and npm.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm init -y > /dev/null
npm install --silent --no-fund --no-audit jstat@1.9.6
cat > ask.js <<'JS'
const { jStat } = require('jstat');
console.log('jstat', require('jstat/package.json').version);
const tens = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
const slow = [...Array(9).fill(10), 5000];
const found = Object.fromEntries([0.5, 0.85, 0.88, 0.9, 0.95, 0.99, 1].map((k) => [k, jStat.percentile(tens, k)]));
const ofSlow = jStat.percentile(slow, 0.99);
console.log(found, 'p99 of nine times 10 and once 5000:', ofSlow, 'by quantiles:', jStat.quantiles(slow, [0.99]));
const same = found[0.5] === 55 && found[0.95] === 90 && found[0.99] === 90 && found[1] === 100 && ofSlow === 10;
if (!same) {
  console.log('the behaviour has changed');
  process.exit(1);
}
JS
node ask.js

#!/bin/bash
# cloud-regions-country-flags 1.1.4 (npm): AWS's Canada (Central), which is in Montreal, has the coordinates of a place in
# Alberta, 3,000 km away. Frankfurt, Las Vegas and São Paulo of Google Cloud have their names, but lie at 0, 0.
#
# Guess before the run: the coordinates of the town in the name of the region, and an error where there are none.
# Seen: 59.8 N, 111.8 W for ca-central-1, with us-west-2 at 1,900 km and us-east-1 at 3,400; 0, 0 and no country for europe-west3.
#
# Needs Node.js and npm.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm install --silent --no-fund --no-audit cloud-regions-country-flags@1.1.4 > log 2>&1 || { cat log; exit 2; }
cat > ask.js <<'JS'
const {fromProvider} = require("cloud-regions-country-flags");
const km = (a, b) => {
  const [la, lb, dl] = [a.latitude, b.latitude, b.longitude - a.longitude].map((degrees) => (degrees * Math.PI) / 180);
  return Math.round(6371 * Math.acos(Math.sin(la) * Math.sin(lb) + Math.cos(la) * Math.cos(lb) * Math.cos(dl)));
};
const [canada, east, west] = ["ca-central-1", "us-east-1", "us-west-2"].map((region) => fromProvider(region, "AWS"));
const google = ["europe-west3", "us-west4", "southamerica-east1"].map((region) => fromProvider(region, "GCP"));
console.log("cloud-regions-country-flags", require("cloud-regions-country-flags/package.json").version);
console.log(canada.location, canada.latitude, canada.longitude, "km to Montreal:", km(canada, {latitude: 45.5, longitude: -73.6}));
console.log("km to us-east-1 and us-west-2:", km(canada, east), km(canada, west));
for (const region of google) console.log(region.location, region.country, region.latitude, region.longitude);
const lost = google.every((region) => region.latitude === 0 && region.longitude === 0 && !region.country);
const place = canada.latitude.toFixed(1) + " " + canada.longitude.toFixed(1);
if (!lost || place !== "59.8 -111.8" || km(canada, west) > km(canada, east)) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node ask.js

#!/bin/bash
# bytes 3.1.2 (npm; the parser of Express's body limits): parse takes the number alone where it does not know what
# follows, and counts bytes. "10 GiB", the unit that names 2^30, is 10 bytes, while "10 GB" is 10 x 2^30.
#
# Guess before the run: "10 GiB" is 10 x 2^30, or null as for a text that is no size.
# Seen: 10 bytes; "10 Gbit" and "10 G" are 10 bytes as well, "1,000 MB" and "1e9" are 1 byte; "1.5 TB" is 1.5 x 2^40.
#
# Needs Node.js and npm.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm install --silent --no-fund --no-audit bytes@3.1.2 > log 2>&1 || { cat log; exit 2; }
cat > ask.js <<'JS'
const bytes = require("bytes");
console.log("bytes", require("bytes/package.json").version);
const found = ["10 GB", "10 GiB", "10 Gbit", "10 G", "1,000 MB", "1e9", "1.5 TB", "large"].map((text) => {
  const size = bytes.parse(text);
  console.log(`${text}: ${size}`);
  return size;
});
if (found.join() !== "10737418240,10,10,10,1,1,1649267441664,") {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node ask.js

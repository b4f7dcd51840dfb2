#!/bin/bash
# lp_solve 5.5.2.5: in its own LP format a row of one variable without a name is not a row but a bound, and the section "bin"
# sets the bounds of its variables to 0 and 1. So "x >= 1", as for a client whom one site alone can serve, is gone
# when x is declared as binary after it. lp_solve says that a lower bound is redefined, and its best plan leaves the client out.
#
# Guess before the run: "x >= 1; bin x;" keeps x at 1, as a row or as a bound.
# Seen: of the sites x (3) and y (2), of which one is needed, and x in any case, the cheapest plan is y, for 2. With a name for
# the row, or with "int" and a bound in place of "bin", it is x, for 3.
#
# Needs Debian 12, apt-get and dpkg.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
mkdir root
for package in lp-solve=5.5.2.5-2 libcolamd2=1:5.12.0+dfsg-2 libsuitesparseconfig5=1:5.12.0+dfsg-2; do
  apt-get download -qq "$package" 2> log || { cat log; exit 2; }
done
for package in *.deb; do dpkg-deb -x "$package" root; done
LD_LIBRARY_PATH=$(find "$T/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd :)
export LD_LIBRARY_PATH
found=""
for rows in $'x >= 1;\nbin x, y;' $'must: x >= 1;\nbin x, y;' $'x >= 1; x <= 1; y <= 1;\nint x, y;'; do
  printf 'min: 3 x + 2 y;\nsome: x + y >= 1;\n%s\n' "$rows" > model.lp
  plan=$(root/usr/bin/lp_solve -S3 model.lp)
  cost=$(awk '/objective/ { print $NF + 0 }' <<< "$plan")
  open=$(awk '($1 == "x" || $1 == "y") && $2 > 0.5 { printf "%s", $1 }' <<< "$plan")
  echo "lp_solve 5.5.2.5, ${rows//$'\n'/ } cost $cost, open: $open"
  found+="$cost$open "
done
[ "$found" = "2y 3x 3x " ] || { echo "the behaviour has changed: $found"; exit 1; }

#!/bin/bash
# R 4.2.2: as.dist of a matrix that is not symmetric keeps the triangle below the diagonal and forgets the other one, without a
# warning. So cluster::pam (2.1.4) and hclust find medians of RTTs in which each pair has one direction, drawn by the
# order of the rows.
#
# Guess before the run: an error or a warning where d[i, j] and d[j, i] differ; and pam takes a square matrix with a diagonal of 0
# for dissimilarities.
# Seen: of three sites the median is the first one from the clients, the third one to the clients, and pam says the second.
# Without diss = TRUE pam takes the rows of the matrix for coordinates, of a symmetric one too: its loss is 3.7, not 2.3.
#
# Needs Debian 12, apt-get and dpkg.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
mkdir -p packages/partial
apt-get install -qq -y --no-install-recommends --reinstall --download-only -o Dir::Cache::archives="$T/packages" \
    r-base-core=4.2.2.20221110-2 r-cran-cluster=2.1.4-1 libblas3=3.11.0-2 liblapack3=3.11.0-2 libgfortran5=12.2.0-14+deb12u1 \
    > log 2>&1 || { cat log; exit 2; }
for package in packages/*.deb; do dpkg -x "$package" root; done
cat > ask.R <<'R'
library(cluster)
rtt <- matrix(c(0, 50, 50, 1, 0, 50, 5, 1, 0), 3, byrow = TRUE)
taken <- as.dist(rtt)
median <- pam(taken, 1)
even <- matrix(c(0, 4, 6, 4, 0, 3, 6, 3, 0), 3)
cat("R", as.character(getRversion()), "cluster", as.character(packageVersion("cluster")), "\n")
cat("sums of columns:", colSums(rtt), "- of rows:", rowSums(rtt), "- taken:", taken, "- median:", median$medoids, "\n")
as_distances <- pam(even, 1, diss = TRUE)$objective["swap"]
as_places <- pam(even, 1)$objective["swap"]
cat("symmetric, mean distance:", round(as_distances, 3), "- without diss:", round(as_places, 3), "\n")
R
export R_HOME="$T/root/usr/lib/R" R_SHARE_DIR="$T/root/usr/share/R/share" EDITOR=vi PAGER=cat
lib="$T/root/usr/lib/x86_64-linux-gnu"
found=$(LD_LIBRARY_PATH="$R_HOME/lib:$lib:$lib/blas:$lib/lapack" "$R_HOME/bin/exec/R" --vanilla --no-echo --file=ask.R 2> log) \
    || { cat log; exit 2; }
echo "$found"
right="sums of columns: 6 51 100 - of rows: 100 51 6 - taken: 1 5 1 - median: 2
symmetric, mean distance: 2.333 - without diss: 3.698"
[ "$(tail -n 2 <<< "$found" | sed 's/ *$//')" = "$right" ] || { echo "the behaviour has changed"; exit 1; }

#!/bin/bash
# Apache Commons Math 3.6.1: a percentile lies at the place p (n + 1) by default (R's type 6), so the p95 of up to 19 values is the
# largest, and the p5 the least. Few runs of a benchmark have their worst one as p95.
#
# Guess before the run: the p95 of ten values lies between the ninth and the tenth, as in NumPy, R and Excel (type 7).
# Seen: of 10, 20, …, 100 ms p95 is 100, p90 99 and p5 10; with the estimation type R_7 they are 95.5, 91 and 14.5.
#
# Needs Java 11 or later and Maven.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.commons</groupId><artifactId>commons-math3</artifactId><version>3.6.1</version>
  </dependency></dependencies>
</project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib > log 2>&1 || { cat log; exit 2; }
cat > Ask.java <<'JAVA'
import org.apache.commons.math3.stat.descriptive.rank.Percentile;

public class Ask {
    public static void main(String[] args) {
        double[] values = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
        for (Percentile made : new Percentile[] {
                new Percentile(), new Percentile().withEstimationType(Percentile.EstimationType.R_7)})
            for (double share : new double[] {95, 90, 5}) System.out.printf("%.1f ", made.evaluate(values, share));
    }
}
JAVA
found=$(java -cp 'lib/*' Ask.java 2> log) || { cat log; exit 2; }
echo "p95, p90 and p5 of 10, 20, …, 100 ms, by default and by R_7: $found"
[ "$found" = "100.0 99.0 10.0 95.5 91.0 14.5 " ] || { echo "the behaviour has changed"; exit 1; }

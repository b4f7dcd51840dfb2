#!/bin/bash
# t-digest 3.3 (Java, by the author of the method): a value that is added with a weight is not that value added as often.
# A histogram of RTTs that is read in with its counts gets other percentiles than the samples, and one may be NaN.
#
# Guess before the run: add(10, 98) is add(10) 98 times; the median of 98 times 10 ms and twice 1,000 ms is 10 ms.
# Seen: 10, 10 and 1,000 ms (p50, p90, p99) from single values; 29.8, 821.8 and NaN from two weights.
#
# Needs Java 11 or later and Maven.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
cat > pom.xml <<'XML'
<project>
  <modelVersion>4.0.0</modelVersion><groupId>ask</groupId><artifactId>ask</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>com.tdunning</groupId><artifactId>t-digest</artifactId><version>3.3</version>
  </dependency></dependencies>
</project>
XML
mvn -q dependency:copy-dependencies -DoutputDirectory=lib > log 2>&1 || { cat log; exit 2; }
cat > Ask.java <<'JAVA'
import com.tdunning.math.stats.TDigest;

public class Ask {
    static String ask(TDigest kept) {
        return String.format("p50 %.1f, p90 %.1f, p99 %.1f", kept.quantile(0.5), kept.quantile(0.9), kept.quantile(0.99));
    }
    public static void main(String[] words) {
        TDigest single = TDigest.createMergingDigest(100), weighted = TDigest.createMergingDigest(100);
        for (int i = 0; i < 100; i++) single.add(i < 98 ? 10 : 1000);
        weighted.add(10, 98);
        weighted.add(1000, 2);
        System.out.println("t-digest 3.3, single values: " + ask(single) + "; with weights: " + ask(weighted));
        boolean same = ask(single).equals("p50 10.0, p90 10.0, p99 1000.0") && ask(weighted).equals("p50 29.8, p90 821.8, p99 NaN");
        if (!same) System.out.println("the behaviour has changed");
        System.exit(same ? 0 : 1);
    }
}
JAVA
java -cp "lib/*" Ask.java

#!/bin/bash
# Cassandra 4.1.5 keeps latencies in buckets that grow by a fifth and reports the upper end of a
# bucket for all in it: not only percentiles, the mean and the largest too. The least is a lower end.
#
# Guess before the run: 100 latencies of 1,110 us have a mean and a largest of 1,110 us, and
# percentiles within a few per cent.
# Seen: median, p99, mean and largest are 1,331 us, 20 % more; of 1,000 us they are 1,109 us, and the
# least is 925 us.
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
    <groupId>org.apache.cassandra</groupId><artifactId>cassandra-all</artifactId><version>4.1.5</version>
  </dependency></dependencies>
</project>
XML
mvn -q dependency:copy-dependencies -DoutputDirectory=lib
cat > Ask.java <<'JAVA'
import com.codahale.metrics.Snapshot;
import org.apache.cassandra.metrics.DecayingEstimatedHistogramReservoir;

public class Ask {
    public static void main(String[] words) {
        StringBuilder seen = new StringBuilder();
        for (long us : new long[] {1000, 1110}) {
            DecayingEstimatedHistogramReservoir kept = new DecayingEstimatedHistogramReservoir();
            for (int i = 0; i < 100; i++) kept.update(us);
            Snapshot found = kept.getSnapshot();
            String line = String.format("%d us: least %d, median %.0f, p99 %.0f, mean %.0f, largest %d%n", us,
                found.getMin(), found.getMedian(), found.get99thPercentile(), found.getMean(), found.getMax());
            System.out.print(line);
            seen.append(line);
        }
        boolean same = seen.toString().contains("1000 us: least 925, median 1109, p99 1109, mean 1109, largest 1109")
            && seen.toString().contains("1110 us: least 1110, median 1331, p99 1331, mean 1331, largest 1331");
        if (!same) System.out.println("the behaviour has changed");
        System.exit(same ? 0 : 1);
    }
}
JAVA
java -cp "lib/*" Ask.java 2> log || { cat log; exit 1; }

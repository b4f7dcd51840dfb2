#!/bin/bash
# Micrometer 1.14.5 (metrics of Spring Boot and Quarkus): percentiles that a timer publishes are of one digit by default, and are
# ends of buckets. A percentile, p99 too, may be below the least latency that was recorded.
#
# Guess before the run: 100 requests of 147 ms have a median and a p99 of 147 ms, within 1 %.
# Seen: both are 142.6 ms; of 1,450 ms they are 1,409 ms. With percentilePrecision(3) they are within 0.1 %.
#
# Needs Java 17 and Maven.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>io.micrometer</groupId><artifactId>micrometer-core</artifactId><version>1.14.5</version>
  </dependency></dependencies>
</project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib > log 2>&1 || { cat log; exit 2; }
cat > Ask.java <<'JAVA'
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.distribution.ValueAtPercentile;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.concurrent.TimeUnit;

public class Ask {
    public static void main(String[] args) {
        for (long ms : new long[] {147, 1450})
            for (int digits : new int[] {0, 3}) {
                Timer.Builder builder = Timer.builder("rtt").publishPercentiles(0.5, 0.99);
                if (digits > 0) builder = builder.percentilePrecision(digits);
                Timer timer = builder.register(new SimpleMeterRegistry());
                for (int i = 0; i < 100; i++) timer.record(ms, TimeUnit.MILLISECONDS);
                for (ValueAtPercentile each : timer.takeSnapshot().percentileValues())
                    System.out.printf("%.1f ", each.value(TimeUnit.MILLISECONDS));
            }
    }
}
JAVA
found=$(java -cp 'lib/*' Ask.java 2> log) || { cat log; exit 2; }
echo "median and p99, by default and with three digits, of 100 x 147 ms and of 100 x 1450 ms: $found"
[ "$found" = "142.6 142.6 146.9 146.9 1409.3 1409.3 1449.1 1449.1 " ] || { echo "the behaviour has changed"; exit 1; }

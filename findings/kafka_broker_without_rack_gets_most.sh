#!/bin/bash
# Kafka 4.1.1 (KRaft): brokers without broker.rack are one more rack for the placement of new topics, and racks share
# alike. A tenth broker that was started without the setting, beside three racks of three, gets two and a half times
# its share of the replicas and twice its share of the leaders. (With ZooKeeper such a topic was refused.)
#
# Guess (not written down before the run): refused, or about 270 of 2,700 replicas for each of ten brokers.
# Seen: 670 for the one without a rack, and 219 to 233 for the nine others; it leads 220 of 900 partitions. With a rack
# of the three it gets 219.
#
# Needs Java 17 and Maven. The program runs the controller's class that places replicas.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
cat > pom.xml <<'XML'
<project>
  <modelVersion>4.0.0</modelVersion><groupId>ask</groupId><artifactId>ask</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka-metadata</artifactId><version>4.1.1</version>
  </dependency></dependencies>
</project>
XML
mvn -q dependency:copy-dependencies -DoutputDirectory=lib > log 2>&1 || { cat log; exit 2; }
cat > Ask.java <<'JAVA'
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.*;

public class Ask {
    static int[][] place(String rackOfLast) {
        ClusterDescriber brokers = new ClusterDescriber() {
            public Iterator<UsableBroker> usableBrokers() {
                return IntStream.range(0, 10).mapToObj(id -> new UsableBroker(
                    id, Optional.ofNullable(id == 9 ? rackOfLast : "rack" + id % 3), false)).iterator();
            }
            public Uuid defaultDir(int broker) { return Uuid.ZERO_UUID; }
        };
        int[][] counts = new int[2][10];
        TopicAssignment topic = new StripedReplicaPlacer(new Random(1)).place(new PlacementSpec(0, 900, (short) 3), brokers);
        for (PartitionAssignment partition : topic.assignments()) {
            counts[1][partition.replicas().get(0)]++;
            for (int broker : partition.replicas()) counts[0][broker]++;
        }
        return counts;
    }
    public static void main(String[] words) {
        int[][] without = place(null), with = place("rack0");
        System.out.println("broker 9 without a rack: replicas " + Arrays.toString(without[0]) + ", leaders " + Arrays.toString(without[1]));
        System.out.println("broker 9 in rack0: replicas " + Arrays.toString(with[0]) + ", leaders " + Arrays.toString(with[1]));
        boolean same = without[0][9] > 600 && without[1][9] > 190 && with[0][9] < 300;
        if (!same) System.out.println("the behaviour has changed");
        System.exit(same ? 0 : 1);
    }
}
JAVA
java -cp "lib/*" Ask.java 2> log || { cat log; exit 1; }

#!/bin/bash
# ZooKeeper 3.9.3: the weight of a group of servers includes its observers, who never vote, and ids that no server has any more.
# A group of three voters that names an observer as well needs all three, so the loss of one voter takes the group's vote.
#
# Guess before the run: participants alone count, as in a majority quorum; an id without a server is refused.
# Seen: of the groups 1:2:3, 4:5:6 and 7:8:9 the servers 1, 2, 4 and 5 are a quorum. They are none when the first group is
# 1:2:3:10, be 10 an observer or no server at all; 1, 2, 3, 4 and 5 are one.
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
    <groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>3.9.3</version>
  </dependency></dependencies>
</project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib > log 2>&1 || { cat log; exit 2; }
cat > Ask.java <<'JAVA'
import java.util.Properties;
import java.util.Set;
import org.apache.zookeeper.server.quorum.flexible.QuorumHierarchical;

public class Ask {
    static String ask(String first, int servers) throws Exception {
        Properties file = new Properties();
        for (int id = 1; id <= servers; id++) {
            String role = id == 10 ? "observer" : "participant";
            file.put("server." + id, "127.0.0.1:" + (2000 + id) + ":" + (3000 + id) + ":" + role + ";" + (4000 + id));
        }
        for (int id = 1; id <= 10; id++) file.put("weight." + id, "1");
        file.put("group.1", first);
        file.put("group.2", "4:5:6");
        file.put("group.3", "7:8:9");
        QuorumHierarchical ensemble = new QuorumHierarchical(file);
        return ensemble.getVotingMembers().size() + " voters, 1 2 4 5: " + ensemble.containsQuorum(Set.of(1L, 2L, 4L, 5L))
            + ", 1 2 3 4 5: " + ensemble.containsQuorum(Set.of(1L, 2L, 3L, 4L, 5L));
    }
    public static void main(String[] words) throws Exception {
        String found = "no observer: " + ask("1:2:3", 9) + "\nobserver 10 in the group: " + ask("1:2:3:10", 10)
            + "\nno server 10, but in the group: " + ask("1:2:3:10", 9);
        System.out.println(found);
    }
}
JAVA
found=$(java -cp 'lib/*' Ask.java 2> log) || { cat log; exit 2; }
echo "ZooKeeper 3.9.3, is it a quorum?
$found"
[ "$(grep -c "9 voters, 1 2 4 5: true, 1 2 3 4 5: true" <<< "$found")" = 1 ] &&
    [ "$(grep -c "9 voters, 1 2 4 5: false, 1 2 3 4 5: true" <<< "$found")" = 2 ] || { echo "the behaviour has changed"; exit 1; }

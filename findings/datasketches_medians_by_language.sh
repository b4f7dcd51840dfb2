#!/bin/bash
# Apache DataSketches: getQuantile(0.5) of the Java library (6.1.1) and get_quantile(0.5) of the Python one (5.2.0) are
# not the same, of one sketch: Java takes the least value whose rank is >= 0.5 (inclusive), Python the least one
# whose rank is > 0.5 (exclusive), each as its default. The sketches themselves can be exchanged as bytes.
#
# Guess before the run: the same in both, 20 ms of 10, 20, 30 and 40 ms.
# Seen: 20 in Java and 30 in Python, also after the bytes went from Java to Python. The rank of 20 is 0.5 and 0.25.
#
# Needs Java 11 or later, Maven, Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check datasketches==5.2.0
cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.datasketches</groupId><artifactId>datasketches-java</artifactId><version>6.1.1</version>
  </dependency></dependencies>
</project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib > log 2>&1 || { cat log; exit 2; }
cat > Ask.java <<'JAVA'
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.datasketches.kll.KllDoublesSketch;

public class Ask {
    public static void main(String[] args) throws Exception {
        KllDoublesSketch sketch = KllDoublesSketch.newHeapInstance();
        for (double ms : new double[] {10, 20, 30, 40}) sketch.update(ms);
        Files.write(Path.of("sketch"), sketch.toByteArray());
        System.out.print(sketch.getQuantile(0.5) + " " + sketch.getRank(20.0));
    }
}
JAVA
java=$(java -cp 'lib/*' Ask.java 2> log) || { cat log; exit 2; }
python=$(env/bin/python -c '
from datasketches import kll_doubles_sketch
sketch = kll_doubles_sketch.deserialize(open("sketch", "rb").read())
print(sketch.get_quantile(0.5), sketch.get_rank(20.0))')
echo "10, 20, 30 and 40 ms, quantile 0.5 and rank of 20: Java $java, Python $python"
[ "$java, $python" = "20.0 0.5, 30.0 0.25" ] || { echo "the behaviour has changed"; exit 1; }

#!/bin/bash
# Kafka 4.1.1: with log.flush.interval.messages=1 a produced message costs three flushes one after
# another: fdatasync of the log, then msync of its offset index and of its time index, though a lost
# index is rebuilt from the log. On a disk of 10 ms an acknowledged message takes 30 ms, not 10.
#
# Guess before the run: one flush per message, of the log.
# Seen: for 40 messages 40 flushes of files and 80 of mapped memory (and some more of the broker's own
# log); with a disk of 10 ms a message takes 30 ms and more.
#
# Needs Java 17, Maven, a C compiler, Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$T"' EXIT
cd "$T"
cat > pom.xml << 'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>f</groupId><artifactId>f</artifactId><version>1</version><packaging>pom</packaging><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.1.1</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory="$T/jars" > mvn.log 2>&1
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check confluent-kafka==2.12.1
cat > count.c << 'C'
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>
#include <sys/mman.h>
static int done(const char *what) /* a byte for each call, and the disk */
{
    int file = open(getenv("COUNTED"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (write(file, what, 1) != 1) abort();
    close(file);
    usleep(10000);
    return 0;
}
int fsync(int file) { (void)file; return done("f"); }
int fdatasync(int file) { (void)file; return done("f"); }
int msync(void *at, size_t length, int flags) { (void)at; (void)length; (void)flags; return done("m"); }
C
cc -shared -fPIC -O2 -o count.so count.c
P=$((21000 + RANDOM % 9000))
cat > kafka.properties << CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((P + 1))
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$P,CONTROLLER://127.0.0.1:$((P + 1))
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$T/log
log.flush.interval.messages=1
offsets.topic.replication.factor=1
CONF
java -cp "$T/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAA -c kafka.properties > /dev/null 2>&1
COUNTED=$T/counted LD_PRELOAD=$T/count.so java -Xmx300m -cp "$T/jars/*" kafka.Kafka kafka.properties > kafka.log 2>&1 &
cat > produce.py << 'PY'
import statistics, sys, time
from confluent_kafka import Producer
counted = sys.argv[2]
producer = Producer({"bootstrap.servers": sys.argv[1], "acks": "all", "linger.ms": 0})
took, failed = [], []
def send():
    producer.produce("t", b"x", partition=0, on_delivery=lambda error, _: failed.append(error))
    producer.flush(60)
for _ in range(5):
    send()
time.sleep(3)
failed.clear()
before = open(counted, "rb").read()
for _ in range(40):
    begun = time.perf_counter()
    send()
    took.append(1000 * (time.perf_counter() - begun))
after = open(counted, "rb").read()[len(before):]
assert failed == [None] * 40, failed
files, maps = after.count(b"f"), after.count(b"m")
print(f"40 messages: {files} flushes of files, {maps} of mapped memory, {statistics.median(took):.0f} ms each")
sys.exit(0 if 40 <= files <= 60 and 80 <= maps <= 110 and statistics.median(took) >= 28 else "the behaviour has changed")
PY
env/bin/python produce.py "127.0.0.1:$P" "$T/counted"

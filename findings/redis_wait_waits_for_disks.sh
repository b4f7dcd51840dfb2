#!/bin/bash
# Redis 7.0 (Debian bookworm's 7.0.15): with appendfsync always, WAIT 1 returns after two flushes one
# after the other, the primary's and then the replica's, although WAIT promises nothing of disks and
# WAITAOF, which does, came with 7.2 only.
#
# Guess before the run: the primary sends the write to its replicas while it flushes, and a replica
# acknowledges what it has received, so a slow disk at the replica costs nothing and one at the
# primary is hidden by a slower network.
# Seen, with a disk of 60 ms: replica alone 60 ms, primary alone 60 ms, both 121 ms; neither 1 ms.
#
# Needs Debian's packages and a C compiler.
set -euo pipefail
T=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$T"' EXIT
cd "$T"
apt-get download -qq redis-tools=5:7.0.15-1~deb12u10
dpkg-deb -x redis-tools_*.deb root
for library in $(ldd root/usr/bin/redis-check-rdb | awk '/not found/ { print $1 }'); do
    echo "a library is missing: $library (apt-get install redis-tools brings it)"; exit 2
done
cp root/usr/bin/redis-check-rdb redis-server
./redis-server --version
cat > slow.c << 'C'
#include <stdlib.h>
#include <unistd.h>
static int slow(void) { const char *ms = getenv("DISK_MS"); if (ms) usleep(1000 * atoi(ms)); return 0; }
int fsync(int file) { (void)file; return slow(); }
int fdatasync(int file) { (void)file; return slow(); }
C
cc -shared -fPIC -O2 -o slow.so slow.c
start() { # NAME PORT DISK_MS OPTIONS
    mkdir -p "$1"
    LD_PRELOAD=$T/slow.so DISK_MS=$3 ./redis-server --port "$2" --bind 127.0.0.1 --dir "$T/$1" --save "" \
        --appendonly yes --appendfsync always --repl-diskless-sync-delay 0 "${@:4}" > "$1.log" &
}
cat > ask.py << 'PY'
import socket, statistics, sys, time
wire = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
lines = wire.makefile("rb")
def ask(text):
    wire.sendall(text)
    return lines.readline()
for _ in range(200):
    ask(b"SET k 0\r\n")
    if ask(b"WAIT 1 1000\r\n") == b":1\r\n":
        break
    time.sleep(0.1)
took = []
for _ in range(15):
    begun = time.perf_counter()
    wire.sendall(b"SET k 1\r\nWAIT 1 0\r\n")
    assert (lines.readline(), lines.readline()) == (b"+OK\r\n", b":1\r\n")
    took.append(1000 * (time.perf_counter() - begun))
    time.sleep(0.2)
print(round(statistics.median(took)))
PY
port=$((21000 + RANDOM % 9000))
good=1
for case in "0 0 0 20" "60 0 55 85" "0 60 55 85" "60 60 115 150"; do
    read -r primary replica least most <<< "$case"
    port=$((port + 2))
    start "p$port" "$port" "$primary"
    start "r$port" $((port + 1)) "$replica" --replicaof 127.0.0.1 "$port"
    sleep 2
    took=$(python3 ask.py "$port")
    echo "disk of the primary $primary ms, of the replica $replica ms: WAIT 1 after $took ms"
    [ "$took" -ge "$least" ] && [ "$took" -le "$most" ] || good=0
    kill $(jobs -p)
    wait
done
[ "$good" = 1 ] || { echo "the behaviour has changed"; exit 1; }

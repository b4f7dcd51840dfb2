#!/bin/bash
# NATS 2.14.8: a direct get of a JetStream stream with three copies, asked at a server that holds one,
# is answered by a copy drawn at random among the three, so two times in three by one elsewhere. A read of the nearest
# copy costs the mean of the distances to all copies.
#
# Guess before the run: the server of the client prefers its own copy, as queue groups prefer local
# members, so that no get leaves the server.
# Seen: with allow_direct, of 90 gets at each of the servers about 60 go to other servers (counted by the messages
# that the server sends on its routes).
#
# Needs Go and the Go module proxy, and Python.
set -euo pipefail
T=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; chmod -R u+w "$T"; rm -rf "$T"' EXIT
cd "$T"
export GOFLAGS=-mod=mod GOBIN=$T/bin
go install github.com/nats-io/nats-server/v2@v2.14.8 2> /dev/null
bin/nats-server --version
P=$((21000 + RANDOM % 9000))
routes="nats://127.0.0.1:$((P + 10)),nats://127.0.0.1:$((P + 11)),nats://127.0.0.1:$((P + 12))"
for i in 0 1 2; do
    cat > "$i.conf" << CONF
server_name: n$i
listen: "127.0.0.1:$((P + i))"
http: "127.0.0.1:$((P + 20 + i))"
jetstream { store_dir: "$T/data$i" }
cluster { name: c, listen: "127.0.0.1:$((P + 10 + i))", routes: [${routes//,/, }] }
CONF
    bin/nats-server -c "$i.conf" > "$i.log" 2>&1 &
done
cat > ask.py << 'PY'
import json, socket, sys, time, urllib.request
port = int(sys.argv[1])

class Client:
    def __init__(self, server):
        self.wire = socket.create_connection(("127.0.0.1", port + server), 3)
        self.lines = self.wire.makefile("rb")
        self.lines.readline()
        self.inbox = f"in{id(self)}"
        self.wire.sendall(b'CONNECT {"verbose":false}\r\nSUB %b 1\r\n' % self.inbox.encode())
    def ask(self, subject, data=""):
        self.wire.sendall(f"PUB {subject} {self.inbox} {len(data)}\r\n{data}\r\n".encode())
        while True:
            words = self.lines.readline().split()
            if words[0] in (b"MSG", b"HMSG"):
                return self.lines.read(int(words[-1]) + 2)

stream = {"name": "S", "subjects": ["s"], "num_replicas": 3, "allow_direct": True}
for _ in range(60):
    try:
        client = Client(0)
        said = json.loads(client.ask("$JS.API.STREAM.CREATE.S", json.dumps(stream)))
        if "error" not in said:
            break
    except OSError:
        pass
    time.sleep(0.5)
client.ask("s", "hello")
time.sleep(2)
def sent(server):
    routes = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port + 20 + server}/routez"))["routes"]
    return sum(one["out_msgs"] for one in routes)
elsewhere = []
for server in range(3):
    here = Client(server)
    assert b"hello" in here.ask("$JS.API.DIRECT.GET.S.s")
    time.sleep(0.5)
    before = sent(server)
    for _ in range(90):
        assert b"hello" in here.ask("$JS.API.DIRECT.GET.S.s")
    elsewhere.append(sent(server) - before)
    print(f"server n{server}, which holds a copy: about {elsewhere[-1]} of 90 gets left it")
sys.exit(0 if all(42 <= gets <= 78 for gets in elsewhere) else "the behaviour has changed")
PY
python3 ask.py "$P"

#!/bin/bash
# pythonping 1.1.4: a lost packet counts in the mean and in the largest RTT with the length of the timeout,
# 2,000 ms by default. One lost packet in four turns a link of 10 ms into one of 508 ms; another timeout
# gives another mean. ping, fping and mtr leave lost packets out.
#
# Guess before the run: rtt_avg_ms is the mean of the answers; losses are in packet_loss alone.
# Seen: three answers of 10 ms and a loss have the mean 507.5 ms, the least 10 and the largest 2,000 ms. A host that
# never answers has a mean RTT of 2,000 ms.
#
# Needs Python and pip. Nothing is sent: the socket is one that answers three times.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib pythonping==1.1.4
cat > ask.py << 'PY'
import sys
from importlib.metadata import version
from pythonping import icmp, network, ping
print("pythonping", version("pythonping"))
class Link:
    """A socket over which the first packets are answered after 10 ms and the later ones are lost."""
    answers = 0
    def __init__(self, *_, **__):
        self.left = Link.answers
    def send(self, packet):
        sent = icmp.ICMP()
        sent.unpack(bytes(20) + packet)
        self.identifier = sent.id
    def receive(self, timeout):
        self.left -= 1
        reply = icmp.ICMP(icmp.Types.EchoReply, identifier=self.identifier).packet if self.left >= 0 else b""
        return (bytes(20) + reply, ("192.0.2.1", 0), timeout - 0.010) if reply else (b"", "", 0)
network.Socket = Link
found = []
for Link.answers in 3, 0:
    seen = ping("192.0.2.1", count=4)
    found.append((seen.rtt_min_ms, seen.rtt_avg_ms, seen.rtt_max_ms, seen.packet_loss))
    print(f"{Link.answers} answers of 10 ms to 4 packets: least, mean, largest, loss = {found[-1]}")
good = [(10, 507.5, 2000, 0.25), (2000, 2000, 2000, 1)]
sys.exit(0 if found == good else f"the behaviour has changed: {found}")
PY
PYTHONPATH=lib python3 ask.py

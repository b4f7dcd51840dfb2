#!/bin/bash
# SimGrid 3.32: with its default model of the network a link of 10 ms delays a byte by 130.1 ms. The
# latency of a link is multiplied by 13.01, the mean slow start of TCP; a simulated quorum of small
# messages is 13 times too slow unless another model is chosen.
#
# Guess before the run: one byte over an idle link of 10 ms takes 10 ms.
# Seen: 130.1 ms; with --cfg=network/model:CM02 10.0 ms.
#
# Needs Debian 12, its Python, apt-get and dpkg.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
mkdir -p packages/partial
apt-get install -qq -y --no-install-recommends --reinstall --download-only -o Dir::Cache::archives="$T/packages" \
    python3-simgrid=3.32-2+b2 libsimgrid3.32=3.32-2+b2 > log 2>&1 || { cat log; exit 2; }
for package in packages/*.deb; do dpkg -x "$package" root; done
cat > ask.py <<'PY'
import sys
sys.path.insert(0, "root/usr/lib/python3/dist-packages")
from simgrid import Actor, Engine, LinkInRoute, Mailbox, NetZone
engine = Engine(["ask", "--log=root.thresh:critical", *sys.argv[1:]])
zone = NetZone.create_full_zone("zone")
paris, berlin = (zone.create_host(name, "1Gf").seal() for name in ("paris", "berlin"))
link = zone.create_link("link", "1GBps").set_latency("10ms").seal()
zone.add_route(paris.netpoint, berlin.netpoint, None, None, [LinkInRoute(link)], True)
zone.seal()
def send():
    Mailbox.by_name("box").put("x", 1)
    print(f"{engine.clock * 1000:.1f}")
Actor.create("sender", paris, send)
Actor.create("receiver", berlin, lambda: Mailbox.by_name("box").get())
engine.run()
PY
ask() { LD_LIBRARY_PATH=root/usr/lib/x86_64-linux-gnu /usr/bin/python3 ask.py "$@" 2>> log; }
default=$(ask)
plain=$(ask --cfg=network/model:CM02)
echo "SimGrid 3.32: one byte over a link of 10 ms takes $default ms, with CM02 $plain ms"
[ "$default $plain" = "130.1 10.0" ] || { cat log; echo "the behaviour has changed"; exit 1; }

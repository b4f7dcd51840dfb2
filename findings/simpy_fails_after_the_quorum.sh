#!/bin/bash
# SimPy 4.1.2: a process that waits for two of three replicas goes on when two have answered; a failure of the third one
# after that is nobody's, and ends the whole simulation with an exception.
#
# Guess before the run: the condition has been met, so what happens to its other events later does not matter.
# Seen: the write is acknowledged at 2 with the answers 1 and 2, and at 3 run() raises the RuntimeError of the third
# replica. (The condition takes its callback from the events that are left, and an event that fails without one is
# raised.) Where the failure comes first, at 0.5, the writer itself gets it, and no quorum of the two others.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check simpy==4.1.2
cat > ask.py <<'PY'
import sys
import simpy
print("simpy", simpy.__version__)


def simulate(lost_at):
    world, log = simpy.Environment(), []

    def replica(delay, fails=False):
        yield world.timeout(delay)
        if fails:
            raise RuntimeError("replica lost")
        return delay

    def write():
        answers = [world.process(replica(1)), world.process(replica(2)), world.process(replica(lost_at, True))]
        try:
            got = yield simpy.events.Condition(world, lambda events, count: count >= 2, answers)
            log.append(f"acknowledged at {world.now} by {list(got.values())}")
        except RuntimeError as error:
            log.append(f"the writer gets '{error}' at {world.now}")

    world.process(write())
    try:
        world.run(until=10)
    except RuntimeError as error:
        log.append(f"run() ends at {world.now} with '{error}'")
    print(f"lost at {lost_at}:", "; ".join(log))
    return log


late, early = simulate(3), simulate(0.5)
same = late == ["acknowledged at 2 by [1, 2]", "run() ends at 3 with 'replica lost'"]
same = same and early == ["the writer gets 'replica lost' at 0.5"]
sys.exit(0 if same else "the behaviour has changed")
PY
env/bin/python ask.py

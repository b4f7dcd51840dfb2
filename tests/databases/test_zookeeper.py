"""ZooKeeper: zoo.cfg as people write it, and the steps of reconfig on a model."""

import pytest

from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.system import read_deployment, write_deployment
from placement.errors import InputError, UnsupportedError
from tests.databases.worlds import pairs

SYSTEM = load_system("zookeeper")
NAMES = Localities(("a", "b", "c"), tuple(Locality(f"z{i}", s) for i, s in enumerate("aabc", 1)))
CONFIG = """\
tickTime=2000
dataDir=/var/lib/zookeeper
# server.9=old:2888:3888
server.1=z1:2888:3888
server.2 = z2:2888:3888:participant;2181
server.3=z3:2888:3888;0.0.0.0:2181
server.4=z4:2888:3888:OBSERVER;2181
"""


def read(text):
    return read_deployment(SYSTEM, (("zoo.cfg", text),), SYSTEM.request(NAMES))


def test_a_file_is_read():
    found = read(CONFIG).deployment
    assert (found.voters_at, found.non_voters_at) == ({"a": 2, "b": 1}, {"c": 1})
    assert [member.identity for member in found.members] == ["1", "2", "3", "4"]


def test_weight_zero_has_no_vote():
    found = read(CONFIG + "weight.2=0\nweight.1=1\n")
    assert found.deployment.voters_at == {"a": 1, "b": 1}
    assert {f.rule for f in found.findings} == {"weight-zero"}


@pytest.mark.parametrize(
    "line",
    ["weight.1=2", "group.1=1:2", "server.1=z2:2888:3888", "server.5=z1", "server.5=nobody:1:2",
     "server.999=z1:1:2", "server.5=z1:1:2|z3:1:2", "server.5=z1:1:2|z2:1:2:observer",
     "server.5=z1:1:2|z2:1", "dynamicConfigFile=/x\nserver.5=z1:1:2"],
)  # fmt: skip
def test_what_is_refused_names_file_and_row(line):
    with pytest.raises(InputError, match=r"zoo\.cfg, row"):
        read(CONFIG + line)


def test_a_server_may_have_several_addresses():
    found = read(
        "server.1=z1:2888:3888|10.0.0.1:2889:3889;2181\nserver.2=z3:1:2:observer|z3:3:4:observer"
    )
    assert (found.deployment.voters_at, found.deployment.non_voters_at) == ({"a": 1}, {"b": 1})
    assert {f.rule for f in found.findings} == {"several-addresses"}
    text = write_deployment(SYSTEM, found.deployment, SYSTEM.request(NAMES)).text
    assert "server.1=z1:2888:3888:participant|10.0.0.1:2889:3889:participant;2181" in text
    assert read(text).deployment.roles == found.deployment.roles


def test_servers_of_one_host_stay_apart():
    """An export of three servers on one host held the last one alone."""
    found = read("server.1=z1:1:2\nserver.2=z1:3:4\nserver.3=z1:5:6\n").deployment
    text = write_deployment(SYSTEM, found, SYSTEM.request(NAMES)).text
    assert read(text).deployment == found


def test_steps_of_reconfig_on_a_model():
    for one, other, names in pairs(SYSTEM):
        request = SYSTEM.request(names)
        first = write_deployment(SYSTEM, one, request).text
        present = read_deployment(SYSTEM, (("f", first),), request).deployment
        text = write_deployment(SYSTEM, other, request, present).text
        roles = dict(line.split("=", 1) for line in first.splitlines() if line.startswith("server"))
        for line in text.splitlines():
            before = {key for key, value in roles.items() if ":participant" in value}
            if "reconfig -add " in line:
                key, value = line.split("reconfig -add ")[1].split("=", 1)
                roles[key] = value.split(" [")[0]
            elif "reconfig -remove " in line:
                gone = f"server.{line.split('reconfig -remove ')[1].split()[0]}"
                assert ":observer" in roles.pop(gone), "a participant is removed at once"
            after = {key for key, value in roles.items() if ":participant" in value}
            assert len(before ^ after) <= 1
            assert after
        end = dict(line.split("=", 1) for line in text.splitlines() if line.startswith("server"))
        assert roles == end


def test_what_cannot_be_said():
    names = Localities(("a",), (Locality("a b", "a"),))
    with pytest.raises(UnsupportedError, match="host name"):
        write_deployment(SYSTEM, Deployment.of("x", {"a": 1}), SYSTEM.request(names))
    numbers = Localities(("a",), (Locality("x", "a", {"id": "7"}), Locality("y", "a", {"id": "7"})))
    with pytest.raises(InputError, match="two servers"):
        write_deployment(SYSTEM, Deployment.of("x", {"a": 2}), SYSTEM.request(numbers))

"""etcd: the runbook, carried out on a model of the member list."""

import json

import pytest

from placement.databases import Deployment, load_system
from placement.databases.system import read_deployment, write_deployment
from placement.errors import InputError, UnsupportedError
from tests.databases.worlds import AFTER, BEFORE, localities, pairs

SYSTEM = load_system("etcd")


class Cluster:
    """Member list of etcd with the rules of the server: learners, quorum, who may be what."""

    def __init__(self, document, hosts):
        members = document["members"]
        self.voters = {m["name"] for m in members if not m["isLearner"]}
        self.learners = {m["name"] for m in members if m["isLearner"]}
        self.leader, self.hosts = document["leader"], hosts
        self.most = len(self.learners)

    def run(self, argv):
        words = [word for word in argv if not word.startswith("--")]
        flags = [word for word in argv if word.startswith("--")]
        if words[0] == "etcd":
            return
        if words[1] == "member":  # the command goes to a server that votes
            assert flags[0] in {f"--endpoints=https://{self.hosts[n]}:2379" for n in self.voters}
        match words[1:]:
            case ["member", "add", name]:
                assert "--learner" in flags
                assert name not in self.voters | self.learners
                self.learners.add(name)
            case ["member", "promote", name]:
                assert self.id(name) in self.learners
                self.learners.remove(self.id(name))
                self.voters.add(self.id(name))
            case ["member", "remove", name]:
                assert self.id(name) in self.voters | self.learners
                assert self.leader != self.id(name), "the leader is removed"
                before = len(self.voters)
                self.voters.discard(self.id(name))
                self.learners.discard(self.id(name))
                assert before - len(self.voters) <= 1
                assert self.voters
            case ["move-leader", name]:
                assert self.id(name) in self.voters, "only a voter can lead"
                self.leader = self.id(name)
            case _:
                pytest.fail(f"unknown command {argv}")
        self.most = max(self.most, len(self.learners))

    @staticmethod
    def id(text):
        return text.removeprefix("<ID of ").removesuffix(">")


def carried_out(before, after, request):
    first = json.loads(write_deployment(SYSTEM, before, request).text)
    cluster = Cluster(first, {row.name: row.facts["host"] for row in request.localities.rows})
    present = read_deployment(SYSTEM, (("first", json.dumps(first)),), request).deployment
    script = write_deployment(SYSTEM, after, request, present)
    document = json.loads(script.text)
    for step in document["steps"]:
        cluster.run(step["argv"])
    assert cluster.voters == {m["name"] for m in document["members"] if not m["isLearner"]}
    assert cluster.learners == {m["name"] for m in document["members"] if m["isLearner"]}
    if document["leader"] is not None and after.leaders:
        assert cluster.leader == document["leader"]
    said = [note for note in script.notes if "--max-learners" in note]
    assert bool(said) == (cluster.most > int(request.settings["max_learners"]))
    return cluster.most


def test_the_steps_lead_from_one_cluster_to_the_other():
    carried_out(BEFORE, AFTER, SYSTEM.request(localities(SYSTEM)))


def test_random_steps_end_at_the_plan_and_never_remove_the_leader():
    for before, after, names in pairs(SYSTEM, led=True):
        carried_out(before, after, SYSTEM.request(names, settings={"max_learners": 20}))


def test_more_learners_than_the_server_allows_are_refused():
    many = Deployment.of("plan", {"us-east-1": 1}, {"us-west-2": 2}, leaders=("us-east-1",))
    request = SYSTEM.request(localities(SYSTEM))
    with pytest.raises(UnsupportedError, match="max-learners"):
        write_deployment(SYSTEM, many, request)
    write_deployment(SYSTEM, many, SYSTEM.request(localities(SYSTEM), settings={"max_learners": 2}))


MEMBERS = {
    "header": {"cluster_id": 1, "member_id": 2, "raft_term": 3},
    "members": [
        {"ID": 10501334649042878790, "name": "db00", "peerURLs": ["http://db00.example:2380"],
         "clientURLs": ["http://db00.example:2379"]},
        {"ID": 2, "name": "db10", "peerURLs": ["http://db10.example:2380"],
         "clientURLs": ["http://db10.example:2379"]},
        {"ID": 3, "name": "db20", "peerURLs": ["http://db20.example:2380"], "clientURLs": [],
         "isLearner": True},
    ],
}  # fmt: skip
STATUS = [{"Status": {"leader": one}} for one in (2, 10501334649042878790, 10501334649042878790)]


def read(*values):
    request = SYSTEM.request(localities(SYSTEM))
    texts = [(f"{i}.json", json.dumps(value)) for i, value in enumerate(values)]
    return read_deployment(SYSTEM, texts, request)


def test_member_list_and_endpoint_status_are_read():
    found = read(MEMBERS, STATUS).deployment
    assert found.voters_at == {"us-east-1": 1, "us-west-2": 1}
    assert found.non_voters_at == {"eu-west-1": 1}
    assert found.leaders == ("us-east-1",)
    assert found.members[0].identity == "91bc3c398fb3c146"
    new = {"ID": 4, "peerURLs": ["http://new.example:2380"], "isLearner": True}
    more = read({"members": [*MEMBERS["members"], new]})
    assert "too-many-learners" in {f.rule for f in more.findings}
    other = [{"Endpoint": "x", "Status": {"leader": 7}}]  # of another cluster
    for texts in ((MEMBERS,), (MEMBERS, other)):
        assert "no-leader-preference" in {f.rule for f in read(*texts).findings}


@pytest.mark.parametrize("value", [{"members": [{"name": "nobody"}]}, {"members": 3}, {"a": 1}])
def test_bad_documents_name_the_file(value):
    with pytest.raises(InputError, match=r"0\.json"):
        read(value)


def test_a_learner_that_goes_makes_room_for_the_next():
    """The server allows one learner: the old one goes before the new one comes."""
    before = Deployment.of(
        "x", {"us-east-1": 1, "us-west-2": 1}, {"ap-south-1": 1}, leaders=("us-east-1",)
    )
    after = Deployment.of(
        "x", {"us-east-1": 1, "eu-west-1": 1}, {"us-west-2": 1}, leaders=("us-east-1",)
    )
    request = SYSTEM.request(localities(SYSTEM))
    assert carried_out(before, after, request) == 1

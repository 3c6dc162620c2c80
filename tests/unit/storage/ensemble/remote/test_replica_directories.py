"""Directories of a box with replicas: paths go to the local directories, addresses to replicas."""

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from pulsarbox.errors import Conflict, PersistenceError, PreconditionFailed
from pulsarbox.storage.ensemble.keeping.directories import Space
from pulsarbox.storage.ensemble.keeping.memory_directories import MemoryDirectories
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.membership import MemberRecord, Membership
from pulsarbox.storage.ensemble.memory_member import MemberDisk, MemoryMember
from pulsarbox.storage.ensemble.remote.link import ReplicaReply
from pulsarbox.storage.ensemble.remote.remote_member import RemoteMember
from pulsarbox.storage.ensemble.remote.replica_directories import ReplicaDirectories
from tests.unit.storage.ensemble.remote.fake_link import Described

NAME = "replica://there:1"
KNOWN = Membership("box", "m", 3, "e", (MemberRecord("m", NAME, MemberState.ACTIVE),), 2)


class Network:
    """One replica, which can be out of reach."""

    def __init__(self) -> None:
        self.disk = MemberDisk("there")
        self.is_up = True
        self.links: list[Described] = []
        self.tried = 0
        self.now = 0.0
        self.local = MemoryDirectories({"/a": MemberDisk("/a")})
        self.directories = ReplicaDirectories(self.local, self.connect, "run", "here", lambda: self.now)

    def connect(self, name: str) -> Described:
        assert name == NAME
        self.tried += 1
        if not self.is_up:
            raise PersistenceError(f"{name} cannot be reached")
        self.links.append(Described(self.disk))
        return self.links[-1]


def test_paths_are_those_of_this_machine() -> None:
    network = Network()
    directories = network.directories
    assert isinstance(directories.member("/a"), MemoryMember)
    assert directories.membership("/a") is None
    assert directories.is_empty("/a")
    assert directories.space("/a") == network.local.space("/a")
    directories.write_note("/a", "SCRUB", b"1")
    assert directories.read_note("/a", "SCRUB") == b"1"
    assert directories.absence("/a").startswith("/a is no longer there")
    directories.check_new("/b", ["/a", NAME], "box")
    assert network.tried == 0


def test_the_membership_of_a_connected_replica_needs_no_request() -> None:
    network = Network()
    network.disk.membership = KNOWN
    member = network.directories.member(NAME)
    assert isinstance(member, RemoteMember)
    assert network.directories.membership(NAME) == KNOWN  # asked for over a connection of its own
    assert not network.links[0].is_up
    member.open()
    tried = network.tried
    assert network.directories.membership(NAME) == KNOWN
    assert network.tried == tried
    assert network.directories.space(NAME) == Space(1, 2)
    network.directories.write_note(NAME, "SCRUB", b"1")
    assert network.directories.read_note(NAME, "SCRUB") == b"1"


def test_a_replica_that_cannot_be_reached_is_tried_less_and_less_often() -> None:
    network = Network()
    network.is_up = False
    times: list[float] = []
    for tenth in range(1200):
        network.now = tenth / 10
        before = network.tried
        assert network.directories.membership(NAME) is None
        times += [network.now] * (network.tried - before)
    assert [round(later - earlier) for earlier, later in itertools.pairwise(times)] == [
        1,
        2,
        4,
        8,
        16,
        30,
        30,
    ]
    network.is_up, network.now = True, 500.0
    network.disk.membership = KNOWN
    assert network.directories.membership(NAME) == KNOWN


def test_a_replica_of_another_box_cannot_be_added() -> None:
    network = Network()
    network.directories.check_new(NAME, ["/a"], "box")
    network.disk.box = "box"
    network.directories.check_new(NAME, ["/a"], "box")
    with pytest.raises(Conflict, match="belongs to box box"):
        network.directories.check_new(NAME, ["/a"], "another")
    with pytest.raises(PreconditionFailed, match="already a data directory"):
        network.directories.check_new(NAME, ["/a", NAME], "box")
    with pytest.raises(PreconditionFailed, match="is not the address of a replica"):
        network.directories.check_new("replica://there", [], "box")
    network.is_up = False
    with pytest.raises(PersistenceError, match="cannot be reached"):
        network.directories.check_new(NAME, [], "box")
    assert not network.directories.is_empty(NAME)


def test_a_replica_that_is_not_connected_has_no_notes_and_no_space() -> None:
    network = Network()
    assert network.directories.read_note(NAME, "SCRUB") == b""
    assert network.directories.absence(NAME) == f"{NAME} is not connected"
    with pytest.raises(PersistenceError, match="not connected"):
        network.directories.space(NAME)
    with pytest.raises(PersistenceError, match="not connected"):
        network.directories.write_note(NAME, "SCRUB", b"1")


def test_a_box_claims_the_directory_with_its_process_and_generation() -> None:
    network = Network()
    network.directories.generation = lambda: 7
    claims: list[Mapping[str, Any]] = []
    member = network.directories.member(NAME)

    class Claimed(Described):
        def call(self, operation: str, fields: Mapping[str, Any], body: bytes, seconds: float) -> ReplicaReply:
            claims.append(dict(fields))
            return super().call(operation, fields, body, seconds)

    network.directories._members[NAME]._connect = lambda name: Claimed(network.disk)
    member.open()
    assert claims == [{"run": "run", "generation": 7}]

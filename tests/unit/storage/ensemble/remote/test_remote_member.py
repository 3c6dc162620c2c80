"""A member behind a link passes the suite of all members, over values in memory."""

from collections.abc import Callable

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.keeping.directories import Space
from pulsarbox.storage.ensemble.member import Member
from pulsarbox.storage.ensemble.memory_member import MemberDisk, MemoryMember
from pulsarbox.storage.ensemble.remote.remote_member import RemoteMember
from tests.unit.storage.ensemble.member_conformance import MemberConformance, MemberStore, membership, packed
from tests.unit.storage.ensemble.remote.fake_link import FakeLink

NAME = "replica://there:1"


class RemoteStore(MemberStore):
    """A member in memory behind a link."""

    def __init__(self) -> None:
        self.disk = MemberDisk("there")
        self.link = FakeLink(MemoryMember(self.disk))

    def make(self) -> Member:
        """See MemberStore."""
        self.link = FakeLink(MemoryMember(self.disk))
        return RemoteMember(NAME, lambda name: self.link, dict, "here")


class TestRemoteMember(MemberConformance):
    """The member behind a link."""

    @pytest.fixture
    def store(self) -> MemberStore:
        return RemoteStore()

    @pytest.fixture
    def make_store(self) -> Callable[[], MemberStore]:
        return RemoteStore


def opened() -> tuple[RemoteStore, RemoteMember]:
    store = RemoteStore()
    member = store.reopen()
    assert isinstance(member, RemoteMember)
    return store, member


def test_devices_of_two_machines_differ() -> None:
    assert opened()[1].device == 1 << 40
    store = RemoteStore()
    same = RemoteMember(NAME, lambda name: store.link, dict, "there")
    same.open()
    assert same.device == 5


def test_a_member_that_is_not_connected_says_why() -> None:
    store, member = opened()
    assert member.is_there()
    store.link.why = "the replica has not answered for 5 s"
    assert not member.is_there()
    assert member.absence == f"{NAME} is not connected: the replica has not answered for 5 s"
    with pytest.raises(PersistenceError, match="has not answered"):
        member.commit(packed(1, [(1, 0, 1)]))


def test_a_batch_is_posted_without_waiting_and_completed_with_its_error() -> None:
    _, member = opened()
    done: list[Exception | None] = []
    for position in (4, 3):
        member.post(packed(position, [(1, position, 1)]), done.append)
    assert done[0] is None
    assert isinstance(done[1], ValueError)
    unopened = RemoteMember(NAME, lambda name: FakeLink(MemoryMember(MemberDisk("a"))), dict, "here")
    unopened.post(packed(1, []), done.append)
    assert str(done[2]) == f"{NAME} is not connected"


def test_the_membership_last_written_is_known_without_the_network() -> None:
    store, member = opened()
    member.write_membership(membership("box", 3))
    before = len(store.link.calls)
    assert member.known == membership("box", 3)
    assert len(store.link.calls) == before


def test_notes_and_space_are_those_of_the_replica() -> None:
    _, member = opened()
    member.write_note("SCRUB", b"x")
    assert member.read_note("SCRUB") == b"x"
    assert member.space() == Space(1, 2)
    with pytest.raises(PersistenceError, match="unknown note"):
        member.read_note("../secret")


def test_a_link_is_closed_if_the_directory_cannot_be_opened() -> None:
    store = RemoteStore()
    store.disk.present = False
    with pytest.raises(PersistenceError, match="no longer there"):
        store.reopen()
    assert not store.link.is_up

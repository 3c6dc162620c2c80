"""A replica over sockets: the suite of members, one box at a time, and peers that are wrong, slow or hostile."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.server.process.log_setup import Sparing
from pulsarbox.server.replica import (
    directory_owner,
    replica_connection,
    replica_connector,
    replica_link,
    replica_server,
)
from pulsarbox.storage.ensemble.member import Member
from pulsarbox.storage.ensemble.remote.frames import HANDSHAKE_MAX, HEAD, FrameKind, WireDecoder, WireFrame, encode
from pulsarbox.storage.ensemble.remote.handshake import hello
from tests.unit.server.replica.replica_fixture import ReplicaUnderTest, replica_at, wait_until
from tests.unit.storage.ensemble.member_conformance import MemberConformance, MemberStore, membership, packed


class SocketStore(MemberStore):
    """A member on a replica."""

    def __init__(self, replica: ReplicaUnderTest) -> None:
        self.replica = replica

    def make(self) -> Member:
        """See MemberStore."""
        return self.replica.member()


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[ReplicaUnderTest]:
    with replica_at(tmp_path) as running:
        yield running


class TestServedDirectory(MemberConformance):
    """The member on a data directory of another process."""

    @pytest.fixture
    def store(self, replica: ReplicaUnderTest) -> Iterator[MemberStore]:
        store = SocketStore(replica)
        yield store
        store.close()

    test_any_history = None  # type: ignore[assignment]  # of the same values, in memory: test_remote_member.py


def test_a_batch_is_confirmed_by_the_other_process_and_there_after_its_restart(tmp_path: Path) -> None:
    with replica_at(tmp_path) as running:
        member = running.member()
        member.open()
        member.write_membership(membership("box"))
        done: list[Exception | None] = []
        for position in range(1, 30):
            member.post(packed(position, [(1, position, 1)]), done.append)
        wait_until(lambda: len(done) == 29)
        assert done == [None] * 29
    assert not member.is_there()
    with replica_at(tmp_path) as again:
        content = again.member().open()
    assert (content.newest, content.membership, content.box) == (29, membership("box"), "box")


def test_a_process_that_reconnects_fences_its_former_connection(replica: ReplicaUnderTest) -> None:
    former, member = replica.member(), replica.member()
    former.open()
    former.commit(packed(1, []))
    assert member.open().newest == 1
    member.commit(packed(2, []))
    wait_until(lambda: not former.is_there())
    with pytest.raises(PersistenceError, match="not connected"):
        former.commit(packed(3, []))
    assert replica.member().open().newest == 2


def test_another_box_does_not_get_the_directory_of_one_that_answers(replica: ReplicaUnderTest) -> None:
    member = replica.member("one")
    member.open()
    member.write_membership(membership("box", 7))
    with pytest.raises(PersistenceError, match="uses the directory, and answers: stop it first"):
        replica.member("two", 7).open()
    member.commit(packed(1, []))
    assert replica.member("three", 8).open().newest == 1  # it knows a later generation
    wait_until(lambda: not member.is_there())


def test_another_box_gets_the_directory_of_one_that_is_silent(
    replica: ReplicaUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_owner, "LIVE_SECONDS", 0.0)
    member = replica.member("one")
    member.open()
    assert replica.member("two").open().newest == 0
    wait_until(lambda: not member.is_there())


def test_a_peer_that_does_not_answer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_connector, "HANDSHAKE_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listening, replica_at(tmp_path) as running:
        silent = f"replica://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(PersistenceError, match="no answer in time"):
            running.connector().connect(silent)


def test_a_link_ends_if_the_replica_falls_silent(replica: ReplicaUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_link, "PING_SECONDS", 60.0)
    link = replica.connector(silence_seconds=0.05).connect(replica.name)
    wait_until(lambda: not link.is_up)
    assert link.why == "the replica has not answered for 0.05 s"
    link.close()


def test_a_wrong_secret_is_refused_on_both_sides(
    replica: ReplicaUnderTest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(replica_connection, "_WRONG_SECONDS", 0.0)
    monkeypatch.setattr(replica_connection, "_refusals", Sparing())
    with pytest.raises(PersistenceError, match="cannot be used: the secret is wrong"):
        replica.connector(b"another secret, long enough").connect(replica.name)
    wait_until(lambda: "the secret is wrong" in caplog.text)
    assert "another secret" not in caplog.text


def raw(replica: ReplicaUnderTest) -> socket.socket:
    return socket.create_connection(("127.0.0.1", replica.port), 10)


def rest_of(connected: socket.socket) -> bytes:
    """Return everything up to the end of a connection, which the replica must end."""
    connected.settimeout(20)
    data = b""
    try:
        while more := connected.recv(1 << 16):
            data += more
    except ConnectionError:
        pass
    return data


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        HEAD.pack(HANDSHAKE_MAX + 1, 0),
        HEAD.pack(1 << 31, 0),
        b"".join(encode(WireFrame(FrameKind.REQUEST, 1, {"do": "open"}))),
        b"".join(encode(WireFrame(FrameKind.HELLO, 1, {"protocols": [9, 9]}))),
        b"".join(encode(hello(b"n" * 32, "1"))) + b"".join(encode(WireFrame(FrameKind.PROOF, 0, {}))) * 2,
        b"\xff" * 4096,
    ],
)
def test_a_stranger_gets_a_refusal_and_no_more(
    replica: ReplicaUnderTest, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_connection, "_WRONG_SECONDS", 0.0)
    with raw(replica) as connected:
        connected.sendall(data)
        answer = rest_of(connected)
    kinds = [frame.kind for frame in WireDecoder(HANDSHAKE_MAX).feed(answer)]
    assert kinds in ([FrameKind.REFUSED], [FrameKind.CHALLENGE, FrameKind.REFUSED], [])
    replica.member().open()  # others are served


def test_another_version_is_told_to_both(replica: ReplicaUnderTest) -> None:
    with raw(replica) as connected:
        connected.sendall(b"".join(encode(WireFrame(FrameKind.HELLO, 0, {"protocols": [2, 3], "version": "9.9"}))))
        (refusal,) = WireDecoder(HANDSHAKE_MAX).feed(rest_of(connected))
    assert "the versions of box and replica do not match: 9.9 and " in refusal.fields["reason"]


def test_a_handshake_has_a_limit_of_time(replica: ReplicaUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_connection, "HANDSHAKE_SECONDS", 0.05)
    with raw(replica) as connected:
        assert rest_of(connected) == b""


def test_strangers_do_not_use_up_the_connections(replica: ReplicaUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_server, "STRANGERS_MAX", 2)
    member = replica.member()
    member.open()
    held = [raw(replica) for _ in range(2)]
    with raw(replica) as refused:
        assert rest_of(refused) == b""
    member.commit(packed(1, []))
    for each in held:
        each.close()


def test_a_request_before_the_directory_is_opened_ends_the_connection(replica: ReplicaUnderTest) -> None:
    link = replica.connector().connect(replica.name)
    assert link.call("describe", {}, b"", 10.0).fields["box"] == ""
    with pytest.raises(PersistenceError, match="not connected"):
        link.call("check_room", {}, b"", 10.0)
    link.close()


def test_an_unknown_operation_ends_the_connection_and_is_not_run(replica: ReplicaUnderTest) -> None:
    link = replica.connector().connect(replica.name)
    link.call("open", {"run": "x", "generation": 0}, b"", 10.0)
    with pytest.raises(PersistenceError, match="not connected"):
        link.call("__class__", {}, b"", 10.0)
    link.close()


def test_a_batch_too_large_for_a_frame_is_an_error_of_that_batch(replica: ReplicaUnderTest) -> None:
    member = replica.member()
    member.open()
    huge = packed(1, [])._replace(value=bytes(65 << 20))
    with pytest.raises(PersistenceError, match="exceeds the limit"):
        member.commit(huge)
    member.commit(packed(1, []))
    member.close()


def test_parts_that_were_not_asked_for_end_the_connection(replica: ReplicaUnderTest) -> None:
    link = replica.connector().connect(replica.name)
    link.call("open", {"run": "x", "generation": 0}, b"", 10.0)
    number = link._request("checkpoint", {"position": 1, "dropped": []}, b"", lambda answer: None)
    for _ in range(50):
        link._send(WireFrame(FrameKind.PART, number, {}, bytes(1 << 20)))
    wait_until(lambda: not link.is_up)
    link.close()


def test_an_upload_that_ends_early_changes_nothing(replica: ReplicaUnderTest) -> None:
    member = replica.member()
    content = member.open()

    def rows() -> Iterator[tuple[bytes, bytes]]:
        yield b"a", bytes(3 << 20)
        member.close()  # the connection is lost
        yield b"b", bytes(3 << 20)

    with pytest.raises(PersistenceError, match="not connected"):
        member.replace_rows(rows(), 9)
    again = replica.member()
    content = again.open()
    assert (content.mark, list(content.rows.items(b""))) == (0, [])

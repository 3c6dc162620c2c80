"""An ensemble of a local and a remote member: the local one is needed, because the core reads its rows."""

from typing import Any

import pytest

from pulsarbox.clock import Now
from pulsarbox.errors import Conflict, PersistenceError, StoreFull
from pulsarbox.storage.engine import Checkpoint, ReadRequest
from pulsarbox.storage.ensemble.engine import EnsembleEngine
from pulsarbox.storage.ensemble.keeping.memory_directories import MemoryDirectories
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.memory_member import FaultOutcome, MemberDisk, MemoryMember, no_faults
from pulsarbox.storage.ensemble.remote.replica_directories import ReplicaDirectories
from pulsarbox.storage.journal import Batch
from tests.unit.storage.batches import batch_of, entry_of
from tests.unit.storage.ensemble.remote.fake_link import Described, FakeLink

NAME = "replica://there:1"


class Boxes:
    """Box processes on one local disk and one replica."""

    def __init__(self) -> None:
        self.here, self.there = MemberDisk("/here"), MemberDisk("there")
        self.link: FakeLink

    def start(self, *accepted: str) -> tuple[EnsembleEngine, list[bytes]]:
        """Return the engine of a new process, and the batches that it recovered."""
        local = MemoryDirectories({"/here": self.here})
        directories = ReplicaDirectories(local, self.connect, "run", "here", lambda: 0.0)
        engine = EnsembleEngine(
            [directories.member(NAME), MemoryMember(self.here)],
            accept_loss_of=accepted,
            directories=directories,
            new_id=iter(map(str, range(1000))).__next__,
        )
        return engine, list(engine.recover().batches)

    def connect(self, name: str) -> FakeLink:
        assert name == NAME
        self.link = Described(self.there)
        return self.link


def asking(position: int, copies: int = 2, ack_quorum: int = 2) -> Batch:
    batch = batch_of(position, [(1, position - 1, 1)])
    batch.ask(copies, copies, ack_quorum)
    return batch


def states(engine: EnsembleEngine) -> dict[str, str]:
    return {each.name: each.state for each in engine.status().members}


def broken(operation: str, _: Any) -> str:
    raise PersistenceError(f"{operation}: input/output error")


def test_confirmed_batches_are_read_from_the_replica_after_the_loss_of_the_machine() -> None:
    boxes = Boxes()
    engine, _ = boxes.start()
    for position in range(1, 6):
        engine.commit(asking(position))
    engine.checkpoint(Checkpoint(3, {b"a": b"1"}, ()))
    boxes.here = MemberDisk("/here")
    again, batches = boxes.start()
    assert len(batches) == 2
    assert states(again) == {NAME: MemberState.ACTIVE, "/here": MemberState.ACTIVE}
    assert again.read(ReadRequest(0, 1, 0, 4, 1 << 20)) == [entry_of(1, number) for number in range(5)]
    assert boxes.here.rows[b"a"] == b"1"


def test_rows_and_entries_are_read_from_this_machine_if_both_have_them() -> None:
    boxes = Boxes()
    engine, _ = boxes.start()
    engine.commit(asking(1))
    engine.checkpoint(Checkpoint(1, {b"a": b"1"}, ()))
    boxes.link.calls.clear()
    assert engine._rows.get(b"a") == b"1"
    assert list(engine._rows.items(b"")) == [(b"a", b"1")]
    assert engine.read(ReadRequest(0, 1, 0, 0, 1)) == [entry_of(1, 0)]
    assert boxes.link.calls == []


def test_the_replica_leaves_when_it_fails() -> None:
    boxes = Boxes()
    engine, _ = boxes.start()
    boxes.link.why = "the connection was lost"
    with pytest.raises(PersistenceError):
        engine.commit(asking(1))
    engine.commit(asking(1, 2, 1))
    assert states(engine)[NAME] == MemberState.LOST


def test_a_full_replica_is_read_and_written_again_once_it_has_space() -> None:
    boxes = Boxes()
    engine, _ = boxes.start()

    def full(operation: str, _: Any) -> str:
        if operation in ("commit", "check_room"):
            raise StoreFull("the disk is full")
        return FaultOutcome.DONE

    boxes.there.faults = full
    engine.commit(asking(1, 2, 1))
    engine.tend()
    assert states(engine)[NAME] == MemberState.FULL
    engine.find_room()
    assert states(engine)[NAME] == MemberState.FULL
    boxes.there.faults = no_faults
    engine.find_room()
    engine.commit(asking(2))
    assert sorted(boxes.there.log) == [2]


def test_the_core_never_waits_for_rows_of_the_replica() -> None:
    boxes = Boxes()
    engine, _ = boxes.start()
    engine.commit(asking(1))
    engine.checkpoint(Checkpoint(1, {b"a": b"1"}, ()))
    boxes.here.present = False
    boxes.link.calls.clear()
    engine._rows.get(b"a")  # of the directory that is open
    engine.table.slots = [slot for slot in engine.table.slots if slot.member.is_remote]
    with pytest.raises(PersistenceError, match="no data directory can be read"):
        engine._rows.get(b"a")
    assert boxes.link.calls == []


def test_a_replica_whose_connection_was_lost_is_connected_again_and_catches_up() -> None:
    boxes = Boxes()
    engine, _ = boxes.start()
    engine.commit(asking(1, 2, 1))
    boxes.link.why = "the network is down"
    for second in range(3):
        engine.maintain(Now(100.0 + second, 0))
        if states(engine)[NAME] == MemberState.LOST:
            break
    (member,) = [each for each in engine.status().members if each.name == NAME]
    assert member.why == f"{NAME} is not connected: the network is down"
    engine.commit(asking(2, 2, 1))
    engine.checkpoint(Checkpoint(2, {b"ids": b'{"next": 9}', b"ledger/%016x" % 1: b'{"entries": 2}'}, ()))
    assert engine.keeper is not None
    engine.keeper.wanted = lambda rows: lambda ledger_id: 2
    for second in range(60):
        engine.maintain(Now(110.0 + second, 0))
    assert states(engine)[NAME] == MemberState.ACTIVE
    assert {name: runs[1] for name, runs in engine.coverage([1]).items()} == {NAME: [(0, 2)], "/here": [(0, 2)]}


def test_the_last_directory_of_this_machine_stays() -> None:
    boxes = Boxes()
    engine, _ = boxes.start()
    engine.commit(asking(1))
    boxes.here.faults = broken
    with pytest.raises(PersistenceError):
        engine.commit(asking(2))
    with pytest.raises(PersistenceError):  # otherwise, the core would forget rows that no directory here has
        engine.checkpoint(Checkpoint(1, {b"a": b"1"}, ()))
    assert states(engine)["/here"] == MemberState.ACTIVE
    boxes.here.faults = no_faults
    engine.commit(asking(2))
    engine.checkpoint(Checkpoint(2, {b"a": b"2"}, ()))
    assert boxes.here.rows[b"a"] == boxes.there.rows[b"a"] == b"2"


def test_the_last_directory_of_this_machine_is_not_removed() -> None:
    boxes = Boxes()
    engine, _ = boxes.start()
    with pytest.raises(Conflict, match="/here is the only data directory of this machine"):
        engine.remove("/here", force=True)


def test_a_box_does_not_start_from_replicas_alone() -> None:
    boxes = Boxes()
    engine, _ = boxes.start()
    engine.commit(asking(1))
    boxes.here.faults = broken
    with pytest.raises(PersistenceError, match="open: input/output error"):
        boxes.start()
    boxes.here = MemberDisk("/here")
    boxes.here.faults = lambda operation, _: broken(operation, _) if operation == "replace_rows" else FaultOutcome.DONE
    with pytest.raises(PersistenceError, match=r"no data directory of this machine can be used: .*replace_rows"):
        boxes.start()

"""Real directories: bytes that flip on disk, directories that vanish or return, removal, and an interrupted scrub."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarbox.clock import Now
from pulsarbox.errors import Conflict, PreconditionFailed
from pulsarbox.storage.engine import Checkpoint, ReadRequest
from pulsarbox.storage.ensemble.engine import EnsembleEngine, EnsembleLimits
from pulsarbox.storage.ensemble.keeping.lmdb_directories import LmdbDirectories
from pulsarbox.storage.ensemble.keeping.maintenance import MaintenanceRates
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.status import MemberEvent
from pulsarbox.storage.lmdb.directory import locked_directory
from tests.unit.storage.batches import batch_of, body_of, entry_of

SIZE = 400


class DirectoryBox:
    """An engine on directories, with two copies of each entry."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        self.directories = LmdbDirectories(lambda name: LmdbMember(name, volume_size=60_000, index_flush_entries=25))
        self.ends: dict[int, int] = {}
        self.now = 0.0
        self.events: list[MemberEvent] = []
        self.open(*names)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def open(self, *names: str) -> None:
        self.engine = EnsembleEngine(
            [self.directories.member(self.path(name)) for name in names],
            limits=EnsembleLimits(segment_bytes=30_000),
            directories=self.directories,
            rates=MaintenanceRates(0, 0, 0),
            monotonic=lambda: self.now,
        )
        self.engine.on_change = self.events.append
        assert self.engine.keeper is not None
        self.engine.keeper.wanted = lambda rows: lambda ledger_id: 2
        for _ in self.engine.recover().batches:
            pass

    def publish(self, rounds: int = 20, ledgers: tuple[int, ...] = (1, 2, 3)) -> None:
        for _ in range(rounds):
            runs = [(ledger_id, self.ends.get(ledger_id, 0), 2) for ledger_id in ledgers]
            batch = batch_of(self.engine.next_position, runs, SIZE)
            batch.ask(3, 2, 2)
            self.engine.commit(batch)
            self.ends |= {ledger_id: first + 2 for ledger_id, first, _ in runs}

    def checkpoint(self) -> None:
        rows: dict[bytes, bytes | None] = {b"ids": json.dumps({"next": 1000}).encode()}
        for ledger_id, end in self.ends.items():
            rows[b"ledger/%016x/%016x" % (1, ledger_id)] = json.dumps({"entries": end}).encode()
        self.engine.checkpoint(Checkpoint(self.engine.next_position - 1, rows, ()))
        while self.engine.reclaim() is not None:
            pass

    def maintain(self, steps: int = 500) -> None:
        idle = 0
        while idle < 25 and steps:
            steps -= 1
            if self.engine.maintain(Now(self.now, int(self.now * 1000) + 1)) is None:
                idle += 1
                self.now += 1.0
            else:
                idle = 0
        assert steps, "maintenance does not come to an end"

    def state(self, name: str) -> str:
        return {each.name: each.state for each in self.engine.status().members}.get(self.path(name), "")

    def why(self, name: str) -> str:
        return next(each.why for each in self.engine.status().members if each.name == self.path(name))

    def copies_of(self, ledger_id: int, entry: int) -> list[str]:
        found = []
        for slot in self.engine.table.slots:
            if slot.is_readable:
                try:
                    pieces = slot.member.pieces(ledger_id, entry, entry + 1, 1 << 20)
                except Exception:
                    continue
                assert [*pieces[0].entries] == [entry_of(ledger_id, entry, SIZE)]
                found.append(Path(slot.name).name)
        return found

    def assert_complete(self) -> None:
        for ledger_id, end in self.ends.items():
            for entry in range(end):
                assert len(self.copies_of(ledger_id, entry)) >= 2, (ledger_id, entry, self.engine.status())
            found = self.engine.read(ReadRequest(1, ledger_id, 0, end - 1, 1 << 30))
            assert found == [entry_of(ledger_id, entry, SIZE) for entry in range(end)]
        assert self.engine.status().under_replicated == ()


@pytest.fixture
def box(tmp_path: Path) -> Iterator[DirectoryBox]:
    box = DirectoryBox(tmp_path, "a", "b", "c")
    box.publish()
    box.checkpoint()
    box.maintain()
    yield box
    box.engine.close()


def flip(box: DirectoryBox, name: str, ledger_id: int, entry: int) -> None:
    """Change a byte of the stored body of an entry in the files of a directory."""
    body = body_of(ledger_id, entry, SIZE)
    for file in (box.folder / name).rglob("data.mdb"):
        found = file.read_bytes().find(body)
        if found >= 0:
            with file.open("r+b") as stored:
                stored.seek(found + 20)
                stored.write(b"?")
            return
    raise AssertionError(f"{ledger_id}:{entry} is not in {name}")


def test_the_copies_are_where_segments_put_them(box: DirectoryBox) -> None:
    box.assert_complete()
    assert box.engine.status().repair.bytes_done == 0
    assert all(each.bytes_used > 0 and each.bytes_free > 0 for each in box.engine.status().members)


def test_flipped_bytes_are_found_by_a_scrub_and_replaced(box: DirectoryBox) -> None:
    name = box.copies_of(2, 7)[0]
    flip(box, name, 2, 7)
    assert name not in box.copies_of(2, 7)
    box.engine.scrub(box.path(name))
    box.maintain()
    box.assert_complete()
    assert [event.kind for event in box.events if event.kind == "entries-damaged"] == ["entries-damaged"]


def test_a_removed_directory_is_copied_from_the_others(box: DirectoryBox) -> None:
    shutil.rmtree(box.folder / "b")
    box.publish(40)
    box.checkpoint()
    assert box.state("b") == MemberState.LOST
    box.maintain()
    box.assert_complete()
    (box.folder / "b").mkdir()
    box.engine.replace(box.path("b"), box.path("b"))
    box.maintain()
    assert box.state("b") == MemberState.ACTIVE
    box.publish(60)
    box.checkpoint()
    box.maintain()
    assert (box.folder / "b" / "ENSEMBLE").exists()
    box.assert_complete()


def test_entries_behind_the_checkpoint_are_copied_after_a_loss(box: DirectoryBox) -> None:
    def checkpoint() -> None:
        asked.append(box.engine.next_position)
        box.checkpoint()

    asked: list[int] = []
    box.checkpoint()
    box.maintain()
    box.engine.checkpointed.ask = checkpoint
    box.publish(3, (7,))
    (lost, _) = box.engine.status().segment.members
    shutil.rmtree(lost)
    box.publish(1, (8,))
    box.maintain()
    assert len(asked) == 1
    held = [each.name for each in box.engine.status().members if each.name != lost]
    for slot in box.engine.table.slots:
        if slot.name in held:
            assert slot.member.coverage([7])[7] == [(0, 6)]


def test_the_loss_of_a_directory_is_noticed_without_a_write(box: DirectoryBox) -> None:
    idle = next(name for name in "abc" if str(box.folder / name) not in box.engine.status().segment.members)
    (box.folder / idle).rename(box.folder / "away")
    box.maintain()
    assert box.state(idle) == MemberState.LOST


def test_a_directory_that_cannot_be_used_is_not_kept_open(box: DirectoryBox) -> None:
    box.engine.close()
    other = DirectoryBox(box.folder / "other", "a", "z")
    other.publish()
    other.engine.close()
    shutil.rmtree(box.folder / "b")
    (box.folder / "other" / "a").rename(box.folder / "b")
    box.open("a", "b", "c")
    assert "belongs to another box" in box.why("b")
    with locked_directory(box.folder / "b"):
        pass


def test_a_directory_that_was_moved_away_comes_back(box: DirectoryBox) -> None:
    (box.folder / "b").rename(box.folder / "away")
    box.publish(40)
    box.checkpoint()
    assert box.state("b") == MemberState.LOST
    (box.folder / "away").rename(box.folder / "b")
    box.maintain()
    assert box.state("b") == MemberState.ACTIVE
    box.publish(40)
    box.checkpoint()
    box.maintain()
    box.assert_complete()


def test_an_old_copy_of_a_directory_is_brought_up_to_date(box: DirectoryBox) -> None:
    box.engine.close()
    shutil.copytree(box.folder / "b", box.folder / "old")
    box.open("a", "b", "c")
    box.publish(40)
    box.checkpoint()
    box.maintain()
    box.engine.close()
    shutil.rmtree(box.folder / "b")
    (box.folder / "old").rename(box.folder / "b")
    box.open("a", "b", "c")
    box.publish(5)
    box.checkpoint()
    box.maintain()
    box.assert_complete()


def test_a_directory_is_added_and_another_removed(box: DirectoryBox) -> None:
    box.engine.add(box.path("d"))
    box.maintain()
    assert box.state("d") == MemberState.ACTIVE
    box.engine.remove(box.path("a"))
    box.publish(40)
    box.checkpoint()
    box.maintain()
    box.checkpoint()
    box.maintain()
    assert box.state("a") == ""
    box.assert_complete()
    box.engine.close()
    box.open("b", "c", "d")
    box.maintain()
    box.assert_complete()


def test_an_interrupted_scrub_goes_on_after_a_restart(box: DirectoryBox) -> None:
    box.engine.scrub(box.path("a"))
    box.engine.maintain(Now(box.now, 1000))
    box.engine.close()
    note = json.loads((box.folder / "a" / "SCRUB").read_text())
    assert note["done"] > 0
    box.open("a", "b", "c")
    box.maintain()
    status = {each.name: each.scrub for each in box.engine.status().members}[box.path("a")]
    assert status.finished > 0


def test_paths_that_cannot_be_used_are_refused(box: DirectoryBox, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    for path, reason in (
        ("relative", "not an absolute path"),
        (box.path("a") + "/inside", "one contains the other"),
        (str(tmp_path), "one contains the other"),
        (str(tmp_path / "file"), "not a directory"),
        (str(tmp_path / "full"), "not empty"),
    ):
        with pytest.raises(PreconditionFailed, match=reason):
            box.engine.add(path)


def test_a_directory_of_another_box_is_refused(box: DirectoryBox, tmp_path: Path) -> None:
    other = LmdbMember(tmp_path / "other")
    other.open()
    other.close()
    with pytest.raises(Conflict, match="belongs to box"):
        box.engine.add(str(tmp_path / "other"))


def test_a_directory_in_use_is_refused(box: DirectoryBox, tmp_path: Path) -> None:
    box.engine.add(box.path("d"))
    box.maintain()
    box.engine.remove(box.path("d"))
    box.maintain()
    box.checkpoint()
    box.maintain()
    box.now += 100
    box.maintain()
    with locked_directory(tmp_path / "d"), pytest.raises(Conflict, match="in use by process"):
        box.engine.add(box.path("d"))

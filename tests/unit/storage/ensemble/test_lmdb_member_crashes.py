"""A crash after any durable step of a member: no entry is lost, listed without being there, or left over."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pulsarbox.storage.engine import Checkpoint
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.lmdb.engine import MEMBER_STEPS
from tests.unit.storage.ensemble.member_conformance import BoxLog, entries_of, reclaim_all


class Crash(BaseException):
    """Simulated crash of the machine."""


class CrashingMember:
    """A member whose process ends after a step, and the steps that it has taken."""

    def __init__(self, path: Path, on_step: Callable[[str], None]) -> None:
        self.path = path
        self.on_step = on_step
        self.now = self.make()

    def make(self) -> LmdbMember:
        """Open the directory."""
        member = LmdbMember(self.path, volume_size=1 << 15, index_flush_entries=9, step=self.on_step)
        self.rows = member.open().rows
        return member

    def reopen(self) -> LmdbMember:
        """Open the directory as a new process does."""
        self.now.close()
        self.on_step = lambda _: None
        self.now = self.make()
        return self.now


KEY = f"ledger/{1:016x}/{1:016x}".encode()
ROWS = {b"ids": b'{"next": 9}', KEY: b"{}"}


def history(member: LmdbMember, log: BoxLog) -> Iterator[str]:
    """A history with every step; yields what it is about to do."""
    for each in range(30):
        batch = log.add(3, 1, 2)
        if each % 5:
            member.commit(batch)
    yield "adopt"
    member.adopt(log.pieces(1, [*range(3), *range(15, 18)]) + log.pieces(2, [0, 5]))
    member.checkpoint(Checkpoint(20, {b"a": b"1"}, ()))
    reclaim_all(member)
    yield "forget"
    member.forget(1, 16, 20)
    yield "replace"
    member.replace_rows(ROWS.items(), 20)
    member.engine.reclaimer.seal_all()
    yield "erase"
    member.commit(log.add(2))
    member.engine.volumes.roll()
    member.engine.reclaimer.seal_all()
    member.erase_from(29)


@pytest.mark.parametrize("step", MEMBER_STEPS)
def test_after_a_crash_each_entry_is_there_or_is_not_listed(tmp_path: Path, step: str) -> None:
    log = BoxLog()
    reached: list[str] = []

    def crash(name: str) -> None:
        if name == step:
            reached.append(name)
            raise Crash

    member = CrashingMember(tmp_path / "one", crash)
    doing = ""
    with contextlib.suppress(Crash):
        for act in history(member.now, log):
            doing = act
    assert reached
    now = member.reopen()
    own = {each for each in range(1, 31) if (each - 1) % 5}
    before = sorted(entry for each in own for entry in range(3 * each - 3, 3 * each))
    with_copies = sorted({*before, *range(3), *range(15, 18)})
    without = [entry for entry in with_copies if not 16 <= entry < 20]
    dropped = step != "rows written"
    expected = {
        "adopt": with_copies if step == "copies listed" else before,
        "forget": without,
        "replace": without,
        "erase": [entry for entry in without if entry < 90],  # the newest volume is cut first
    }
    for _ in range(2):
        assert entries_of(now, 1) == expected[doing]
        assert (now.ledgers() == [1]) == (doing == "erase" or (doing == "replace" and dropped))
        if doing == "replace":
            assert dict(member.rows.items(b"")) == (ROWS if dropped else {b"a": b"1"})
        now = member.reopen()
    now.erase_from(29)
    now.adopt(log.pieces(1, list(range(84))))
    now.checkpoint(Checkpoint(31, {}, ()))
    reclaim_all(now)
    assert entries_of(now, 1) == [*range(84)]
    now = member.reopen()
    assert entries_of(now, 1) == [*range(84)]
    now.checkpoint(Checkpoint(31, {}, (1, 2, 3)))
    now.engine.volumes.roll()
    reclaim_all(now)
    assert now.ledgers() == []
    assert [*now.engine.volumes.directory.packed_numbers()] == []
    now.close()

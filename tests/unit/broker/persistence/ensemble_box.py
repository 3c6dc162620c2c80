"""A box on several data directories, without files: the test says how many copies of a batch are durable."""

from collections.abc import Mapping, Sequence
from typing import Any

from pulsarbox.broker.host import Host
from pulsarbox.errors import PersistenceError, TooFewCopies
from pulsarbox.names import parse_topic
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.status import (
    EnsembleStatus,
    Fragment,
    MemberStatus,
    RepairStatus,
    ScrubStatus,
    SegmentStatus,
)
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.memory_engine import MemoryDisk
from tests.unit.broker.playbook import Box

KEYS = ("bookkeeperEnsemble", "bookkeeperWriteQuorum", "bookkeeperAckQuorum")


class FakeBookies:
    """Data directories; the test sets how many can be written."""

    def __init__(self, directories: int) -> None:
        self.states = [MemberState.ACTIVE] * directories
        self.writable = directories
        self.held: dict[str, dict[int, list[tuple[int, int]]]] = {}
        self.lacking: tuple[Fragment, ...] = ()

    def status(self) -> EnsembleStatus:
        """Return the state of all directories."""
        members = tuple(member(f"/d{number}", state) for number, state in enumerate(self.states))
        return EnsembleStatus(
            1, SegmentStatus(1, 1, ()), members, self.lacking, len(self.lacking), 0, RepairStatus(0, 0, 0, "")
        )

    def coverage(self, ledger_ids: Sequence[int]) -> Mapping[str, Mapping[int, Sequence[tuple[int, int]]]]:
        """Return the entries that the test has put into ``held``."""
        return {name: {each: runs[each] for each in ledger_ids if each in runs} for name, runs in self.held.items()}


def member(name: str, state: str) -> MemberStatus:
    """Return the status of a directory without contents."""
    return MemberStatus(name, name, state, "", 0, 0, (), 0, 0, 0, 0, 0, 0, 0, 0, 0.0, ScrubStatus(0, 0, 0, 0, 0))


class EnsembleBox(Box):
    """A broker with an in-memory store whose commits complete copy by copy."""

    def __init__(self, directories: int = 3, disk: MemoryDisk | None = None, **settings: Any) -> None:
        self.bookies = FakeBookies(directories)
        super().__init__(disk, host=Host(bookies=self.bookies), **settings)

    def persist(self, topic: str, ensemble: int, write: int, ack: int) -> None:
        """Set the persistence policy of a topic."""
        value = dict(zip(KEYS, (ensemble, write, ack), strict=True)) | {"managedLedgerMaxMarkDeleteRate": 0.0}
        self.broker.policies.set_topic(parse_topic(topic), "persistence", value, self.now)
        self.turn()

    def pause(self) -> None:
        """From now on, the test completes the commits."""
        self.auto = False

    def take(self) -> Batch:
        """Take the next batch, as the committer does."""
        batch = self.broker.take_batch(self.now)
        assert batch is not None
        return batch

    def copied(self, batch: Batch, copies: int) -> None:
        """Report that so many copies are durable."""
        self.broker.copies_durable(batch, copies, self.now)
        self.flush()

    def landed(self, batch: Batch) -> None:
        """Complete the commit with all copies."""
        self.engine.commit(batch)
        self.broker.committed(batch, self.now)
        self.flush()

    def fell_short(self, batch: Batch, copies: int) -> None:
        """Complete the commit with too few copies: the batch stays."""
        self.engine.commit(batch)
        self.broker.committed(batch, self.now, TooFewCopies(copies, "/d1 is lost"))
        self.flush()

    def failed(self, batch: Batch) -> None:
        """Fail the commit: nothing of the batch is stored."""
        self.broker.committed(batch, self.now, PersistenceError("no directory can be written"))
        self.flush()

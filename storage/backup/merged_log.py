"""The log behind the checkpoint, merged from cuts of several data directories."""

from collections.abc import Iterator, Sequence

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.backup.manifest import BackupError
from pulsarbox.storage.backup.member_cut import MemberCut
from pulsarbox.storage.ensemble.recovery import LogSource, readable
from pulsarbox.storage.format import BATCH_HEADER
from pulsarbox.storage.record import Entry, unpack_batch, verify_entry


class CutChanged(Exception):
    """The box changed the directories while they were opened."""


class MergedLog:
    """The batches after ``mark`` up to the first one that no directory has: has what ``store_log`` needs."""

    number = 1
    """The number of the volume of a restored box that gets them."""

    def __init__(self, cuts: Sequence[MemberCut], mark: int, first: int) -> None:
        """``first`` is the position at which the membership in force began: there is a batch at each before it.

        Raises CutChanged if two directories have different batches at a position, or later ones exist; BackupError if
        one is missing.
        """
        self.mark = mark
        self.first = mark + 1
        self.sources = sources_of(cuts)
        self.size = 0
        self._places: list[int] = []
        """Numbers of the sources of the batches, in order."""
        self._read()
        self.last = mark + len(self._places) if self._places else 0
        if mark + len(self._places) < first - 1:
            raise BackupError(f"batch {mark + len(self._places) + 1} is in none of the data directories")

    def batches(self, first: int) -> Iterator[tuple[int, bytes]]:
        """Yield positions and values from ``first`` to ``last``."""
        logs = [readable(source, first - 1) for source in self.sources]
        ahead = [next(log, None) for log in logs]
        for position in range(first, self.last + 1):
            for at, log in enumerate(logs):
                while (found := ahead[at]) is not None and found[0] < position:
                    ahead[at] = next(log, None)
            found = ahead[self._places[position - self.first]]
            if found is None or found[0] != position:
                raise BackupError(f"batch {position} cannot be read any more")
            yield found

    def _read(self) -> None:
        """Find out which directory has an intact copy of each batch."""
        logs = [readable(source, self.mark) for source in self.sources]
        ahead = [next(log, None) for log in logs]
        position = self.first
        while found := {at: each[1] for at, each in enumerate(ahead) if each is not None and each[0] == position}:
            if len({value[: BATCH_HEADER.size] for value in found.values()}) > 1:
                raise CutChanged(f"batch {position} differs")
            self._places.append(next((at for at, value in found.items() if _is_intact(value)), min(found)))
            self.size += len(found[self._places[-1]])
            for at in found:
                ahead[at] = next(logs[at], None)
            position += 1
        if any(ahead):
            raise CutChanged(f"batch {position} is in none of the data directories that can be read")


def sources_of(cuts: Sequence[MemberCut]) -> list[LogSource]:
    """Return the logs of some cuts."""
    return [LogSource(str(each.cut.path), 0, each.log) for each in cuts]


def _is_intact(value: bytes) -> bool:
    try:
        for _, record in unpack_batch(value):
            if isinstance(record, Entry):
                verify_entry(record)
    except PersistenceError:
        return False
    return True

"""What a topic has between two places: the stretches of its ledgers that readers see. Pure; nothing of pyspark."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from pulsarbox.client.credentials import NOBODY, Credentials


class Place(NamedTuple):
    """The next message to read. Ranges are half-open: the message at their start belongs to them, that at their end
    does not. ``batch`` counts within an entry; ids of Pulsar name the last message that was read instead."""

    ledger: int
    entry: int
    batch: int = 0


BEGINNING: Final = Place(-1, -1)
"""Before everything that a topic has, or ever had."""


class Segment(NamedTuple):
    """Entries ``first`` to ``last`` of one ledger, both included, that a reader sees right now; it can be pickled.

    ``messages`` and ``bytes`` are what is in them as they came, an estimate where somebody cut a segment. What stands
    in ``hidden`` is of aborted transactions: runs of entries, first and last included.
    """

    topic: str
    """Full name, of a partition its own."""
    ledger: int
    first: int
    last: int
    messages: int
    bytes: int
    hidden: tuple[tuple[int, int], ...] = ()
    from_batch: int = 0
    """Messages at the beginning of the first entry that are not wanted."""
    to_batch: int = 0
    """Of the last entry, only so many messages are wanted; 0 is all."""
    instance: str = ""
    """The id of the data directory where the entries stand; empty where that is not known, as of Apache Pulsar."""
    volumes: tuple[str, ...] = ()
    """The volumes in which they stood when that was asked for, as ``volumes/00000003``: for who puts together what lies
    together. Workers look again."""
    compacted: int = 0
    """Of a compacted view: the ledger in which its entries stand; ``first`` and ``last`` are of that one."""

    def parts(self, bytes_max: int) -> Iterator["Segment"]:
        """The same in pieces of about so many bytes, cut between entries."""
        entries = self.last - self.first + 1
        count = min(entries, -(-self.bytes // bytes_max)) if bytes_max > 0 else 1
        if count <= 1:
            yield self
            return
        for at in range(count):
            first = self.first + at * entries // count
            last = self.first + (at + 1) * entries // count - 1
            share = (last - first + 1) / entries
            yield self._replace(
                first=first,
                last=last,
                messages=round(self.messages * share),
                bytes=round(self.bytes * share),
                hidden=tuple((max(a, first), min(b, last)) for a, b in self.hidden if b >= first and a <= last),
                from_batch=self.from_batch if at == 0 else 0,
                to_batch=self.to_batch if at == count - 1 else 0,
            )


class Lost(NamedTuple):
    """Entries that were wanted and are not there any more, or cannot be read: first and last included."""

    topic: str
    ledger: int
    first: int
    last: int
    reason: str

    def __str__(self) -> str:
        """The range and the reason."""
        return f"{self.topic}: entries {self.ledger}:{self.first} to {self.ledger}:{self.last} {self.reason}"


@dataclass(frozen=True, slots=True)
class Reach:
    """How a box, or Apache Pulsar, is reached; it can be pickled, and does not show what is secret."""

    service_url: str
    """``pulsar://host:port``, several hosts separated by commas; ``pulsar+ssl`` for TLS."""
    admin_url: str = ""
    """``http://host:port``, or ``https``. Empty: without, a topic partition is one segment."""
    data_dir: str = ""
    """The data directory of the box, where a worker may have it; empty for none."""
    access: str = "auto"
    """``mmap``: read in place, or fail. ``wire``: over the network. ``auto``: in place where that is possible."""
    credentials: Credentials = NOBODY
    fail_on_data_loss: bool = True
    """Whether what is not there any more, or damaged, ends a read; else it is skipped and told."""
    seconds: float = 30.0
    """How long an answer is waited for."""

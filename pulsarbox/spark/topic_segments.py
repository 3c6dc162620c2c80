"""Topic segments: the runs of entries that a reader sees between two positions. Does not import pyspark."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from pulsarbox.client.credentials import NOBODY, Credentials
from pulsarbox.errors import PulsarBoxError


class ReadPosition(NamedTuple):
    """Position of the next message to read. Ranges are half-open. ``batch`` is an index within the entry; Pulsar's
    message IDs name the last message read instead."""

    ledger: int
    entry: int
    batch: int = 0


BEGINNING: Final = ReadPosition(-1, -1)
"""Position before everything that a topic has or ever had."""
_NO_END: Final = 2**63 - 1
"""Ledger of a position after everything that a topic can ever have."""


class TopicSegment(NamedTuple):
    """Entries ``first`` to ``last`` of one ledger, both included, that a reader sees now. Picklable.

    ``messages`` and ``bytes`` are as reported by the broker, or an estimate after a split. ``hidden`` lists runs of
    entries of aborted transactions, both ends included.
    """

    topic: str
    """Full name; of a partitioned topic, that of the partition."""
    ledger: int
    first: int
    last: int
    messages: int
    bytes: int
    hidden: tuple[tuple[int, int], ...] = ()
    from_batch: int = 0
    """Number of messages at the start of the first entry to skip."""
    to_batch: int = 0
    """Number of messages to read from the last entry; 0 is all."""
    instance: str = ""
    """ID of the data directory that holds the entries; empty if unknown, as with Apache Pulsar."""
    volumes: tuple[str, ...] = ()
    """Volumes that held the entries when the segment was listed, as ``volumes/00000003``: a hint for grouping segments
    by location. Workers look the volumes up again."""
    compacted: int = 0
    """Of a compacted view: the ledger that holds its entries and that ``ledger``, ``first`` and ``last`` refer to. -1
    for Apache Pulsar, which does not report it."""
    start: ReadPosition = BEGINNING
    """Start of a range of message IDs, when the segment is not a run of entries of one ledger."""
    end: ReadPosition | None = None
    """End of that range, exclusive. None: the segment is a run of entries."""

    @property
    def visible(self) -> list[tuple[int, int]]:
        """Runs of entries that are not hidden, as first and last."""
        runs, first = [], self.first
        for low, high in self.hidden:
            if first < low:
                runs.append((first, low - 1))
            first = high + 1
        if first <= self.last:
            runs.append((first, self.last))
        return runs

    def parts(self, bytes_max: int) -> Iterator["TopicSegment"]:
        """Split into pieces of about ``bytes_max`` bytes, between entries. A compacted view stays whole."""
        entries = self.last - self.first + 1
        count = min(entries, -(-self.bytes // bytes_max)) if bytes_max > 0 and self.end is None else 1
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
    """Entries in a requested range, ``start`` to ``end`` (exclusive), that are gone or unreadable."""

    topic: str
    start: ReadPosition
    end: ReadPosition
    reason: str

    def __str__(self) -> str:
        """Return the range and the reason."""
        (ledger, entry, _), (to_ledger, to_entry, _) = self.start, self.end
        upto = "on" if to_ledger >= _NO_END else f"up to {to_ledger}:{to_entry} (not included)"
        return f"{self.topic}: entries from {ledger}:{entry} {upto} {self.reason}"


class DataLost(PulsarBoxError):
    """Requested messages are gone or damaged. ``lost`` has the exact range."""

    def __init__(self, lost: Lost) -> None:
        super().__init__(f"{lost}. Set failOnDataLoss=false to skip them")
        self.lost = lost

    def __reduce__(self) -> tuple[type["DataLost"], tuple[Lost]]:
        """Support pickling: errors of workers are pickled on their way to the driver."""
        return type(self), (self.lost,)


def part_of(text: str) -> ReadPosition:
    """Parse a position as a box reports it: ``ledger:entry``, or ``ledger:entry:index``."""
    return ReadPosition(*(int(part) for part in text.split(":")))


def hosts_of(url: str, default_port: int) -> tuple[tuple[tuple[str, int], ...], bool]:
    """Return the hosts and ports of a service or admin URL, and whether it uses TLS. Raises ValueError."""
    scheme, found, rest = url.partition("://")
    if not found or scheme not in ("pulsar", "pulsar+ssl", "http", "https"):
        raise ValueError(
            f"{url!r} is not a valid broker URL: expected one like pulsar://localhost:6650 or http://localhost:8080"
        )
    hosts = []
    for each in rest.partition("/")[0].split(","):
        host, colon, port = each.rpartition(":") if not each.endswith("]") else (each, "", "")
        if not colon:
            host, port = each, str(default_port)
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"{url!r}: {each!r} is not a valid host and port")
        hosts.append((host.strip("[]"), int(port)))
    return tuple(hosts), scheme in ("pulsar+ssl", "https")


@dataclass(frozen=True, slots=True)
class Reach:
    """How to reach a broker, a box or Apache Pulsar. Picklable; its repr leaves secrets out."""

    service_url: str
    """``pulsar://host:port``, several hosts separated by commas; ``pulsar+ssl`` for TLS."""
    admin_url: str = ""
    """``http://host:port`` or ``https://host:port``. Without it, each topic partition is one segment."""
    data_dir: str = ""
    """The data directory of the box, if workers may have access to it; empty for none."""
    access: str = "auto"
    """``mmap``: read in place, or fail. ``wire``: over the network. ``auto``: in place if possible."""
    credentials: Credentials = NOBODY
    admin_credentials: Credentials | None = None
    """Credentials for the Admin API; None to use the same."""
    fail_on_data_loss: bool = True
    """True to fail a read on lost or damaged messages; otherwise they are skipped and reported."""
    plugins_dir: str = ""
    """Directory on the workers with plugin files, for codecs of entries read in place; empty for none."""
    seconds: float = 30.0
    """Timeout of a request."""

    @property
    def is_wire(self) -> bool:
        """Whether everything is certain to be read over the network."""
        return self.access == "wire" or (self.access == "auto" and not self.data_dir)

    @property
    def is_in_place(self) -> bool:
        """Whether entries are likely read in place. Workers decide, but usually see the same files as the driver."""
        return not self.is_wire and Path(self.data_dir).is_dir()

"""What a topic has between two places: the stretches of its ledgers that readers see. Nothing of pyspark."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from pulsarbox.client.credentials import NOBODY, Credentials
from pulsarbox.errors import PulsarBoxError


class Place(NamedTuple):
    """The next message to read. Ranges are half-open: the message at their start belongs to them, that at their end
    does not. ``batch`` counts within an entry; ids of Pulsar name the last message that was read instead."""

    ledger: int
    entry: int
    batch: int = 0


BEGINNING: Final = Place(-1, -1)
"""Before everything that a topic has, or ever had."""
_NO_END: Final = 2**63 - 1
"""The ledger of a place behind everything that a topic can ever have."""


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
    """Of a compacted view: the ledger in which its entries stand; ``ledger``, ``first`` and ``last`` are of that one.
    Of Apache Pulsar, which does not tell: -1."""
    start: Place = BEGINNING
    """Where not entries of one ledger are meant, but whatever was published under ids from here ..."""
    end: Place | None = None
    """... to here, not included: of a compacted view, and where nobody tells of ledgers. None: entries are meant."""

    @property
    def visible(self) -> list[tuple[int, int]]:
        """Runs of entries that are not hidden: first and last."""
        runs, first = [], self.first
        for low, high in self.hidden:
            if first < low:
                runs.append((first, low - 1))
            first = high + 1
        if first <= self.last:
            runs.append((first, self.last))
        return runs

    def parts(self, bytes_max: int) -> Iterator["Segment"]:
        """The same in pieces of about so many bytes, cut between entries; a compacted view stays whole."""
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
    """Entries that were wanted and are not there any more, or cannot be read: from ``start`` to ``end``, which does not
    belong to them."""

    topic: str
    start: Place
    end: Place
    reason: str

    def __str__(self) -> str:
        """The range and the reason."""
        (ledger, entry, _), (to_ledger, to_entry, _) = self.start, self.end
        upto = "on" if to_ledger >= _NO_END else f"up to {to_ledger}:{to_entry} (not included)"
        return f"{self.topic}: entries from {ledger}:{entry} {upto} {self.reason}"


class DataLost(PulsarBoxError):
    """What was asked for is not there any more, or damaged. ``lost`` has the exact range."""

    def __init__(self, lost: Lost) -> None:
        super().__init__(f"{lost}. With failOnDataLoss=false it is skipped")
        self.lost = lost

    def __reduce__(self) -> tuple[type["DataLost"], tuple[Lost]]:
        """Errors of workers are pickled on their way to the driver."""
        return type(self), (self.lost,)


def part_of(text: str) -> Place:
    """A place as a box tells it: ``ledger:entry``, or ``ledger:entry:index``."""
    return Place(*(int(part) for part in text.split(":")))


def hosts_of(url: str, default_port: int) -> tuple[tuple[tuple[str, int], ...], bool]:
    """Hosts and ports of a service or admin URL, and whether it is one of TLS. Raises ValueError."""
    scheme, found, rest = url.partition("://")
    if not found or scheme not in ("pulsar", "pulsar+ssl", "http", "https"):
        raise ValueError(
            f"{url!r} is no URL of a broker: it looks like pulsar://localhost:6650 or http://localhost:8080"
        )
    hosts = []
    for each in rest.partition("/")[0].split(","):
        host, colon, port = each.rpartition(":") if not each.endswith("]") else (each, "", "")
        if not colon:
            host, port = each, str(default_port)
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"{url!r}: {each!r} is no host and port")
        hosts.append((host.strip("[]"), int(port)))
    return tuple(hosts), scheme in ("pulsar+ssl", "https")


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
    admin_credentials: Credentials | None = None
    """Those for the Admin API, None for the same."""
    fail_on_data_loss: bool = True
    """Whether what is not there any more, or damaged, ends a read; else it is skipped and told."""
    plugins_dir: str = ""
    """Where a worker has files with plugins, for codecs of entries that are read in place; empty for none."""
    seconds: float = 30.0
    """How long an answer is waited for."""

    @property
    def is_wire(self) -> bool:
        """Whether it is known already that everything is read over the network."""
        return self.access == "wire" or (self.access == "auto" and not self.data_dir)

    @property
    def is_in_place(self) -> bool:
        """Whether entries are likely read in place: workers decide, but mostly can what a driver can."""
        return not self.is_wire and Path(self.data_dir).is_dir()

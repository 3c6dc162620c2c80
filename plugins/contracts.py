"""What a plugin of each kind is: all that an author has to know.

A plugin is a class whose constructor takes nothing, with a ``name`` and the ``api`` it was written for. It is found by
an entry point of the group of its kind, or as the class ``Plugin`` of a file in ``pluginsDirectory``, with a ``kind``
as well. One object is made in a process; what belongs to a topic or a producer is made by it (``open``, ``trained``).
Plugins are called on the path of messages: a call returns within microseconds, does not wait, and gives the same answer
in every process. ``pulsarbox.testing`` has the checks, docs/plugins.md the way from nothing to a plugin in use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar, runtime_checkable

KINDS: Final = ("routing", "hashing", "compression")

API: Final[Mapping[str, int]] = {"routing": 1, "hashing": 1, "compression": 1}
"""The version of each contract. It grows where an old plugin would do something wrong; then old ones are left out."""

HASH_MAX: Final = 0x7FFFFFFF
"""The largest hash: hashes have 31 bits, as Pulsar's have."""


@runtime_checkable
class Hashing(Protocol):
    """Key to number, for the choice of a partition and for the consumer of a key."""

    api: int
    """1."""
    name: str
    """By which settings and commands call it: lower-case letters, digits, ``-`` and ``_``."""

    def hash32(self, key: bytes) -> int:
        """A number from 0 to ``HASH_MAX``, of the key and of nothing else.

        ``key``: the UTF-8 of a partition key, or an ordering key, which may be any bytes; it may be empty. An exception
        counts as a failure of the plugin.
        """


class Unrouted(NamedTuple):
    """A message about to be published, as far as routing may look at it."""

    key: bytes | None
    """Its partition key in UTF-8, None without one. An ordering key is for consumers: clients do not route by it."""
    properties: Mapping[str, str]
    size: int
    """Bytes of the body, uncompressed."""
    sequence: int
    """Of messages of this producer before it."""
    batch: int
    """Of batches of this producer before it. Messages with the same number can go into one batch: they do where they go
    to the same partition. Without batching each message is a batch."""


Backlogs = Callable[[], Sequence[int]]
"""Messages that wait in each partition, as far as they are known: all 0 where they are not. Never older than some
seconds; cheap to ask."""

Choose = Callable[[Unrouted, int], int]
"""The partition, from 0, of a message to a topic with so many partitions, at least 1. The number of partitions may grow
from one message to the next; it never falls."""


class Producing(NamedTuple):
    """The producer for which a router is opened."""

    topic: str
    hash32: Callable[[bytes], int]
    """The hashing that is in use: a key's partition is ``hash32(key) % partitions``."""
    backlogs: Backlogs
    options: Mapping[str, str]
    """What the user has said to this router: ``--route-option name=value``."""


@runtime_checkable
class Routing(Protocol):
    """Message to partition.

    One that needs options has ``example_options`` as well, a mapping with which it can be tried.
    """

    api: int
    """1."""
    name: str

    def open(self, producing: Producing) -> Choose:
        """What chooses the partitions of one producer; it may remember what it has chosen.

        Raises ValueError where an option is missing or makes no sense; the text is shown.
        """


class Candidate(Protocol):
    """A consumer that can take a message now."""

    @property
    def name(self) -> str:
        """Consumer name; several may have the same."""

    @property
    def permits(self) -> int:
        """How many messages it has asked for."""

    @property
    def unacked(self) -> int:
        """How many it holds."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """What it said of itself when it subscribed (``properties`` of clients)."""


CandidateT = TypeVar("CandidateT", bound=Candidate)


@runtime_checkable
class ConsumerChoice(Protocol):
    """A message of a Shared subscription to one of those who can take it: a second form of routing plugin."""

    api: int
    """1."""
    name: str

    def choose(self, ready: Sequence[Any]) -> Any:
        """One of ``ready``, which has at least one ``Candidate``; whose turn was longest ago stands first."""


SLOTS: Final = 65536
"""The hash of a key falls into one of so many slots: ``hash % SLOTS``, 0 counts as 1."""


class Selector(Protocol):
    """Which consumer of one Key_Shared subscription has which keys; the keys of a slot are together.

    Between two changes a slot stays where it is: it is asked for once, and the answer is kept. Where a slot has moved,
    its new consumer gets nothing of it before the earlier one has acknowledged what it holds: no answer of a selector,
    a wrong one neither, changes the order of a key.
    """

    def add(self, consumer: Any) -> object:
        """A ``Candidate`` has come. What this gives is of no matter (the box's own selectors tell who lost slots)."""

    def remove(self, consumer: Any) -> object:
        """One that came has gone."""

    def select(self, slot: int) -> Any:
        """Of those that are here the one that has a slot, from 1 to ``SLOTS - 1``; there is one at least."""


@runtime_checkable
class KeyDivision(Protocol):
    """Keys of a Key_Shared subscription to its consumers: a third form of routing plugin."""

    api: int
    """1."""
    name: str

    def divide(self) -> Selector:
        """A selector for one subscription, without consumers."""


@runtime_checkable
class Codec(Protocol):
    """Bytes to fewer bytes and back. Objects are used by one thread at a time."""

    def compress(self, data: bytes) -> bytes:
        """``data`` in fewer bytes, or a few more. Any length, 0 too."""

    def decompress(self, data: bytes, size: int) -> bytes:
        """What was compressed, which has ``size`` bytes.

        Never makes more than ``size`` bytes, whatever ``data`` says; any exception where it is something else.
        """


@runtime_checkable
class ManyAtOnce(Protocol):
    """What a codec may have besides: many bodies in one call, which can let other threads run meanwhile."""

    def compress_many(self, bodies: Sequence[bytes]) -> list[bytes]:
        """Each of ``bodies``, compressed by itself."""

    def decompress_many(self, packed: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
        """Each as ``decompress`` gives it."""


@runtime_checkable
class Compression(Protocol):
    """A way to compress."""

    api: int
    """1."""
    name: str
    wire_id: int | None
    """Its number in Pulsar's protocol (CompressionType): of the built-in ones only; None elsewhere, because clients
    know no others."""
    rest_tag: bytes | None
    """Four bytes that stand before everything it has compressed on the disk; never used again for another form, and not
    for another plugin. None: not for use on the disk."""

    def open(self) -> Codec:
        """A codec. Each thread has its own."""

    def trained(self, dictionary: bytes) -> Codec | None:
        """A codec with a dictionary, which is given again to read what it has written; None where it has none."""

    def train(self, samples: Sequence[bytes], size: int) -> bytes | None:
        """A dictionary of at most ``size`` bytes for data that look like ``samples``; None where it has none."""

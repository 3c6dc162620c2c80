"""Contracts of the plugin kinds: everything a plugin author has to know.

A plugin is a class whose constructor takes no arguments, with a ``name`` and the ``api`` version it was written for. It
is found through an entry point of the group of its kind, or as the class ``Plugin``, with a ``kind``, of a file in
``pluginsDirectory``. Each process creates one instance, which creates the objects for a topic or a producer (``open``,
``trained``). Plugins are called for each message: a call must return within microseconds, must not block, and must give
the same answer in every process. ``pulsarbox.testing`` has the checks, docs/plugins.md a step-by-step guide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar, runtime_checkable

KINDS: Final = ("routing", "hashing", "compression")

API: Final[Mapping[str, int]] = {"routing": 1, "hashing": 1, "compression": 1}
"""Version of each contract. It is raised when old plugins would misbehave; these are then ignored."""

HASH_MAX: Final = 0x7FFFFFFF
"""The largest hash: hashes have 31 bits, as in Pulsar."""


@runtime_checkable
class Hashing(Protocol):
    """Hashing of keys, for selecting a partition and the consumer of a key."""

    api: int
    """Contract version: 1."""
    name: str
    """Name in settings and commands: lower-case letters, digits, ``-`` and ``_``."""

    def hash32(self, key: bytes) -> int:
        """Return a number from 0 to ``HASH_MAX`` that depends on the key alone.

        ``key``: a partition key in UTF-8, or an ordering key of arbitrary bytes; it may be empty. An exception counts
        as a failure of the plugin.
        """


class Unrouted(NamedTuple):
    """A message before routing: the attributes a router may use."""

    key: bytes | None
    """The partition key in UTF-8, or None. Clients do not route by the ordering key, which is for consumers."""
    properties: Mapping[str, str]
    size: int
    """Bytes of the uncompressed body."""
    sequence: int
    """Number of earlier messages of this producer."""
    batch: int
    """Number of earlier batches of this producer. Messages with the same number that are routed to the same partition
    share a batch. Without batching each message is a batch."""


Backlogs = Callable[[], Sequence[int]]
"""Messages waiting in each partition; 0 if unknown. Never older than a few seconds, and cheap to call."""

Choose = Callable[[Unrouted, int], int]
"""Returns the partition, from 0, of a message for a topic with that many partitions, at least 1. The number of
partitions may grow between messages but never shrinks."""


class Producing(NamedTuple):
    """The producer for which a router is opened."""

    topic: str
    hash32: Callable[[bytes], int]
    """The configured hashing: a key's partition is ``hash32(key) % partitions``."""
    backlogs: Backlogs
    options: Mapping[str, str]
    """The user's options for this router: ``--route-option name=value``."""


@runtime_checkable
class Routing(Protocol):
    """Selection of a partition for each message.

    A router that requires options also has ``example_options``, a mapping for conformance checks.
    """

    api: int
    """Contract version: 1."""
    name: str

    def open(self, producing: Producing) -> Choose:
        """Return the function that selects partitions for one producer; it may be stateful.

        Raises ValueError if an option is missing or invalid; the message is shown to the user.
        """


class Candidate(Protocol):
    """A consumer that can receive a message now."""

    @property
    def name(self) -> str:
        """Consumer name; not necessarily unique."""

    @property
    def permits(self) -> int:
        """Number of messages the consumer has requested."""

    @property
    def unacked(self) -> int:
        """Number of unacknowledged messages the consumer holds."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """Metadata from the subscribe command (``properties`` in clients)."""


CandidateT = TypeVar("CandidateT", bound=Candidate)


@runtime_checkable
class ConsumerChoice(Protocol):
    """Selection of a consumer for each message of a Shared subscription: the second form of routing plugin."""

    api: int
    """Contract version: 1."""
    name: str

    def choose(self, ready: Sequence[Any]) -> Any:
        """Return one of ``ready``, a non-empty sequence of ``Candidate``; the least recently chosen one is first."""


SLOTS: Final = 65536
"""Number of hash slots. A key's slot is ``hash % SLOTS``; 0 counts as 1."""


class Selector(Protocol):
    """Assignment of hash slots to the consumers of one Key_Shared subscription.

    Between two changes of consumers a slot must not move: it is selected once, and the answer is cached. The new owner
    of a slot receives its messages only after the previous one has acknowledged those it holds, so no answer of a
    selector, not even a wrong one, can break the order of a key.
    """

    def add(self, consumer: Any) -> object:
        """Add a ``Candidate``. The result is ignored (the built-in selectors return the consumers that lost slots)."""

    def remove(self, consumer: Any) -> object:
        """Remove a consumer that was added."""

    def select(self, slot: int) -> Any:
        """Return the consumer that owns a slot, from 1 to ``SLOTS - 1``; there is at least one consumer."""


@runtime_checkable
class KeyDivision(Protocol):
    """Assignment of keys to the consumers of a Key_Shared subscription: the third form of routing plugin."""

    api: int
    """Contract version: 1."""
    name: str

    def divide(self) -> Selector:
        """Return a selector for one subscription, without consumers."""


@runtime_checkable
class Codec(Protocol):
    """Compression and decompression of byte strings. An instance is used by one thread at a time."""

    def compress(self, data: bytes) -> bytes:
        """Compress ``data`` of any length, including 0. Incompressible data may grow slightly."""

    def decompress(self, data: bytes, size: int) -> bytes:
        """Decompress ``data`` to ``size`` bytes.

        Must never return more than ``size`` bytes, whatever ``data`` contains; raises any exception if it is invalid.
        """


@runtime_checkable
class ManyAtOnce(Protocol):
    """Optional bulk methods of a codec, which can release the interpreter lock during one call."""

    def compress_many(self, bodies: Sequence[bytes]) -> list[bytes]:
        """Compress each body separately."""

    def decompress_many(self, packed: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
        """Decompress each body as ``decompress`` does."""


@runtime_checkable
class Compression(Protocol):
    """A compression algorithm."""

    api: int
    """Contract version: 1."""
    name: str
    wire_id: int | None
    """CompressionType in Pulsar's protocol, for built-in codecs only; None for plugins, which clients would not
    know."""
    rest_tag: bytes | None
    """Four bytes stored before all data that the codec has compressed on disk; never reused for another format or
    plugin. None: not for compression at rest."""

    def open(self) -> Codec:
        """Return a codec for one thread."""

    def trained(self, dictionary: bytes) -> Codec | None:
        """Return a codec with a dictionary, for writing and for reading back; None if dictionaries are not
        supported."""

    def train(self, samples: Sequence[bytes], size: int) -> bytes | None:
        """Return a dictionary of at most ``size`` bytes for data similar to ``samples``; None if not supported."""

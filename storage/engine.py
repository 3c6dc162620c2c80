"""What the core asks of a store: four calls, met by the LMDB engine and the memory engine alike.

``recover`` comes first and once. ``commit`` is called by one thread at a time, ``read`` by another beside it.
Both may take long: they page, decompress and sync, and so they never run in the core's own thread.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Entry


class ReadRequest(NamedTuple):
    """Entries ``first`` to ``last`` of a ledger, as far as ``max_bytes`` go; always at least one."""

    token: int
    """Chosen by the core; comes back with the answer."""
    ledger_id: int
    first: int
    last: int
    max_bytes: int


class Recovery(NamedTuple):
    """What a store holds when it is opened."""

    meta: dict[bytes, bytes]
    """The rows of the last checkpoint."""
    batches: Iterator[bytes]
    """The batch values of the log after the checkpoint, oldest first. Raises PersistenceError at a damaged one."""
    next_position: int
    """The position of the next batch."""


class Engine(Protocol):
    """A durable store of batches, of the rows of the last checkpoint, and of entries by ledger and id."""

    def recover(self) -> Recovery:
        """Open the store and say what it holds."""

    def commit(self, batch: Batch) -> None:
        """Make a batch durable, then its checkpoint where it has one; on return all of it survives a power cut.

        Raises PersistenceError where the batch could not be stored: then nothing of it is there, and the same
        position may be committed again.
        """

    def read(self, request: ReadRequest) -> list[Entry]:
        """The entries asked for, in order, without gaps, from the first on.

        Sees every batch whose commit has returned. Raises PersistenceError where the first one cannot be given:
        it does not exist, or its bytes do not match the client's checksum. A later bad one ends the list before it.
        """

    def close(self) -> None:
        """Let go of the store. Nothing may be called afterwards."""

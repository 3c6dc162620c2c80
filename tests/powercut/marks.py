"""Marks of a workload in the log between its writes: operations begun and completed before a cut."""

import ctypes
import json
from typing import Any, Final

OPTIONS: Final = "options"
"""The options of the engine."""
BEGUN: Final = "begun"
"""A commit begins: position, and the batch's value."""
DONE: Final = "done"
"""A commit has returned: position."""
CHECKPOINT: Final = "checkpoint"
"""A checkpoint begins: position, rows, dropped ledgers."""
CHECKPOINTED: Final = "checkpointed"
"""A checkpoint has returned."""
RECLAIMED: Final = "reclaimed"
"""A reclaim step has returned: its kind."""
REOPENED: Final = "reopened"
"""The store was recovered: last position, position of its checkpoint, its rows."""

# Marks of the whole core:

SUBSCRIBED: Final = "subscribed"
"""A subscription exists."""
COMPACTED: Final = "compacted"
"""A compaction has run for some steps; whether it has ended."""
SENT: Final = "sent"
"""Messages are about to be sent: their numbers."""
RECEIPTED: Final = "receipted"
"""Receipts have arrived: ledger, entry and number of each."""
ACKING: Final = "acking"
"""Acknowledgements are about to be sent: ledger and entry of each."""
ACKED: Final = "acked"
"""The ack response has arrived."""


class Marker:
    """Writer of marks; only for a process that runs under the recorder."""

    def __init__(self) -> None:
        self._mark = ctypes.PyDLL(None).powercut_mark
        self._mark.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
        self._mark.restype = None

    def __call__(self, kind: str, blob: bytes = b"", **facts: Any) -> None:
        """Write a mark, with the bytes that belong to it."""
        data = json.dumps([kind, facts]).encode() + b"\n" + blob
        self._mark(data, len(data))


def read_mark(data: bytes) -> tuple[str, dict[str, Any], bytes]:
    """Return the kind, facts and bytes of a mark."""
    head, _, blob = data.partition(b"\n")
    kind, facts = json.loads(head)
    return kind, facts, blob


def rows_to_json(rows: dict[bytes, bytes | None]) -> dict[str, str | None]:
    """Convert rows of a checkpoint to the form in a mark."""
    return {key.hex(): None if value is None else value.hex() for key, value in rows.items()}


def rows_from_json(rows: dict[str, str | None]) -> dict[bytes, bytes | None]:
    """Convert rows in a mark back to those of a checkpoint."""
    return {bytes.fromhex(key): None if value is None else bytes.fromhex(value) for key, value in rows.items()}

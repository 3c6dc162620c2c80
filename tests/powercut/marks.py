"""What a workload notes in the log between its writes: what was begun, and what was done, before a cut."""

import ctypes
import json
from typing import Any, Final

OPTIONS: Final = "options"
"""How the engine is opened."""
BEGUN: Final = "begun"
"""A commit begins: position, and the batch's value."""
DONE: Final = "done"
"""A commit has returned: position."""
CHECKPOINT: Final = "checkpoint"
"""A checkpoint begins: position, rows, dropped ledgers."""
CHECKPOINTED: Final = "checkpointed"
"""It has returned."""
RECLAIMED: Final = "reclaimed"
"""A step of giving disk back has returned: what."""
REOPENED: Final = "reopened"
"""The store was recovered: the last position, the position of its checkpoint, its rows."""

# Of the whole core:

SUBSCRIBED: Final = "subscribed"
"""A subscription is there."""
COMPACTED: Final = "compacted"
"""A compaction has gone on; whether it has ended."""
SENT: Final = "sent"
"""Messages are about to be sent: their numbers."""
RECEIPTED: Final = "receipted"
"""Receipts have come: ledger, entry and number of each."""
ACKING: Final = "acking"
"""Acknowledgements are about to be sent: ledger and entry of each."""
ACKED: Final = "acked"
"""Their response has come."""


class Marker:
    """Writes marks; only in a process that runs under the recorder."""

    def __init__(self) -> None:
        self._mark = ctypes.PyDLL(None).powercut_mark
        self._mark.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
        self._mark.restype = None

    def __call__(self, kind: str, blob: bytes = b"", **facts: Any) -> None:
        """Note something, with bytes that belong to it."""
        data = json.dumps([kind, facts]).encode() + b"\n" + blob
        self._mark(data, len(data))


def read_mark(data: bytes) -> tuple[str, dict[str, Any], bytes]:
    """Kind, facts and bytes of a mark."""
    head, _, blob = data.partition(b"\n")
    kind, facts = json.loads(head)
    return kind, facts, blob


def rows_to_json(rows: dict[bytes, bytes | None]) -> dict[str, str | None]:
    """Rows of a checkpoint as a mark holds them."""
    return {key.hex(): None if value is None else value.hex() for key, value in rows.items()}


def rows_from_json(rows: dict[str, str | None]) -> dict[bytes, bytes | None]:
    """And back."""
    return {bytes.fromhex(key): None if value is None else bytes.fromhex(value) for key, value in rows.items()}

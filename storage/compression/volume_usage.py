"""Compression statistics of a part of a packed volume, as stored in the tables of meta."""

from typing import NamedTuple


class Usage(NamedTuple):
    """Entries of a ledger in a packed volume under one tag and dictionary."""

    tried: bytes
    """Tag of the codec tried; PLAIN for none."""
    entries: int
    came: int
    """Uncompressed bytes of their bodies."""
    stands: int
    """Stored bytes of their bodies, with the compression fields of their headers."""

"""What compressing has made of a part of a packed volume, as the tables of meta have it."""

from typing import NamedTuple


class Usage(NamedTuple):
    """What a packed volume was given of a ledger under one tag and dictionary."""

    tried: bytes
    """Tag of the codec that was to be used; PLAIN for none."""
    entries: int
    came: int
    """Bytes of their bodies as they came."""
    stands: int
    """And as they stand there, what their headers have more included."""

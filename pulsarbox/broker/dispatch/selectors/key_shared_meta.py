"""What a consumer of a Key_Shared subscription asks for when it subscribes."""

from dataclasses import dataclass
from enum import IntEnum


class KeySharedMode(IntEnum):
    """Who decides which consumer has which slots; the numbers are those of the protocol."""

    AUTO_SPLIT = 0
    """The broker."""
    STICKY = 1
    """Every consumer for itself: it names its ranges."""


@dataclass(frozen=True, slots=True)
class KeySharedMeta:
    """The protocol's KeySharedMeta as a value."""

    mode: KeySharedMode = KeySharedMode.AUTO_SPLIT
    ranges: tuple[tuple[int, int], ...] = ()
    """Slots that a consumer of STICKY wants, first and last of each range, as the client sent them: unchecked."""
    allow_out_of_order: bool = False
    """Whether messages of one key may overtake each other when the key moves to another consumer."""

"""The Key_Shared policy that a consumer requests when it subscribes."""

from dataclasses import dataclass
from enum import IntEnum


class KeySharedMode(IntEnum):
    """How slots are assigned to consumers; the numbers are the protocol's."""

    AUTO_SPLIT = 0
    """The broker assigns them."""
    STICKY = 1
    """Each consumer names its own ranges."""


@dataclass(frozen=True, slots=True)
class KeySharedMeta:
    """The protocol's KeySharedMeta as a value."""

    mode: KeySharedMode = KeySharedMode.AUTO_SPLIT
    ranges: tuple[tuple[int, int], ...] = ()
    """First and last slot of each range that a STICKY consumer requests, as sent by the client: not validated."""
    allow_out_of_order: bool = False
    """Whether messages of one key may overtake each other when the key moves to another consumer."""

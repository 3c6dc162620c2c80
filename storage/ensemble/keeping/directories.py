"""Access to directories that are not open as members: new ones, and those that return."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from pulsarbox.storage.ensemble.member import Member
from pulsarbox.storage.ensemble.membership import Membership
from pulsarbox.storage.format import REPLACES, SCRUB

SCRUB_NOTE: Final = SCRUB
"""Name of the note with the progress of the scrub."""
REPLACES_NOTE: Final = REPLACES
"""Name of the note with the member that a new one replaces."""
NOTES: Final = (SCRUB_NOTE, REPLACES_NOTE)


class Space(NamedTuple):
    """Bytes of a directory, and of its disk."""

    used: int
    free: int


class Directories(Protocol):
    """The directories that can be members. Thread-safe."""

    def member(self, name: str) -> Member:
        """Return a new member for a path, not yet open."""

    def membership(self, name: str) -> Membership | None:
        """Return the membership that a path has; None if it has none or cannot be read."""

    def absence(self, name: str) -> str:
        """Return in a sentence why a path no longer leads to its member."""

    def check_new(self, name: str, others: Sequence[str], box: str) -> None:
        """Verify that a path can become a member: empty or missing, or once a member of this box.

        Raises PreconditionFailed if it is inside one of the others or contains one, or is no directory; Conflict if it
        belongs to another box, or another process uses it.
        """

    def is_empty(self, name: str) -> bool:
        """Return whether a path is an empty directory."""

    def space(self, name: str) -> Space:
        """Return the space used and free. Raises PersistenceError."""

    def read_note(self, name: str, note: str) -> bytes:
        """Return a note of a member; empty if there is none or it cannot be read."""

    def write_note(self, name: str, note: str, content: bytes) -> None:
        """Store a small note beside the data of a member, durably; an empty one is removed.

        Raises PersistenceError.
        """

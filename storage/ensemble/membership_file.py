"""The file ENSEMBLE of a data directory: the membership as JSON."""

from pathlib import Path

from pulsarbox.storage.ensemble.membership import Membership
from pulsarbox.storage.ensemble.membership_json import decode_membership, encode_membership
from pulsarbox.storage.format import ENSEMBLE
from pulsarbox.storage.lmdb.directory import write_durably


def write_membership(path: Path, membership: Membership) -> None:
    """Store a membership in the data directory at ``path``, atomically and durably. Raises OSError."""
    write_durably(path / ENSEMBLE, encode_membership(membership))


def read_membership(path: Path) -> Membership | None:
    """Return the membership in the data directory at ``path``, or None. Raises PersistenceError, OSError."""
    try:
        content = (path / ENSEMBLE).read_bytes()
    except FileNotFoundError:
        return None
    return decode_membership(content, str(path / ENSEMBLE))

"""The data directory of a replica: its identity, notes and space, and the member of each session."""

import uuid
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.keeping.directories import Space
from pulsarbox.storage.ensemble.keeping.lmdb_directories import LmdbDirectories
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.member import MemberContent
from pulsarbox.storage.ensemble.membership_file import read_membership
from pulsarbox.storage.ensemble.membership_json import membership_fields
from pulsarbox.storage.ensemble.remote.replica_requests import ReplicaNotes
from pulsarbox.storage.lmdb.directory import read_identity

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_DEVICE_BYTES: Final = 6


def machine_id() -> str:
    """Return an id that the processes of one running machine share, and no others."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return f"{uuid.getnode():x}"


class ServedDirectory(ReplicaNotes):
    """A directory, and how to open it."""

    def __init__(self, path: Path, **settings: Any) -> None:
        """``settings`` are those of LmdbEngine."""
        self.path = path
        self._settings = settings
        self._directories = LmdbDirectories(self._member)
        self._machine = machine_id()

    def _member(self, name: str) -> LmdbMember:
        return LmdbMember(name, **self._settings)

    def member(self) -> LmdbMember:
        """Return a new member, not yet open."""
        return self._member(str(self.path))

    def describe(self) -> dict[str, Any]:
        """Return the directory for boxes that do not have it open. Raises PersistenceError."""
        try:
            membership = read_membership(self.path)
            box = read_identity(self.path).instance
        except FileNotFoundError:
            membership, box = None, ""
        except OSError as error:
            raise PersistenceError(f"{self.path} cannot be read: {error.strerror}") from error
        known = None if membership is None else membership_fields(membership)
        return {"membership": known, "box": "" if membership is None else box}

    def opened(self, content: MemberContent, device: int) -> dict[str, Any]:
        """Return what a box learns of the directory that it has opened."""
        elsewhere = sha256(f"{self._machine} {device}".encode()).digest()[:_DEVICE_BYTES]
        return {
            "membership": None if content.membership is None else membership_fields(content.membership),
            "mark": content.mark,
            "newest": content.newest,
            "box": content.box,
            "machine": self._machine,
            "device": device,
            "deviceElsewhere": int.from_bytes(elsewhere, "big"),
        }

    def space(self) -> Space:
        """See ReplicaNotes."""
        return self._directories.space(str(self.path))

    def read(self, note: str) -> bytes:
        """See ReplicaNotes."""
        return self._directories.read_note(str(self.path), note)

    def write(self, note: str, content: bytes) -> None:
        """See ReplicaNotes."""
        self._directories.write_note(str(self.path), note, content)

    def generation(self) -> int:
        """Return the generation that the directory has recorded, 0 if none."""
        known: Mapping[str, Any] | None = self.describe()["membership"]
        return 0 if known is None else int(known["generation"])

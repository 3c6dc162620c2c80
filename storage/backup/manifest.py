"""The manifest of a backup: its box, its batch position, and every file with its size and checksum.

A manifest is one JSON document. Its last field is the SHA-256 of the document without that field, so damage is
detected. A manifest is written after everything it names is durable: its presence makes a backup complete.
"""

import json
import re
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final, NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.lmdb.directory import BoxIdentity

FORMAT: Final = 1
"""Format version of backup directories and manifests."""
META_PATH: Final = "meta/data.mdb"
ROWS_PATH: Final = "rows"
"""The rows of the checkpoint, in place of ``meta``, in a backup of several data directories."""

_VOLUME = re.compile(r"(?:volumes|packed)/\d{8,19}/data\.mdb")
_LOG = re.compile(r"log/(\d{8,19})/\d{20}")
_ENTRIES = re.compile(r"entries/[0-9a-f]{16}/\d{8,19}")
_BESIDE = re.compile(r"(?:events/\d{1,20}\.ndjson|history/\d{1,20}-\d{1,3}\.frames)")
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ(?:-\d{1,6})?")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class BackupError(PersistenceError):
    """A backup cannot be created, read or restored."""


class BackupNotFound(BackupError):
    """The directory or the backup does not exist."""


class BackupConflict(BackupError):
    """Another process uses the directory, or the target exists."""


class BackupDamaged(BackupError):
    """A file of a backup is missing, truncated or changed."""


class BackupFile(NamedTuple):
    """One file of a backup."""

    path: str
    """Its path in the data directory; ``log/VOLUME/FIRST`` for a part of an unsealed volume's log, ``entries/...`` for
    entries of several data directories.
    """
    size: int
    sha256: str
    modified: int = 0
    """Modification time in the data directory of an immutable file, in ns since 1970."""
    first: int = 0
    last: int = 0
    """Positions of the first and last batch of a log part."""
    runs: tuple[tuple[int, int, int], ...] = ()
    """Ledger, first entry and end (exclusive) of the entries in a file of entries."""

    @property
    def volume(self) -> int:
        """The number of the volume that a log part belongs to; 0 for other files."""
        match = _LOG.fullmatch(self.path)
        return int(match[1]) if match else 0


class Manifest(NamedTuple):
    """A complete backup."""

    name: str
    pulsarbox: str
    """The version that wrote it."""
    box: BoxIdentity
    """The box that was backed up."""
    position: int
    """The last batch in the backup: the restored box has all batches up to here, and none after."""
    checkpoint: int
    """The batch that the checkpoint in ``meta`` covers."""
    begun: int
    completed: int
    """Milliseconds since 1970."""
    volumes: tuple[int, ...]
    """The unsealed volumes; their batches are in the files under ``log/``."""
    codecs: tuple[str, ...]
    """Codecs that the compressed entries need."""
    files: tuple[BackupFile, ...]
    directories: int = 1
    """The number of data directories that were read."""
    lost: int = 0
    """Entries of which none of them had an intact copy."""

    @property
    def is_of_several(self) -> bool:
        """Whether it has rows and entries in place of the files of a data directory."""
        return any(file.path == ROWS_PATH for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def log_of(self, volume: int) -> list[BackupFile]:
        """Return the parts of a volume's log, in order."""
        return sorted((file for file in self.files if file.volume == volume), key=lambda file: file.first)


def is_name(text: str) -> bool:
    """Return whether ``text`` has the form of a backup's name, such as ``2026-12-01T11-28-14Z``."""
    return _NAME.fullmatch(text) is not None


def pack_manifest(manifest: Manifest) -> bytes:
    """Encode a manifest as a document."""
    document: dict[str, Any] = {"format": FORMAT, **manifest._asdict()}
    document["box"] = manifest.box._asdict()
    document["files"] = [pack_file(file) for file in manifest.files]
    return json.dumps({**document, "sha256": _digest(document)}, indent=1).encode() + b"\n"


def unpack_manifest(data: bytes, where: str) -> Manifest:
    """Decode the manifest of a document; ``where`` names it in errors. Raises BackupDamaged, BackupError."""
    try:
        document = json.loads(data)
        claimed, version = document.pop("sha256"), document.pop("format")
        if claimed != _digest({"format": version, **document}):
            raise BackupDamaged(f"{where} is damaged: its contents do not match its checksum")
        if version != FORMAT:
            raise BackupError(f"{where} has format {version!r}; this version of pulsarbox reads format {FORMAT}")
        box = document.pop("box")
        document["box"] = BoxIdentity(**{**box, "lineage": tuple(box["lineage"])})
        document["files"] = tuple(unpack_file(file) for file in document["files"])
        manifest = Manifest(**{**document, **{name: tuple(document[name]) for name in ("volumes", "codecs")}})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackupDamaged(f"{where} is damaged: {error!r}") from error
    _check_logs(manifest, where)
    return manifest


def pack_file(file: BackupFile) -> dict[str, Any]:
    """Encode a file as a JSON object, without fields that have their default."""
    return {name: value for name, value in file._asdict().items() if value or name == "size"}


def unpack_file(fields: dict[str, Any]) -> BackupFile:
    """Decode the file of a JSON object. Raises ValueError, KeyError and TypeError if it is invalid.

    Manifests are untrusted input: only paths that a backup can have are accepted, so none can escape the target
    directory.
    """
    runs = tuple((int(ledger), int(first), int(end)) for ledger, first, end in fields.get("runs", ()))
    file = BackupFile(**{**fields, "runs": runs})
    patterns = (_VOLUME, _LOG, _ENTRIES, _BESIDE)
    known = file.path in (META_PATH, ROWS_PATH) or any(pattern.fullmatch(file.path) for pattern in patterns)
    if not known or not _SHA256.fullmatch(file.sha256) or type(file.size) is not int or file.size < 0:
        raise ValueError(f"{file.path!r} is not a file of a backup")
    return file


def _check_logs(manifest: Manifest, where: str) -> None:
    """Raise BackupDamaged unless the batches of the log parts are consecutive up to the position of the backup."""
    parts = [part for volume in sorted(manifest.volumes) for part in manifest.log_of(volume)]
    following = all(before.last + 1 == part.first for before, part in pairwise(parts))
    ends = parts[-1].last if parts else manifest.position
    if (
        not following
        or ends != manifest.position
        or not {META_PATH, ROWS_PATH} & {file.path for file in manifest.files}
    ):
        raise BackupDamaged(f"{where} is damaged: its files do not form a complete data directory")


def _digest(document: dict[str, Any]) -> str:
    return sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

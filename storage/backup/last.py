"""The record of the last backup in a data directory. A light module, since ``pulsarbox status`` imports it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulsarbox.storage.format import BACKUP
from pulsarbox.storage.lmdb.directory import write_durably

if TYPE_CHECKING:
    from pulsarbox.storage.backup.manifest import Manifest


def note_backup(source: Path, target: Path, manifest: "Manifest") -> None:
    """Record a complete backup. Raises OSError."""
    told = {"name": manifest.name, "time": manifest.completed, "position": manifest.position}
    write_durably(source / BACKUP, json.dumps({**told, "directory": str(target.resolve())}).encode())


def last_backup(source: Path) -> dict[str, Any] | None:
    """Return when and where the last backup of a data directory was made, or None if unknown."""
    try:
        document = json.loads((source / BACKUP).read_bytes())
        last = {"name": str(document["name"]), "directory": str(document["directory"])}
        return {**last, "time": int(document["time"]), "position": int(document["position"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None

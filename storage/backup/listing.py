"""The backups of a directory with their states."""

from typing import NamedTuple

from pulsarbox.storage.backup.manifest import BackupError, Manifest
from pulsarbox.storage.backup.repository import Repository, order_of


class Listed(NamedTuple):
    """A backup and its state."""

    name: str
    state: str
    """``complete``, ``running``, ``incomplete`` (interrupted) or ``damaged``."""
    manifest: Manifest | None


def listed(repository: Repository) -> list[Listed]:
    """Return all backups, oldest first. Raises BackupError."""
    rows: list[Listed] = []
    for name in repository.names():
        try:
            rows.append(Listed(name, "complete", repository.manifest(name)))
        except BackupError:
            rows.append(Listed(name, "damaged", None))
    interrupted = repository.interrupted()
    running = interrupted[-1:] if interrupted and repository.is_busy() else []
    rows += [Listed(name, "running" if name in running else "incomplete", None) for name in interrupted]
    return sorted(rows, key=lambda row: order_of(row.name))

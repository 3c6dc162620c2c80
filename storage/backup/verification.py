"""Verification of backups: every manifest is intact, and every file has the stored size and contents."""

from collections.abc import Sequence
from typing import NamedTuple

from pulsarbox.storage.backup.manifest import BackupDamaged, BackupError, BackupFile, Manifest
from pulsarbox.storage.backup.pace import CopyPace
from pulsarbox.storage.backup.repository import Repository


class BackupDamage(NamedTuple):
    """Damage in a backup directory."""

    file: str
    """The damaged file of the backup directory."""
    reason: str
    paths: tuple[str, ...]
    """Its paths in a data directory; empty for a manifest."""
    backups: tuple[str, ...]
    """The backups that need it."""


class BackupReport(NamedTuple):
    """The result of a verification."""

    backups: tuple[str, ...]
    """The backups verified."""
    files: int
    bytes: int
    findings: tuple[BackupDamage, ...]
    interrupted: tuple[str, ...]
    unreferenced: int
    """Files that no backup references: left by an interrupted removal."""


def verify(repository: Repository, names: Sequence[str], pace: CopyPace) -> BackupReport:
    """Verify the named backups, by default all. Raises BackupNotFound, BackupConflict, BackupError."""
    with repository.reading():
        chosen = list(names) or repository.names()
        findings: list[BackupDamage] = []
        manifests: list[Manifest] = []
        for name in chosen:
            try:
                manifests.append(repository.manifest(name))
            except BackupDamaged as error:
                where, _, reason = str(error).partition(" is damaged: ")
                findings.append(BackupDamage(where, f"is damaged: {reason}", (), (name,)))
        needed: dict[tuple[str, int], list[tuple[str, BackupFile]]] = {}
        for manifest in manifests:
            for file in manifest.files:
                needed.setdefault((file.sha256, file.size), []).append((manifest.name, file))
        pace.total = sum(size for _, size in needed)
        for (digest, size), users in sorted(needed.items()):
            pace.what = users[0][1].path
            reason = _damage(repository, digest, size, pace)
            if reason:
                paths = tuple(dict.fromkeys(file.path for _, file in users))
                backups = tuple(dict.fromkeys(name for name, _ in users))
                findings.append(BackupDamage(str(repository.files.path(digest)), reason, paths, backups))
        return BackupReport(
            tuple(chosen), len(needed), pace.total, tuple(findings), tuple(repository.interrupted()), _loose(repository)
        )


def _damage(repository: Repository, digest: str, size: int, pace: CopyPace) -> str:
    try:
        for chunk in repository.files.read(digest, size):
            pace(len(chunk))
    except BackupDamaged as error:
        return str(error).removeprefix(str(repository.files.path(digest))).strip()
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return ""


def _loose(repository: Repository) -> int:
    try:
        return len(repository.unreferenced())
    except (BackupError, OSError):
        return 0

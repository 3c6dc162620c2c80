"""Parts shared by the backup commands: progress, exit codes, and a backup as text and as JSON."""

import contextlib
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pulsarbox.cli.common.exits import Failed, InTheWay, NotThere, run
from pulsarbox.cli.common.progress import ProgressBar, sized

if TYPE_CHECKING:
    from pulsarbox.storage.backup.manifest import Manifest

_NICE: Final = 19

_T = TypeVar("_T")


class BackupProgress:
    """Progress of copies, as ``CopyPace`` reports it."""

    def __init__(self, verb: str) -> None:
        self._bar = ProgressBar(verb, sized)

    def __call__(self, what: str, done: int, total: int) -> None:
        self._bar.update(done, total, what)

    def clear(self) -> None:
        """Clear the line."""
        self._bar.clear()


def ended(work: Callable[[], _T], progress: BackupProgress | None = None) -> _T:
    """Run the body of a backup command, and map its errors to the exit codes in the help."""
    from pulsarbox.storage.backup.manifest import BackupConflict, BackupNotFound
    from pulsarbox.storage.lmdb.directory import DirectoryHeld

    def kept() -> _T:
        try:
            return work()
        except BackupNotFound as error:
            raise NotThere(str(error)) from error
        except BackupConflict as error:
            raise InTheWay(str(error)) from error
        except DirectoryHeld as error:
            raise InTheWay(f"{error}: stop it first, or choose another directory") from error
        except OSError as error:
            raise Failed(f"{error.filename or ''}: {error.strerror or error}".removeprefix(": ")) from error
        finally:
            if progress is not None:
                progress.clear()

    return run(kept)


def lower_priority() -> None:
    """Lower the CPU and I/O priority of this process to the minimum."""
    import psutil

    with contextlib.suppress(OSError, AttributeError, psutil.Error):
        os.nice(_NICE)
        psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)


def document_of(manifest: "Manifest") -> dict[str, Any]:
    """Return a complete backup as JSON with stable field names."""
    return {
        "name": manifest.name,
        "instance": manifest.box.instance,
        "position": manifest.position,
        "begun": manifest.begun,
        "completed": manifest.completed,
        "bytes": manifest.size,
        "files": len(manifest.files),
        "codecs": list(manifest.codecs),
        "version": manifest.pulsarbox,
    }


def moment_of(millis: int) -> str:
    """Format a time in UTC, to the minute."""
    return datetime.fromtimestamp(millis / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")

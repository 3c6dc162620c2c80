"""Files that survive a power failure: our own, and Spark's record of an epoch. Does not import pyspark.

Spark closes and renames its checkpoint files but does not sync them.
"""

import contextlib
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pulsarbox.storage.lmdb.private_files import opener


def put(path: Path, text: str) -> None:
    """Replace a file atomically and durably. Raises OSError."""
    new = path.with_name(f"{path.name}.new")
    with open(new, "w", opener=opener) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Sync a file, or the entries of a directory. Raises OSError."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def make_folder(folder: Path) -> None:
    """Create a directory and its missing parents, each synced in its parent. Raises OSError."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def local(checkpoint: str) -> Path | None:
    """Return the directory of a checkpoint; None if it is not on this machine."""
    url = urlsplit(checkpoint)
    if not checkpoint or url.scheme not in ("", "file"):
        return None
    directory = Path(unquote(url.path) if url.scheme == "file" else checkpoint)
    return directory if directory.is_dir() else None


def make_durable(checkpoint: str, epoch: int) -> None:
    """Sync the checkpoint's record of an epoch before the epoch is published. Raises OSError.

    A power failure after publishing would otherwise lose the record. Spark would then build another epoch with the same
    number and more messages, and the broker would discard it as already published.
    """
    directory = local(checkpoint)
    if directory is None:
        return
    offsets = directory / "offsets"
    with contextlib.suppress(FileNotFoundError):
        sync(offsets / str(epoch))
        sync(offsets)
        if not epoch:
            sync(directory / "metadata")
            for each in (directory, *directory.absolute().parents):
                with contextlib.suppress(PermissionError):
                    sync(each)

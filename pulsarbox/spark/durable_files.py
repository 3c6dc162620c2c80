"""Files that are there after a power cut: our own, and what Spark has written of an epoch. Nothing of pyspark.

Spark closes and renames the files of its checkpoints, but has nothing of them put on the disk.
"""

import contextlib
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pulsarbox.storage.lmdb.private_files import opener


def put(path: Path, text: str) -> None:
    """Write a file as a whole: whoever reads it has the old text or the new one. Raises OSError."""
    new = path.with_name(f"{path.name}.new")
    with open(new, "w", opener=opener) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Have a file be durable, or the names in a folder. Raises OSError."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, each durable in the one that it is in. Raises OSError."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def local(checkpoint: str) -> Path | None:
    """The directory of a checkpoint; None where it is none of this machine."""
    url = urlsplit(checkpoint)
    if not checkpoint or url.scheme not in ("", "file"):
        return None
    directory = Path(unquote(url.path) if url.scheme == "file" else checkpoint)
    return directory if directory.is_dir() else None


def make_durable(checkpoint: str, epoch: int) -> None:
    """Have it be durable what an epoch is, before it is published. Raises OSError.

    The broker keeps what was published, and what the checkpoint says is gone with a power cut: then Spark would make
    another epoch of that number, with more messages, and the broker would take it for the one that it has.
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

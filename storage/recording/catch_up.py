"""Copies what was recorded into a folder that lacks some of it: one in a directory that is new or has returned."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pulsarbox.storage.lmdb.private_files import PRIVATE, make_directory

_COPY: Final = ".copy"


class _File(NamedTuple):
    size: int
    written: int
    """Nanoseconds since 1970."""


def catch_up(folder: Path, others: Sequence[Path], suffix: str) -> None:
    """Copy the files with a suffix that are missing or differ, from the folder that was written last.

    Names sort by time. Nothing is copied if ``folder`` itself was written last. Raises OSError.
    """
    for leftover in folder.glob(f"*{_COPY}"):
        leftover.unlink(missing_ok=True)
    found = {each: _files(each, suffix) for each in (folder, *others)}
    source = max(found, key=lambda each: _newest(found[each]))
    if source == folder:
        return
    make_directory(folder)
    for name, file in sorted(found[source].items()):
        if name not in found[folder] or file.size != found[folder][name].size:
            _copy(source / name, folder / name)


def _newest(files: dict[str, _File]) -> tuple[str, int]:
    return max(((name, file.written) for name, file in files.items()), default=("", 0))


def _files(folder: Path, suffix: str) -> dict[str, _File]:
    try:
        stats = {each.name: each.stat() for each in folder.iterdir() if each.suffix == suffix}
    except OSError:
        return {}
    return {name: _File(each.st_size, each.st_mtime_ns) for name, each in stats.items()}


def _copy(source: Path, target: Path) -> None:
    """Copy a file atomically and durably."""
    new = target.with_name(target.name + _COPY)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
    with source.open("rb") as reader, os.fdopen(descriptor, "wb") as writer:
        shutil.copyfileobj(reader, writer)
        writer.flush()
        os.fsync(writer.fileno())
    new.rename(target)

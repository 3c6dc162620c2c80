"""Selection of the files to merge. Pure.

Consecutive files with the same columns are merged if they fit into one file of the wanted size. If more files may
still follow, only a group of similar sizes is merged, so that a row is written again a few times at most, however many
files follow it.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from pulsarbox.spark.offload.manifest import OffloadedFile

FILE_BYTES: Final = 128 << 20
"""Size of a partition of Spark's reader (``spark.sql.files.maxPartitionBytes``)."""
LEAST: Final = 8
"""Least number of files to merge if more may follow."""


class FileRun(NamedTuple):
    """Consecutive files, as indexes: the first one, and the one after the last."""

    first: int
    end: int
    is_final: bool
    """Whether no file that follows can be added."""


def runs_to_merge(files: Sequence[OffloadedFile], limit: int = FILE_BYTES) -> list[FileRun]:
    """Return the runs of files to merge into one file each, in order. ``limit``: bytes of a file; 0 for none."""
    found = []
    for run in _runs(files, limit):
        first = run.first if run.is_final else _first_worth(files, run)
        if run.end - first >= (2 if run.is_final else LEAST):
            found.append(run._replace(first=first))
    return found


def _runs(files: Sequence[OffloadedFile], limit: int) -> Iterator[FileRun]:
    """Yield the longest runs that fit. Files of half the limit are large enough."""
    first, size = 0, 0
    for at, each in enumerate(files):
        if each.bytes >= limit // 2:
            yield FileRun(first, at, True)
            first, size = at + 1, 0
        elif at > first and (size + each.bytes > limit or each.schema != files[first].schema):
            yield FileRun(first, at, True)
            first, size = at, each.bytes
        else:
            size += each.bytes
    yield FileRun(first, len(files), False)


def _first_worth(files: Sequence[OffloadedFile], run: FileRun) -> int:
    """Return the first file of a run that is not larger than all later ones together."""
    sizes = [each.bytes for each in files[run.first : run.end]]
    later = [*accumulate(reversed(sizes))][::-1]
    worth = (at for at, size in enumerate(sizes) if 2 * size <= later[at])
    return run.first + next(worth, len(sizes))

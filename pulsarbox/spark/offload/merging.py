"""Merging of small files: consecutive ones of a topic or partition are replaced by one of the size that readers prefer.

The merged file is written, read back, compared with the ledgers of the manifest and durable before a line of the
manifest replaces the others. A killed process leaves a file without a line, which the next run deletes. Readers of the
manifest before that line still find the replaced files, which are deleted after a grace period.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pulsarbox.spark.durable_files import make_folder
from pulsarbox.spark.offload.content import ColumnChecksums
from pulsarbox.spark.offload.layout import merged_file_of
from pulsarbox.spark.offload.manifest import RESTORE, OffloadedFile, OffloadedLedger, OffloadError, Writing
from pulsarbox.spark.offload.merge_plan import runs_to_merge
from pulsarbox.spark.offload.object_path import ObjectPath, local_copy
from pulsarbox.spark.offload.progress import OffloadProgress, Unreported
from pulsarbox.spark.offload.writing import (
    Checked,
    OffloadFile,
    OffloadStopped,
    Step,
    check_order,
    checksum_of,
    put_in_place,
    tables_of,
    temporary,
)

_LEDGER: Final = "__ledgerId"


class SmallFiles:
    """Small files of one unpartitioned topic or partition."""

    def __init__(
        self,
        writing: Writing,
        topic: str,
        scratch: Path,
        step: Step = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
        progress: OffloadProgress | None = None,
    ) -> None:
        """``scratch``: local directory for files until they are uploaded. ``step`` receives the names of steps."""
        self._writing = writing
        self._topic = topic
        self._folder = writing.manifest.folder
        self._scratch = scratch
        self._step = step
        self._stopped = stopped
        self._progress: OffloadProgress = progress or Unreported()

    def merge(self, limit: int) -> Iterator[str]:
        """Merge files into files of up to ``limit`` bytes, and yield a report on each. 0 merges none.

        Raises OffloadStopped, OSError, and OffloadError if a file is missing or damaged.
        """
        files = self._writing.manifest.histories[self._topic].files.copy()
        runs = runs_to_merge(files, limit)
        if runs:
            size = sum(each.bytes for run in runs for each in files[run.first : run.end])
            self._progress.begin("merging small files", self._topic, size)
        for run in runs:
            old = files[run.first : run.end]
            checked, name = self._merged(old)
            made = (name, checked.bytes, checked.checksum)
            self._writing.merged(self._topic, [each.file for each in old], *made, at=round(time.time() * 1000))
            self._step("merged")
            yield f"merged {len(old)} files into one with {checked.rows:,} rows, {checked.bytes / 1e6:,.1f} MB"

    def _merged(self, files: Sequence[OffloadedFile]) -> tuple[Checked, str]:
        """Write the rows of files to one, put it in place and return its name. Leaves nothing behind on errors."""
        name_of = partial(merged_file_of, files[0].file, files[-1].ledgers[-1].ledger)
        path = (self._folder if isinstance(self._folder, Path) else self._scratch) / name_of()
        make_folder(path.parent)
        with _stored(self._folder, files[0]) as first:
            output = OffloadFile(temporary(path), pq.read_schema(first))
        try:
            self._write(files, output)
            checked = check_ledgers(temporary(path), [ledger for each in files for ledger in each.ledgers])
            self._step("merge checked")
            return checked, put_in_place(self._folder, path, name_of, checked, self._step)
        except Exception:
            output.abandon()
            raise

    def _write(self, files: Sequence[OffloadedFile], output: OffloadFile) -> None:
        for each in files:
            if self._stopped():
                raise OffloadStopped
            with _stored(self._folder, each) as source:
                output.add_rows(tables_of(source))
            self._progress.add(each.bytes)
        output.close()
        self._step("merge written")


@contextmanager
def _stored(folder: Path | ObjectPath, known: OffloadedFile) -> Iterator[Path]:
    """Provide a file of the manifest as a local one. Raises OSError, and OffloadError if it is missing or damaged."""
    stored = folder / known.file
    try:
        with local_copy(stored) as path:
            yield path
    except FileNotFoundError:
        raise OffloadError(f"{stored} is missing. {RESTORE}") from None
    except pa.ArrowException as error:
        raise OffloadError(f"{stored} cannot be read: {error}. {RESTORE}") from None


def check_ledgers(path: Path, ledgers: Sequence[OffloadedLedger]) -> Checked:
    """Read a file back. Raises OffloadError unless it has exactly these ledgers, with the content of the manifest, in
    the order of the log."""
    found: dict[int, ColumnChecksums] = {}
    before = (-1, -1, -1)
    try:
        for ledger, rows in _by_ledger(path):
            if ledger not in found:
                before = (-1, -1, -1)
            elif ledger != next(reversed(found)):
                raise OffloadError(f"{path}: rows are not in log order")
            before = check_order(rows, before, path)
            found.setdefault(ledger, ColumnChecksums()).feed(rows)
    except pa.ArrowException as error:
        raise OffloadError(f"{path} cannot be read: {error}") from None
    if list(found) != [each.ledger for each in ledgers]:
        raise OffloadError(f"{path} has other ledgers than the manifest lists for it")
    for each in ledgers:
        _compare(path, each, found[each.ledger])
    return Checked(path.stat().st_size, checksum_of(path), sum(each.rows for each in found.values()))


def _by_ledger(path: Path) -> Iterator[tuple[int, pa.Table]]:
    """Yield rows with their ledger; the rows of one ledger may come in several pieces."""
    for table in tables_of(path):
        runs = pc.run_end_encode(table.column(_LEDGER).combine_chunks())
        first = 0
        for ledger, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield ledger, table.slice(first, end - first)
            first = end


def _compare(path: Path, ledger: OffloadedLedger, found: ColumnChecksums) -> None:
    wrong = found.unlike(ledger.content)
    if wrong or found.rows != ledger.rows:
        raise OffloadError(
            f"{path}: ledger {ledger.ledger} differs from the rows that were offloaded: column {', '.join(wrong)}"
        )

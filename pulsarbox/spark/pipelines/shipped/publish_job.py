"""Resumable jobs that publish many rows, with their progress on disk. Does not import pyspark.

A job first stages its rows in files, then publishes them part by part, each exactly once (``jobPart``). If killed at
any point, the resumed job publishes the same rows and no duplicates. The box records the job's name, so that it cannot
be started again from another directory. It keeps two records per job: its owner, and the last published part.
"""

import fcntl
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from pulsarbox.errors import Conflict, PulsarBoxError, SinkOfAnotherWriter
from pulsarbox.spark.connect.connections import admin_of
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.durable_files import put
from pulsarbox.spark.options import WRITE, parse
from pulsarbox.spark.sink.epoch_client import JOB, Sink, SinkEpochs, SinkError
from pulsarbox.storage.lmdb.private_files import make_directory, opener

NUMBER: Final = "__n"
"""Column with a staged row's number: the partition in the high bits, the row in the low 33 bits."""
PARTITION_BITS: Final = 33
PARTS: Final = ".parts"
"""Suffix of the ``jobId`` under which the box tracks the parts of a job."""
PART_ROWS: Final = 50_000
"""Rows per part, unless a rate makes it the rows of one second."""


class JobError(Conflict):
    """The job cannot continue; the message gives the reason and the remedy."""


@dataclass(frozen=True)
class RowSpan:
    """Rows that are published together."""

    first: int
    """Number of the first row."""
    end: int
    """Exclusive end."""
    rows: int


def spans(counts: Iterable[tuple[int, int]], size: int) -> list[RowSpan]:
    """Split the rows of some partitions into parts of at most ``size``; ``counts``: rows by partition number."""
    found: list[RowSpan] = []
    first, rows, end = 0, 0, 0
    for partition, count in sorted(counts):
        done = 0
        while done < count:
            if not rows:
                first = (partition << PARTITION_BITS) + done
            taken = min(size - rows, count - done)
            done, rows = done + taken, rows + taken
            end = (partition << PARTITION_BITS) + done
            if rows == size:
                found.append(RowSpan(first, end, rows))
                rows = 0
    return [*found, RowSpan(first, end, rows)] if rows else found


@dataclass
class PublishProgress:
    """Persistent state of a job."""

    asked: dict[str, str]
    """The job's parameters, as text."""
    token: str = field(default_factory=lambda: str(uuid.uuid4()))
    spans: list[RowSpan] | None = None
    """None until the rows are staged."""
    published: int = 0
    """Number of published parts."""
    ended: bool = False
    note: list[Any] = field(default_factory=list)
    """Results determined when the rows were staged."""
    acknowledged: int = 0
    """Number of published messages that were acknowledged."""

    @property
    def rows(self) -> int:
        """Number of all rows."""
        return sum(each.rows for each in self.spans or ())

    @property
    def rows_published(self) -> int:
        """Number of rows in published parts."""
        return sum(each.rows for each in (self.spans or ())[: self.published])


class PublishJob:
    """One job and its directory, locked by this process."""

    def __init__(self, directory: Path, name: str, asked: Mapping[str, str]) -> None:
        """Start or resume a job. Raises JobError if it is running, or was started with other parameters."""
        self.name = name
        self.directory = directory
        self.rows_at = directory / "rows"
        try:
            make_directory(directory)
            self._lock = open(directory / "job.lock", "ab", opener=opener)  # noqa: SIM115 - held until close
        except OSError as error:
            raise JobError(
                f"{directory} cannot be used: {error.strerror}; choose another directory with --state"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise JobError(f"job {name} is already running, on {directory}") from None
        try:
            self.progress = self._read() or PublishProgress(dict(asked))
            self._check(asked)
            self.save()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    def __enter__(self) -> "PublishJob":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _path(self) -> Path:
        return self.directory / "job.json"

    def _read(self) -> PublishProgress | None:
        try:
            kept: dict[str, Any] = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise JobError(f"{self._path} cannot be read ({error}): choose another --job") from error
        found = kept.pop("spans")
        return PublishProgress(**kept, spans=None if found is None else [RowSpan(**each) for each in found])

    def _check(self, asked: Mapping[str, str]) -> None:
        if self.progress.spans is None:  # nothing is staged yet, so the parameters may be corrected
            self.progress.asked = dict(asked)
        before = self.progress.asked
        for name in sorted({*before, *asked}):
            if before.get(name) != asked.get(name):
                was = f"{name} {before[name]!r}" if name in before else f"no {name}"
                raise JobError(f"job {self.name} was started with {was}: use the same value, or choose another --job")

    def save(self) -> None:
        """Persist the progress durably. Raises PulsarBoxError on failure."""
        try:
            put(self._path, json.dumps(asdict(self.progress)))
        except OSError as error:
            raise PulsarBoxError(
                f"{self._path} cannot be written: {error.strerror}; fix that, and run it again"
            ) from None

    def claim(self, box: Mapping[str, str], namespace: str) -> None:
        """Reserve the job's name for this directory in the box. Raises JobError, PulsarBoxError."""
        to = reach(parse(dict(box), WRITE))
        sink = Sink(f"{namespace}/{JOB}{self.name}", self.progress.token, str(uuid.uuid4()))
        epochs = SinkEpochs(partial(admin_of, to), sink, to.seconds)
        try:
            epochs.commit(0, [])
        except SinkError as error:
            if error.code != SinkOfAnotherWriter.error_code:
                raise PulsarBoxError(str(error)) from error
            raise JobError(
                f"job {self.name} was started with a --state other than {self.directory.parent}: use that one, or "
                "choose another --job, which publishes everything again"
            ) from error
        finally:
            epochs.close()

    def part(self, number: int) -> dict[str, str]:
        """Return the options that publish a part once; ``number`` starts at 0."""
        return {"jobId": f"{self.name}{PARTS}", "jobPart": str(number + 1)}

    def parts(self) -> "Iterable[tuple[int, RowSpan]]":
        """Yield the remaining parts; each counts as published when the next is requested."""
        assert self.progress.spans is not None, "put aside"
        for number in range(self.progress.published, len(self.progress.spans)):
            yield number, self.progress.spans[number]
            self.progress.published = number + 1
            self.save()

    def end(self, clean: Callable[[Path], None]) -> None:
        """Mark the job as ended and delete its rows. Idempotent."""
        if not self.progress.ended:
            self.progress.ended = True
            self.save()
        clean(self.rows_at)

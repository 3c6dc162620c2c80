"""A job that publishes many rows: where it is written down, so that it goes on where it was killed. Nothing of pyspark.

First its rows are put aside in files, then they are published part by part, each part once (``jobPart``): whatever is
killed when, the job that is begun again publishes the same rows, and none twice. Its name is known to the box, so it
cannot be begun anew from another directory. Of a job the box keeps two rows: whose it is, and which part was the last.
"""

import fcntl
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from pulsarbox.errors import Conflict, PulsarBoxError
from pulsarbox.spark.connect.connections import admin_of
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.durable_files import put
from pulsarbox.spark.options import WRITE, parse
from pulsarbox.spark.sink.epoch_client import JOB, Epochs, Sink, SinkError
from pulsarbox.storage.lmdb.private_files import make_directory, opener

NUMBER: Final = "__n"
"""The column of a row's number among those put aside: the partition above, its place in that below 2 to the 33."""
PARTITION_BITS: Final = 33
PARTS: Final = ".parts"
"""What the ``jobId`` ends with under which the box knows the parts of a job."""
PART_ROWS: Final = 50_000
"""Rows of a part, unless there is a rate: then those of one second."""


class JobError(Conflict):
    """A job that cannot go on; says why and what to do."""


@dataclass(frozen=True)
class Span:
    """Rows that are published together."""

    first: int
    """By number."""
    end: int
    """Not included."""
    rows: int


def spans(counts: Iterable[tuple[int, int]], size: int) -> list[Span]:
    """Rows of some partitions in parts of at most ``size``; ``counts``: the rows of each partition, by its number."""
    found: list[Span] = []
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
                found.append(Span(first, end, rows))
                rows = 0
    return [*found, Span(first, end, rows)] if rows else found


@dataclass
class Progress:
    """What is written down of a job."""

    asked: dict[str, str]
    """What it was begun with, as texts."""
    token: str = field(default_factory=lambda: str(uuid.uuid4()))
    spans: list[Span] | None = None
    """None: the rows are not put aside yet."""
    published: int = 0
    """Parts that were published."""
    ended: bool = False
    note: list[Any] = field(default_factory=list)
    """What was found out when the rows were put aside."""
    acknowledged: int = 0
    """Messages, of those that were published."""

    @property
    def rows(self) -> int:
        """All."""
        return sum(each.rows for each in self.spans or ())

    @property
    def rows_published(self) -> int:
        """Of the parts that were."""
        return sum(each.rows for each in (self.spans or ())[: self.published])


class Job:
    """One job and its directory; nobody else works on it at the same time."""

    def __init__(self, directory: Path, name: str, asked: Mapping[str, str]) -> None:
        """Begins it, or takes it up. Raises JobError where it is at work, or was begun with something else."""
        self.name = name
        self.directory = directory
        self.rows_at = directory / "rows"
        try:
            make_directory(directory)
            self._lock = open(directory / "job.lock", "ab", opener=opener)  # noqa: SIM115 - held until close
        except OSError as error:
            raise JobError(f"{directory} cannot be used: {error.strerror}; name another place with --state") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise JobError(f"job {name} is at work already, on {directory}") from None
        try:
            self.progress = self._read() or Progress(dict(asked))
            self._check(asked)
            self.save()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let others work on it."""
        self._lock.close()

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _path(self) -> Path:
        return self.directory / "job.json"

    def _read(self) -> Progress | None:
        try:
            kept: dict[str, Any] = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise JobError(f"{self._path} cannot be read ({error}): begin another job") from error
        found = kept.pop("spans")
        return Progress(**kept, spans=None if found is None else [Span(**each) for each in found])

    def _check(self, asked: Mapping[str, str]) -> None:
        if self.progress.spans is None:  # nothing was put aside yet: what was wrong with it may be mended
            self.progress.asked = dict(asked)
        before = self.progress.asked
        for name in sorted({*before, *asked}):
            if before.get(name) != asked.get(name):
                was = f"{name} {before[name]!r}" if name in before else f"no {name}"
                raise JobError(f"job {self.name} was begun with {was}: go on with that, or choose another --job")

    def save(self) -> None:
        """Write down how far it is, durably. Raises PulsarBoxError where that cannot be."""
        try:
            put(self._path, json.dumps(asdict(self.progress)))
        except OSError as error:
            raise PulsarBoxError(
                f"{self._path} cannot be written: {error.strerror}; mend that, and run it again"
            ) from None

    def claim(self, box: Mapping[str, str], namespace: str) -> None:
        """Have the box keep the name for this directory. Raises JobError, PulsarBoxError."""
        to = reach(parse(dict(box), WRITE))
        sink = Sink(f"{namespace}/{JOB}{self.name}", self.progress.token, str(uuid.uuid4()))
        epochs = Epochs(partial(admin_of, to), sink, to.seconds)
        try:
            epochs.commit(0, [])
        except SinkError as error:
            if "is another" not in str(error):
                raise PulsarBoxError(str(error)) from error
            raise JobError(
                f"job {self.name} was begun before, with another --state than {self.directory.parent}: go on with that "
                "one, or choose another --job, which publishes everything again"
            ) from error
        finally:
            epochs.close()

    def part(self, number: int) -> dict[str, str]:
        """The options by which a part is published once; ``number`` from 0 on."""
        return {"jobId": f"{self.name}{PARTS}", "jobPart": str(number + 1)}

    def parts(self) -> "Iterable[tuple[int, Span]]":
        """Those that are left; each counts as published when the next one is asked for."""
        assert self.progress.spans is not None, "put aside"
        for number in range(self.progress.published, len(self.progress.spans)):
            yield number, self.progress.spans[number]
            self.progress.published = number + 1
            self.save()

    def end(self, clean: Callable[[Path], None]) -> None:
        """All is done: the rows are not needed any more. Once more does no harm."""
        if not self.progress.ended:
            self.progress.ended = True
            self.save()
        clean(self.rows_at)

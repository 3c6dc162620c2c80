"""Offloading of topics in rounds, and retention of what is not offloaded yet.

With ``hold``, each topic has a durable subscription specific to the directory, at the first position that the box must
retain. Retention policies respect it; message TTL and backlog quotas do not.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.sql.types import StructType

from pulsarbox.client.admin import Admin, AdminRefused, path_of_subscription
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import OFFLOAD_SUBSCRIPTION, OFFLOADED_PROPERTY, parse_topic
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.connect.connections import admin_of
from pulsarbox.spark.connect.schema_registry import Registry
from pulsarbox.spark.connect.target import in_place, reach
from pulsarbox.spark.durable_files import make_folder, sync
from pulsarbox.spark.offload import columns, ledgers
from pulsarbox.spark.offload.box_ledgers import accepted, beginning, due_of
from pulsarbox.spark.offload.layout import ABOUT, TEMPORARY, folder_of, topics_in
from pulsarbox.spark.offload.manifest import (
    Gap,
    OffloadedLedger,
    OffloadedTopic,
    OffloadError,
    OffloadManifest,
    Writing,
)
from pulsarbox.spark.offload.merge_plan import FILE_BYTES
from pulsarbox.spark.offload.merging import SmallFiles
from pulsarbox.spark.offload.object_path import ObjectPath
from pulsarbox.spark.offload.progress import OffloadProgress, Unreported
from pulsarbox.spark.offload.writing import OffloadJob, OffloadStopped, Step, finish, read
from pulsarbox.spark.options import READ, SparkOptions, parse
from pulsarbox.spark.source import topic_selection
from pulsarbox.spark.topic_segments import BEGINNING, ReadPosition

REPORT_SECONDS: Final = 1.0
"""Interval between reports to the box of what has been offloaded."""
GRACE_MS: Final = 600_000


def _nothing(_: str) -> None:
    """Ignore a step."""


@dataclass(frozen=True, kw_only=True)
class OffloadRequest:
    """Request: the topics to offload, and how."""

    directory: Path | ObjectPath
    box: Mapping[str, str]
    """Options of the format pulsarbox that locate the box."""
    topics: tuple[str, ...] = ()
    pattern: str = ""
    """Topic pattern, as in the option topicsPattern; an alternative to ``topics``."""
    before: str = ""
    """Only ledgers closed before this time, or this age as ``-1h``."""
    roll_ms: int | None = None
    """Minimum age at which to have the box close an open ledger; None: never."""
    hold: bool = True
    accept_loss: bool = False
    """True to record lost or damaged ranges and continue after them."""
    grace_ms: int = GRACE_MS
    """Time to hold ledgers after they are offloaded, and files after they are merged, for reads that began before."""
    file_bytes: int = FILE_BYTES
    """Size of the files that smaller ones are merged into; 0 to merge none."""

    def options(self) -> SparkOptions:
        """Return the options of the read. Raises OptionError."""
        named = {"topicsPattern": self.pattern} if self.pattern else {"topics": ",".join(self.topics)}
        return parse({**self.box, **named, "columns": "all"}, READ)


class Done(NamedTuple):
    """Result of a round for one topic, over all partitions."""

    topic: str
    ledgers: int
    rows: int
    bytes: int
    """Bytes of the files."""
    problem: str = ""
    """The reason for stopping early; empty if everything that can be offloaded was."""


@dataclass
class OffloadCount:
    """Counts of the ledgers and rows of a topic that a round has offloaded so far."""

    ledgers: int = 0
    rows: int = 0
    bytes: int = 0
    """Bytes of the files."""
    payload: int = 0
    """Bytes of the payloads."""
    begun: float = field(default_factory=time.monotonic)


class Offload:
    """Offloader of topics into a directory."""

    def __init__(
        self,
        asked: OffloadRequest,
        tell: Callable[[str], None],
        stopped: Callable[[], bool] = lambda: False,
        step: Step = _nothing,
        progress: OffloadProgress | None = None,
    ) -> None:
        """Prepare offloading. ``tell`` receives accepted losses; ``step`` the names of steps, for tests.

        Raises OptionError, OSError.
        """
        self.asked = asked
        self._options = asked.options()
        self.report = tell
        self.stopped = stopped
        self.step = step
        self.progress: OffloadProgress = progress or Unreported()
        self.reach = in_place(reach(self._options))
        self._held: dict[str, ReadPosition] = {}
        """Last known positions of the subscriptions."""
        self._reported: dict[str, tuple[str, float]] = {}
        """Ledgers last reported to the box, and when (monotonic seconds)."""
        self._unreported: set[str] = set()
        """Topics with a failed report."""
        self.subscription = OFFLOAD_SUBSCRIPTION + self._identity()

    def _identity(self) -> str:
        """Return the ID of the target, which distinguishes its subscriptions."""
        return identity(self.asked.directory)

    def target_of(self, topic: str) -> str:
        """Return the target of a topic, for messages."""
        return str(folder_of(self.asked.directory, topic))

    def round(self) -> list[Done]:
        """Offload what can be offloaded now. Raises OptionError for a missing topic, and broker errors that affect all
        topics; those of one topic are in its Done."""
        with Service(self.reach) as service:
            partitions: dict[str, list[str]] = {}
            for each in topic_selection.topics(service, self._options):
                partitions.setdefault(str(parse_topic(each).base), []).append(each)
            done = []
            for number, (topic, parts) in enumerate(partitions.items(), 1):
                if not self.stopped():
                    self.progress.topic(number, len(partitions))
                    done.append(self._one(service, topic, parts))
        return done

    def _one(self, service: Service, topic: str, partitions: Sequence[str]) -> Done:
        count, problem = OffloadCount(), ""
        try:
            self._topic(service, topic, partitions, count)
        except OffloadStopped:
            pass
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            problem = f"{self.target_of(topic)} cannot be written: {why}; the next run continues there"
        except (PulsarBoxError, ValueError) as error:
            problem = str(error)
        finally:
            self.progress.end()
        return Done(topic, count.ledgers, count.rows, count.bytes, problem)

    def _topic(self, service: Service, topic: str, partitions: Sequence[str], count: OffloadCount) -> None:
        schema = columns.of_topic(topic, dict(self.asked.box))
        folder: Path | ObjectPath = folder_of(self.asked.directory, topic)
        with Writing(folder) as writing, tempfile.TemporaryDirectory(prefix="pulsarbox-offload-") as scratch:
            writing.clean(round(time.time() * 1000) - self.asked.grace_ms)
            name = schema_id(schema)
            writing.schema(name, schema.jsonValue())
            registry = Registry(self.reach)
            registry.newest(topic)
            registry.close()
            for partition in partitions:
                part = _Partition(self, service, writing, partition, count, Path(scratch))
                part.offload(schema, name, registry)
            for partition in partitions:
                merging = SmallFiles(writing, partition, Path(scratch), self.step, self.stopped, self.progress)
                for merged in merging.merge(self.asked.file_bytes):
                    self.progress.finished(f"{partition}: {merged}")

    def hold(self, history: OffloadedTopic) -> None:
        """Move the subscription to the first position to retain: what is not offloaded, or only since ``grace_ms``."""
        self.hold_at(history.topic, ledgers.held_from(history, round(time.time() * 1000) - self.asked.grace_ms))

    def hold_all(self, topic: str) -> None:
        """Hold everything that the box has of a topic."""
        self.hold_at(topic, BEGINNING)

    def hold_at(self, topic: str, place: ReadPosition) -> None:
        """Move the subscription of a topic or partition. Raises OffloadError and the broker's errors."""
        if not self.asked.hold or self._held.get(topic) == place:
            return
        with Service(self.reach) as service:
            try:
                service.acknowledge(topic, self.subscription, place)
            except AdminRefused as error:
                raise OffloadError(
                    f"{topic}: the subscription {self.subscription}, which retains the messages, cannot be moved: "
                    f"{error}. --no-hold offloads without a subscription"
                ) from error
        self._held[topic] = place
        self.step("held")

    def report_offloaded(self, topic: str, begin: ReadPosition, end: ReadPosition, *, now: bool = True) -> None:
        """Report the offloaded ledgers to the box, for its statistics: those from ``begin`` to ``end``.

        Without ``now``, at most every REPORT_SECONDS. A failure is printed once per topic, and changes nothing else.
        """
        known, at = self._reported.get(topic, ("", float("-inf")))
        offloaded = ledgers.offloaded_range(begin, end)
        if not self.asked.hold or offloaded in ("", known) or not (now or time.monotonic() - at >= REPORT_SECONDS):
            return
        self._reported[topic] = (offloaded, time.monotonic())
        try:
            with Service(self.reach) as service:
                service.set_properties(topic, self.subscription, {OFFLOADED_PROPERTY: offloaded})
        except PulsarBoxError as error:
            self._reported[topic] = ("", time.monotonic())
            if topic not in self._unreported:
                self._unreported.add(topic)
                self.report(f"{topic}: the statistics of the box do not show what has been offloaded: {error}")


class _Partition:
    """Offloader of one unpartitioned topic or partition."""

    def __init__(
        self, whole: Offload, service: Service, writing: Writing, topic: str, count: OffloadCount, scratch: Path
    ) -> None:
        self._scratch = scratch
        self._whole = whole
        self._asked = whole.asked
        self._service = service
        self._writing = writing
        self._topic = topic
        self._count = count

    def offload(self, schema: StructType, name: str, registry: Registry) -> None:
        """Offload the ledgers that are due. Raises OffloadError for a gap that is not accepted, and read errors."""
        history = self._history()
        self._whole.hold(history)
        if self._asked.roll_ms is not None:
            self._service.close_ledger(self._topic, self._asked.roll_ms)
            self._whole.step("rolled")
        while True:
            self._whole.hold(history)
            found = self._due(history)
            written = json.dumps(schema.jsonValue())
            make = partial(self._job, columns=written, schema=name, registry=registry)
            if found.stretches:
                self._whole.progress.begin(
                    "offloading", self._topic, sum(each.segment.bytes for each in found.stretches)
                )
            try:
                for ledger in self._made(make(each) for each in found.stretches):
                    self._add(ledger, history)
            finally:
                self._report(history, now=True)
            if found.gap is None:
                return
            self._gap(found.gap)

    def _job(self, stretch: ledgers.ReadableLedger, **more: Any) -> OffloadJob:
        folder, reach = self._writing.manifest.folder, self._whole.reach
        scratch = None if isinstance(folder, Path) else self._scratch
        return OffloadJob(stretch, folder, reach=reach, accept_loss=self._asked.accept_loss, scratch=scratch, **more)

    def _made(self, jobs: Iterable[OffloadJob]) -> Iterator[OffloadedLedger]:
        """Yield ledgers in order; one file is finished while the next ledger is read, which uses another core:
        compression and comparison run outside the GIL."""
        whole = self._whole
        with ThreadPoolExecutor(1, "offload") as beside:
            before: Future[OffloadedLedger] | None = None
            for job in jobs:
                try:
                    if whole.stopped():
                        raise OffloadStopped
                    at_hand = read(job, whole.step, whole.stopped, whole.progress)
                except Exception:
                    if before is not None:
                        yield before.result()  # the ledger read completely
                    raise
                if before is not None:
                    try:
                        made = before.result()
                    except BaseException:
                        at_hand.output.abandon()
                        raise
                    yield made
                before = beside.submit(finish, at_hand, whole.step)
            if before is not None:
                yield before.result()

    def _history(self) -> OffloadedTopic:
        """Return the topic's history, started if missing."""
        histories = self._writing.manifest.histories
        if self._topic not in histories:
            self._whole.hold_all(self._topic)
            self._whole.step("begun")
            self._writing.begin(self._topic, *beginning(self._service, self._topic))
        return histories[self._topic]

    def _due(self, history: OffloadedTopic) -> ledgers.Due:
        return due_of(self._service, self._topic, history, str(self._writing.manifest.folder), self._asked.before)

    def _add(self, made: OffloadedLedger, history: OffloadedTopic) -> None:
        self._writing.ledger(made)
        self._whole.step("added")
        count = self._count
        count.ledgers += 1
        count.rows += made.rows
        count.bytes += made.file_bytes
        count.payload += made.payload_bytes
        rate = count.payload / max(time.monotonic() - count.begun, 0.001) / 1e6
        for each in made.lost:
            self._whole.report(f"{each}: recorded")
        self._whole.progress.finished(
            f"{self._topic}: ledger {made.ledger}, {made.rows:,} rows, {made.file_bytes / 1e6:,.1f} MB "
            f"({rate:,.0f} MB/s of payload)"
        )
        self._whole.hold(history)
        self._report(history, now=False)

    def _report(self, history: OffloadedTopic, *, now: bool) -> None:
        self._whole.report_offloaded(self._topic, history.begin.place, history.next.place, now=now)

    def _gap(self, gap: Gap) -> None:
        self._whole.report(f"{accepted(self._topic, gap, accept=self._asked.accept_loss)}: recorded")
        self._writing.lost(self._topic, gap)


def schema_id(schema: StructType) -> str:
    """Return the ID of a column set."""
    whole = json.dumps(schema.jsonValue(), sort_keys=True)
    return blake2b(whole.encode(), digest_size=8).hexdigest()


def identity(directory: Path | ObjectPath) -> str:
    """Return the directory's ID, created if missing, which distinguishes its subscriptions.

    Raises OSError, OffloadError, StorageError.
    """
    path = directory / ABOUT
    if isinstance(path, ObjectPath):
        _identify(path)
    else:
        assert isinstance(directory, Path)
        _identify_directory(directory, path)
    try:
        return str(json.loads(path.read_bytes())["id"])
    except (ValueError, KeyError, TypeError):
        raise OffloadError(f"{path} cannot be read: restore it, or offload into another directory") from None


def _new_identity() -> str:
    return json.dumps({"version": 1, "id": os.urandom(4).hex()}) + "\n"


def _identify(path: ObjectPath) -> None:
    if not path.exists():
        path.put_new(_new_identity().encode())  # the loser of a race uses the winner's ID
    if not path.honours_conditions(path.read_bytes()):
        raise OffloadError(
            f"{path}: this server ignores the header If-None-Match, so two offloads could overwrite each other: use a "
            "server with conditional writes"
        )


def _identify_directory(directory: Path, path: Path) -> None:
    make_folder(directory)
    if not path.exists():
        made = directory / f".{ABOUT}.{os.getpid()}{TEMPORARY}"
        made.write_text(_new_identity())
        with made.open("rb") as file:
            os.fsync(file.fileno())
        try:
            os.link(made, path)  # the loser of a race uses the winner's ID
        except FileExistsError:
            pass
        finally:
            made.unlink()
        sync(directory)


def release(directory: Path | ObjectPath, box: Mapping[str, str], wanted: Callable[[str], bool]) -> list[str]:
    """Delete the subscriptions that hold topics for a directory; return the topics that had one.

    Raises OptionError, OffloadError and the broker's errors.
    """
    name = OFFLOAD_SUBSCRIPTION + identity(directory)
    found = []
    for base in topics_in(directory):
        if not wanted(str(base)):
            continue
        with admin_of(reach(parse({**box, "topic": str(base)}, READ))) as admin:
            topics = OffloadManifest(folder_of(directory, str(base))).histories
            found += [topic for topic in topics if released(admin, topic, name)]
    return found


def released(admin: Admin, topic: str, name: str) -> bool:
    """Delete a subscription; return whether there was one. Raises the broker's errors."""
    try:
        admin.ask("DELETE", path_of_subscription(parse_topic(topic), name))
    except AdminRefused as error:
        if error.status != 404:
            raise
        return False
    return True

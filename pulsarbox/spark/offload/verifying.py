"""Verification of offloaded files against the manifest, and against what the box still has."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.types import StructType

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.connect.schema_registry import Registry
from pulsarbox.spark.connect.target import in_place, reach
from pulsarbox.spark.decode.entry_decoder import messages
from pulsarbox.spark.offload.columns import raw_names
from pulsarbox.spark.offload.content import ColumnChecksums
from pulsarbox.spark.offload.layout import folder_of, topics_in
from pulsarbox.spark.offload.ledgers import ReadableLedger, stretches
from pulsarbox.spark.offload.manifest import (
    RESTORE,
    OffloadedFile,
    OffloadedLedger,
    OffloadedTopic,
    OffloadError,
    OffloadManifest,
)
from pulsarbox.spark.offload.merging import check_ledgers
from pulsarbox.spark.offload.object_path import ObjectPath, local_copy
from pulsarbox.spark.offload.progress import LedgerProgress, OffloadProgress, Unreported
from pulsarbox.spark.offload.writing import batch_of, checksum_of, tables_for, wanted, with_more
from pulsarbox.spark.options import READ, parse
from pulsarbox.spark.source.offsets import text
from pulsarbox.spark.source.topic_selection import exists
from pulsarbox.spark.topic_segments import ReadPosition


class Verified(NamedTuple):
    """Result for one topic."""

    topic: str
    ledgers: int
    rows: int
    bytes: int
    compared: int
    """Ledgers that the box still has, with equal content."""
    gaps: int
    """Ranges lost before they were offloaded, and accepted by the operator."""
    problems: tuple[str, ...]


def verify(
    directory: Path | ObjectPath,
    chosen: Callable[[str], bool],
    box: Mapping[str, str] | None = None,
    tell: Callable[[str], None] = lambda _: None,
    progress: OffloadProgress | None = None,
) -> Iterator[Verified]:
    """Verify all files of the ``chosen`` topics; with ``box``, also against the entries that it still has.

    ``box``: options of the format pulsarbox. Raises OptionError, OSError and the broker's errors.
    """
    shown = progress or Unreported()
    names = [str(name) for name in topics_in(directory) if chosen(str(name))]
    for number, name in enumerate(names, 1):
        shown.topic(number, len(names))
        shown.finished(f"{name}: verifying")
        try:
            yield _Topic(directory, name, box, tell, shown).verified()
        finally:
            shown.end()


class _Topic:
    def __init__(
        self,
        directory: Path | ObjectPath,
        topic: str,
        box: Mapping[str, str] | None,
        tell: Callable[[str], None],
        progress: OffloadProgress,
    ) -> None:
        self._tell = tell
        self._progress = progress
        self._topic = topic
        self._folder: Path | ObjectPath = folder_of(directory, topic)
        self._box = box
        self._problems: list[str] = []
        self._compared = 0

    def verified(self) -> Verified:
        """Verify the topic."""
        try:
            manifest = OffloadManifest(self._folder)
        except OffloadError as error:
            return Verified(self._topic, 0, 0, 0, 0, 0, (str(error),))
        found = [each for history in manifest.histories.values() for each in history.ledgers]
        self._problems += [
            f"{each.topic}: ledger {each.ledger} has {each.rows} rows, but no file"
            for each in found
            if each.rows and not each.file
        ]
        files = [each for history in manifest.histories.values() for each in history.files]
        self._progress.begin("verifying files", self._topic, sum(each.bytes for each in files))
        for history in manifest.histories.values():
            self._problems += chain(history)
            for each in history.files:
                self._file(each)
                self._progress.add(each.bytes, sum(ledger.rows for ledger in each.ledgers))
        if self._box is not None:
            for history in manifest.histories.values():
                self._against_box(manifest, history, self._box)
        return Verified(
            self._topic,
            len(found),
            sum(each.rows for each in found),
            sum(each.bytes for each in files),
            self._compared,
            sum(len(history.gaps) for history in manifest.histories.values()),
            tuple(self._problems),
        )

    def _file(self, known: OffloadedFile) -> None:
        stored = self._folder / known.file
        try:
            with local_copy(stored) as path:
                _check(path, known)
        except FileNotFoundError:
            self._problems.append(f"{stored} is missing. {RESTORE}")
        except (OffloadError, OSError) as error:
            self._problems.append(f"{error}. {RESTORE}")

    def _against_box(self, manifest: OffloadManifest, history: OffloadedTopic, box: Mapping[str, str]) -> None:
        to = in_place(reach(parse({**box, "topic": history.topic}, READ)))
        with Service(to) as service:
            if not exists(service, history.topic):
                self._tell(f"{history.topic} does not exist in the box: nothing to compare with")
                return
            told = service.ledgers(history.topic, ReadPosition(-1, -1))
        if told is None or told[0]["instance"] != history.instance:
            self._problems.append(f"{history.topic}: the box is not the one that the topic was offloaded from")
            return
        there = {each.segment.ledger: each for each in stretches(history.topic, history.instance, told[1])}
        known = {each.ledger for each in history.ledgers}
        size = sum(each.segment.bytes for each in there.values() if each.segment.ledger in known and each.is_whole)
        self._progress.begin("comparing with the box", history.topic, size)
        for ledger in history.ledgers:
            stretch = there.get(ledger.ledger)
            if stretch is None or not stretch.is_whole:
                continue
            columns = manifest.schemas[ledger.schema]
            found = self._read_again(ledger, stretch, columns, Registry(to), to)
            if found:
                self._problems.append(found)
            else:
                self._compared += 1

    def _read_again(
        self, ledger: OffloadedLedger, stretch: ReadableLedger, columns: dict[str, Any], registry: Registry, to: Any
    ) -> str:
        """Return the difference from the box's entries; empty if none."""
        raw = StructType.fromJson(columns)
        names = raw_names(raw)
        kept = StructType([field for field in raw.fields if field.name in names])
        content = ColumnChecksums()
        tables = tables_for(json.dumps(kept.jsonValue()), registry)
        schema = with_more(tables.arrow, json.dumps(kept.jsonValue()))
        progress = LedgerProgress(self._progress, stretch.segment)
        try:
            for some in messages(stretch.segment, wanted(tables), to):
                batch = batch_of(some, tables, schema)
                content.feed(pa.Table.from_batches([batch]))
                progress.add(batch.num_rows)
            progress.end()
        except PulsarBoxError as error:
            return f"{ledger.topic}: ledger {ledger.ledger} cannot be compared with the box: {error}"
        finally:
            tables.close()
        made = content.checksums()
        if content.rows != ledger.rows:
            return f"{ledger.topic}: ledger {ledger.ledger} has {ledger.rows} rows, but {content.rows} in the box"
        wrong = sorted(name for name in made if made[name] != ledger.content.get(name))
        if wrong:
            return f"{ledger.topic}: ledger {ledger.ledger} differs from the box: column {', '.join(wrong)}"
        return ""


def _check(path: Path, known: OffloadedFile) -> None:
    if path.stat().st_size != known.bytes:
        raise OffloadError(f"{path} has {path.stat().st_size} bytes, expected {known.bytes}")
    if checksum_of(path) != known.checksum:
        raise OffloadError(f"{path}: its bytes do not match its checksum")
    check_ledgers(path, known.ledgers)


def chain(history: OffloadedTopic) -> list[str]:
    """Return a problem for each ledger of a topic or partition that does not follow its predecessor."""
    problems = []
    mark = history.begin
    gaps = {gap.start: gap for gap in history.gaps}
    for each in history.ledgers:
        while mark.place in gaps and gaps[mark.place].end.place != mark.place:
            mark = gaps[mark.place].end
        if each.before != mark.seen or each.ledger < mark.place.ledger:
            problems.append(
                f"{history.topic}: ledger {each.ledger} does not continue at {text(mark.place)}: "
                f"{each.before - mark.seen} messages are missing in between"
            )
        mark = each.end
    return problems


def choice(topics: tuple[str, ...], pattern: str) -> Callable[[str], bool]:
    """Return a predicate for topics: named, or matching the pattern; all if neither. Raises PatternError."""
    if pattern:
        from pulsarbox.spark.source.topic_selection import matcher

        return matcher(pattern)[1]
    names = {str(parse_topic(each).base) for each in topics}
    return lambda topic: not names or topic in names

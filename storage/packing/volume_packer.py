"""One packing step: the live entries of some volumes move into a new one, compressed as configured.

The new volume is complete and durable before the tables list it, and the old ones are removed afterwards. A step is
bounded: of large volumes it moves only the beginning, and the tables record that the rest remains.
"""

import heapq
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import groupby
from typing import Final

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.compression.decoder import Codecs, Dictionary, RestUnpacker
from pulsarbox.storage.compression.encoder import SAMPLE_BYTES_MAX, SAMPLES_MIN, EntryEncoder, NewDictionaries
from pulsarbox.storage.engine import Choose, Compressing, CompressionChoice
from pulsarbox.storage.entry_index import VolumeRun
from pulsarbox.storage.format import ENTRY_HEADER, PLAIN
from pulsarbox.storage.lmdb.codec_tables import MetaCodecs
from pulsarbox.storage.lmdb.environment import disk_bytes, make_environment, publish_environment
from pulsarbox.storage.lmdb.meta_environment import PackedMove, VolumeContent
from pulsarbox.storage.lmdb.volume import Volume
from pulsarbox.storage.lmdb.volume_set import VolumeSet
from pulsarbox.storage.packing import step_size as limits
from pulsarbox.storage.packing.listing import list_packed
from pulsarbox.storage.packing.live_records import LiveRecord, live_entries, put_together, wall_of

_SLICE: Final = 16 << 20
_SLICE_COMPRESSED: Final = 4 << 20
"""Bytes copied, or compressed, between two syncs."""
_LEARNERS_MAX: Final = 64
_SAMPLED_MAX: Final = 16 << 20
"""Bytes of batches read for samples."""
_STRIDE: Final = 61

Part = list[tuple[int, int, list[LiveRecord]]]
"""Batches: position, commit time, and live entries."""


class DamagedSource(PersistenceError):
    """A source is damaged, or does not match the tables: ``volume``, 0 for any of them."""

    def __init__(self, volume: int, reason: str) -> None:
        super().__init__(reason)
        self.volume = volume


class _Span:
    """A stretch being moved."""

    __slots__ = ("entries", "found", "stands", "stretch")

    def __init__(self, stretch: VolumeRun) -> None:
        self.stretch = stretch
        self.entries = self.found = self.stands = 0
        """Number of entries moved, the original bytes of their records, and the new bytes."""


class Packer:
    """The packer, used by the housekeeper's thread only."""

    def __init__(
        self, volumes: VolumeSet, codecs: Codecs, bytes_per_second: int, learn_from: int, closing: threading.Event
    ) -> None:
        """``bytes_per_second`` of 0 means no limit. ``closing`` interrupts the step in progress."""
        self.learn_from = learn_from
        """LEARN_FROM; smaller in tests."""
        self._volumes = volumes
        self._codecs = codecs
        self._rate = bytes_per_second
        self._closing = closing
        self._stored = MetaCodecs(volumes)
        self._unpacker = RestUnpacker(codecs, self._stored)
        self.moved = 0
        """Live bytes of the last volume created."""

    def pack(
        self,
        sources: list[int],
        number: int,
        contents: dict[int, VolumeContent],
        choose: Choose,
        compressing: Compressing | None,
    ) -> list[int]:
        """Move the live entries of ``sources`` to the new volume ``number``; return the sources to remove.

        With ``compressing``, within its share of a core. Raises DamagedSource, and other errors if nothing has changed.
        """
        volumes = self._volumes
        path = volumes.directory.volume(number)
        new = make_environment(path, Volume.TABLES)
        try:
            with ExitStack() as stack:
                opened = {source: stack.enter_context(volumes.pool.using(source)) for source in sources}
                work = _Work(self, opened, self._stretches(opened), choose, _Pace(self._closing, compressing))
                target = Volume(new, volumes.sizes.map + 4 * work.live, volumes.sizes.flush_at)
                stack.callback(target.close)
                work.learn()
                work.copy(target, self._hold_back)
                target.flush_index()
                self.moved = sum(span.stands for span in work.spans)
                target.note_written(self.moved)
                positions = target.first_position, target.last_position
            volumes.step("packed copied")
            move = work.move(number, contents, positions, disk_bytes(new))
            publish_environment(new, path)
        except (lmdb.Error, OSError, PersistenceError):
            shutil.rmtree(new, ignore_errors=True)
            raise
        volumes.step("packed renamed")
        list_packed(volumes, number, lambda meta: meta.remap(move))
        volumes.step("remapped")
        return [source for source, content in move.sources.items() if content is None]

    def press(self, choose: Choose, pace: Callable[[], None]) -> EntryEncoder:
        """Return the encoder of the entries of one step."""
        with self._volumes.metas.using(0) as meta:
            known = meta.dictionaries()
            last = meta.last_dictionary()
        newest = {(one.topic_id, one.tag): one.number for one in known}

        def newest_of(topic_id: int, tag: bytes) -> Dictionary | None:
            found = newest.get((topic_id, tag))
            return None if found is None else self._stored.dictionary(found)

        return EntryEncoder(self._codecs, choose, NewDictionaries(newest_of, last), self._unpacker, pace)

    def name_of(self, tag: bytes) -> str:
        """Return the name of a tag's codec."""
        return self._stored.name_of(tag)

    def _stretches(self, opened: dict[int, Volume]) -> list[VolumeRun]:
        ledgers: set[int] = set()
        for volume in opened.values():
            ledgers.update(volume.ledger_ids())
        with self._volumes.metas.using(0) as meta:
            return meta.stretches_of(sorted(ledgers), frozenset(opened))

    def _hold_back(self, size: int, seconds: float) -> None:
        if self._rate and self._closing.wait(max(size / self._rate - seconds, 0)):
            raise PersistenceError("the store is closed")


class _Pace:
    """CPU throttle: sleeps to stay within a share of a core, unless other work waits for this step."""

    def __init__(self, closing: threading.Event, compressing: Compressing | None) -> None:
        self._closing = closing
        self.percent = 0 if compressing is None else compressing.cpu_percent
        self._hurried = None if compressing is None else compressing.hurried
        self._began = time.monotonic(), time.thread_time()

    @property
    def hurried(self) -> bool:
        """Whether other work waits for this step to end."""
        return self._hurried is not None and self._hurried()

    def __call__(self) -> None:
        """Sleep if due. Raises PersistenceError if the store is closed meanwhile."""
        wait = 0.0
        if self.percent and not self.hurried:
            used = (time.thread_time() - self._began[1]) * 100 / self.percent
            wait = used - (time.monotonic() - self._began[0])
        if self._closing.wait(wait) if wait > 0 else self._closing.is_set():
            raise PersistenceError("the store is closed")


class _Work:
    """The state of one step: what is moved, and its results."""

    def __init__(
        self, packer: Packer, opened: dict[int, Volume], stretches: list[VolumeRun], choose: Choose, pace: _Pace
    ) -> None:
        self._packer = packer
        self._opened = opened
        self._pace = pace
        self._press = packer.press(choose, pace)
        self._paced = pace.percent > 0
        self.spans = [_Span(one) for one in stretches]
        self._by_source: dict[int, dict[int, list[_Span]]] = {source: {} for source in opened}
        for span in self.spans:
            self._by_source[span.stretch.volume].setdefault(span.stretch.ledger_id, []).append(span)
        self.live = sum(one.bytes for one in stretches)
        # Not much more than one step is moved at once. The size is derived from totals, which may be wrong.
        self._limit = limits.STEP_BYTES if self.live > limits.STEP_BYTES * 3 // 2 else limits.STEP_BYTES * 4

    # Dictionary training

    def learn(self) -> None:
        """Sample the topics with the most bytes, to choose the best compression of each."""
        expected: dict[CompressionChoice, int] = {}
        for span in self.spans:
            choice = self._press.choice(span.stretch.ledger_id)
            if choice is not None:
                expected[choice] = expected.get(choice, 0) + span.stretch.bytes
        largest = sorted(expected, key=lambda choice: (-expected[choice], choice))[:_LEARNERS_MAX]
        samples: dict[CompressionChoice, list[bytes]] = {
            one: [] for one in largest if expected[one] >= self._packer.learn_from
        }
        if samples:
            self._gather(samples)
        for choice, found in samples.items():
            self._press.train(choice, found, expected[choice])
            self._pace()

    def _gather(self, samples: dict[CompressionChoice, list[bytes]]) -> None:
        """Collect sample bodies from all parts of the sources, some hundred KiB per topic."""
        sizes = dict.fromkeys(samples, 0)
        looked_at = 0
        positions = [at for source in self._opened for at in self._positions(source)]
        for start in range(_STRIDE):
            for position, source in positions[start::_STRIDE]:
                if looked_at >= _SAMPLED_MAX or all(size >= SAMPLE_BYTES_MAX for size in sizes.values()):
                    return
                value = self._value(position, source)
                looked_at += len(value)
                for live in self._take_apart(value, source):
                    choice = self._press.choice(live.ledger_id)
                    if choice is None or sizes.get(choice, SAMPLE_BYTES_MAX) >= SAMPLE_BYTES_MAX:
                        continue
                    body = self._press.sample(live)
                    if body and (len(body) < SAMPLE_BYTES_MAX // SAMPLES_MIN or not samples[choice]):
                        samples[choice].append(body)
                        sizes[choice] += len(body)
                self._pace()

    # Copying

    def copy(self, target: Volume, hold_back: Callable[[int, float], None]) -> None:
        """Copy the live entries into ``target``, oldest first, up to the limit of a step. Raises DamagedSource."""
        part: Part = []
        size = whole = 0
        slice_bytes = _SLICE_COMPRESSED if self._paced else _SLICE
        began = time.monotonic()
        for position, sources in groupby(heapq.merge(*[self._positions(source) for source in self._opened]), _first_of):
            entries, wall = self._entries_at(position, [source for _, source in sources])
            if not entries:
                continue
            part.append((position, wall, entries))
            found = sum([live.size for live in entries])
            size += found
            whole += found
            if size >= slice_bytes or whole >= self._limit:
                self._write(target, part)
                hold_back(size, time.monotonic() - began)
                part, size, began = [], 0, time.monotonic()
            if whole >= self._limit or (not part and self._pace.hurried):
                return
        if part:
            self._write(target, part)
        if any(span.entries != span.stretch.entries for span in self.spans):
            raise DamagedSource(0, f"{target.path}: the live entries of its sources differ from the tables")

    def _entries_at(self, position: int, sources: list[int]) -> tuple[list[LiveRecord], int]:
        """Return the live entries of a batch, and its commit time; copies of its entries may be in several sources."""
        entries: list[LiveRecord] = []
        wall = 0
        for source in sources:
            value = self._value(position, source)
            entries += self._take_apart(value, source)
            wall = max(wall, wall_of(value))
        if len(sources) > 1:
            entries.sort(key=_place_of)
        return entries, wall

    def _write(self, target: Volume, part: Part) -> None:
        self._press.press(live for _, _, entries in part for live in entries)
        for _, _, entries in part:
            for live in entries:
                span: _Span = live.of
                span.entries += 1
                span.found += live.size
                span.stands += len(live.header) + len(live.body)
        target.append_packed([(position, *put_together(entries, wall)) for position, wall, entries in part])
        if self._paced:
            self._pace()

    def _positions(self, source: int) -> Iterator[tuple[int, int]]:
        """Yield the batches of a source from the first one with a live entry on."""
        volume = self._opened[source]
        firsts = [span.stretch for spans in self._by_source[source].values() for span in spans]
        first = min([volume.position_of(one.ledger_id, one.first) for one in firsts], default=0)
        for position in volume.positions(first):
            yield position, source

    def _value(self, position: int, source: int) -> bytes:
        try:
            return self._opened[source].value(position)
        except PersistenceError as error:
            raise DamagedSource(source, str(error)) from error

    def _take_apart(self, value: bytes, source: int) -> list[LiveRecord]:
        """Return the live entries of a batch, each tagged with its span."""
        spans = self._by_source[source]

        def alive(ledger_id: int, entry_id: int) -> _Span | None:
            for span in spans.get(ledger_id, ()):
                if span.stretch.first <= entry_id < span.stretch.end:
                    return span
            return None

        try:
            return live_entries(value, alive)
        except PersistenceError as error:
            raise DamagedSource(source, str(error)) from error

    # Table updates

    def move(
        self, number: int, contents: dict[int, VolumeContent], positions: tuple[int, int], size: int
    ) -> PackedMove:
        """Return what has moved, and what remains."""
        new: list[VolumeRun] = []
        rest: list[VolumeRun] = []
        for span in self.spans:
            one = span.stretch
            if span.entries:
                new.append(one._replace(entries=span.entries, bytes=span.stands))
            left = one.entries - span.entries
            if left:
                # A log volume's bytes per ledger are derived from totals, which may be wrong.
                bytes_left = max(one.bytes - span.found, left * ENTRY_HEADER.size)
                rest.append(one._replace(first=one.first + span.entries, entries=left, bytes=bytes_left))
        sources: dict[int, VolumeContent | None] = dict.fromkeys(self._opened)
        for one in rest:
            known = sources[one.volume] or contents[one.volume]._replace(entries=0, bytes=0)
            sources[one.volume] = known._replace(entries=known.entries + one.entries, bytes=known.bytes + one.bytes)
        press = self._press
        content = VolumeContent(*positions, size, sum(one.entries for one in new), sum(one.bytes for one in new))
        needs = {(tag, dictionary) for _, tag, dictionary in press.usage if tag != PLAIN}
        names = {need: press.names.get(need[0]) or self._packer.name_of(need[0]) for need in needs}
        used = {dictionary for _, dictionary in needs}
        changed = [one for one in press.dictionaries.changed.values() if one.number in used]
        last = press.dictionaries.last_number
        return PackedMove(
            number,
            content,
            [span.stretch for span in self.spans],
            new,
            rest,
            sources,
            press.usage,
            names,
            changed,
            last,
        )


def _first_of(batch: tuple[int, int]) -> int:
    return batch[0]


def _place_of(live: LiveRecord) -> tuple[int, int]:
    return live.ledger_id, live.entry_id

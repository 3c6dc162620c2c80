"""Giving disk back: volumes are sealed, removed when nothing in them is alive, packed when little is.

Every step is durable before the next, in an order that leaves something to remove after a crash, never something to
repair: a volume is removed after no table speaks of it, a packed one is spoken of after it is whole.
"""

import heapq
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Checkpoint, Reclaimed
from pulsarbox.storage.format import PACKED
from pulsarbox.storage.index import Stretch
from pulsarbox.storage.journal import Run
from pulsarbox.storage.meta import Content
from pulsarbox.storage.packing import pack_batch
from pulsarbox.storage.volume import Volume, disk_bytes, is_damage, make_environment, publish_environment
from pulsarbox.storage.volume_set import VolumeSet

_REMOVED_AT_ONCE = 16
_SOURCES_MAX = 32
_SMALL_SHARE = 8
"""A volume of less than this part of a full one is small; so many of them are worth to be merged."""
_ROLL_BYTES = 16 << 20
_SLICE = 16 << 20


class Policy(NamedTuple):
    """What is packed, and how fast."""

    live_percent: int
    """Volumes of whose file less than this is alive."""
    bytes_per_second: int
    """0: as fast as it goes."""


class Reclaimer:
    """The housekeeper's part of the engine; only one thread may call it."""

    def __init__(self, volumes: VolumeSet, policy: Policy) -> None:
        self._volumes = volumes
        self._policy = policy
        self._closing = threading.Event()
        self._mark = 0
        self._dropped: list[tuple[int, tuple[int, ...]]] = []
        """Dropped ledgers, and the newest volume that may hold entries of them."""
        self._looked_at = 0
        self._drops = 0
        self._next_packed = PACKED + 1
        self._leftovers: list[int] = []
        """Volumes that no table speaks of, and that could not be removed so far."""
        self._bad: set[int] = set()
        """Volumes that are damaged: they stay as they are."""
        self._written: dict[int, int | None] = {}

    def begin(self, mark: int, dropped: list[int], contents: Iterable[int]) -> None:
        """Take over what recovery found; the live volumes are known."""
        self._mark = mark
        self._next_packed = max([PACKED, *contents]) + 1
        if dropped:
            self._note_dropped(tuple(dropped))

    def note(self, checkpoint: Checkpoint) -> None:
        """A checkpoint was written."""
        self._mark = checkpoint.position
        if checkpoint.dropped:
            self._note_dropped(checkpoint.dropped)

    def stop(self) -> None:
        """Let a step that waits end."""
        self._closing.set()

    def reclaim(self) -> Reclaimed | None:
        """See Engine. Raises PersistenceError, lmdb.Error, OSError."""
        while self._leftovers:
            self._volumes.directory.remove(self._leftovers[-1])
            self._leftovers.pop()
        live = self._volumes.live
        if len(live) > 1 and live[-1] not in self._bad:
            try:
                return self._seal(live[-1])
            except (lmdb.Error, OSError, PersistenceError):
                # On a full disk nothing can be written before something is removed.
                done = self._remove_dead(self._contents())
                if done is None:
                    raise
                return done
        contents = self._contents()
        done = self._remove_dead(contents)
        if done is None:
            sources = self._to_pack(contents)
            done = self._pack(sources, contents) if sources else None
        if done is None:
            self._ask_for_a_roll()
        return done

    def _contents(self) -> dict[int, Content]:
        with self._volumes.metas.using(0) as meta:
            return meta.contents()

    def _note_dropped(self, ledgers: tuple[int, ...]) -> None:
        # Entries of a ledger that is no more were committed before this call: in the newest volume at most.
        self._dropped.append((self._volumes.current, ledgers))
        self._drops += 1

    def _seal(self, number: int) -> Reclaimed:
        volumes = self._volumes
        path = volumes.directory.volume(number)
        before = disk_bytes(path)
        with volumes.metas.using(0) as meta:
            sealed = meta.marks()[1]
        if sealed < number:  # not so where the one before has failed after its last step
            try:
                with volumes.pool.using(number) as volume:
                    volume.flush_index()
                    volumes.step("index flushed")
                    stretches = volume.stretches(number)
                    written = sum(one.bytes for one in stretches)
                    volume.note_written(written)
                    positions = volume.first_position, volume.last_position
            except (lmdb.Error, OSError, PersistenceError) as error:
                if is_damage(error):
                    self._bad.add(number)
                raise
            content = Content(*positions, disk_bytes(path), 0, 0)
            forget = [ledger_id for newest, ledgers in self._dropped if newest <= number for ledger_id in ledgers]
            with volumes.metas.using(0) as meta:
                meta.seal(number, content, stretches, forget)
            self._written[number] = written
        self._dropped = [one for one in self._dropped if one[0] > number]
        volumes.sealed(number)
        volumes.step("listed")
        return Reclaimed("sealed", (volumes.directory.name(number),), before, disk_bytes(path))

    def _remove_dead(self, contents: dict[int, Content]) -> Reclaimed | None:
        volumes = self._volumes
        dead = [
            number
            for number, content in sorted(contents.items())
            if not content.entries and content.last_position <= self._mark
        ][:_REMOVED_AT_ONCE]
        if not dead:
            return None
        before = self._disk_bytes(dead)
        with volumes.metas.using(0) as meta:
            meta.forget_volumes(dead)
        volumes.step("forgotten")
        self._remove(dead, "removed")
        return Reclaimed("removed", tuple(map(volumes.directory.name, dead)), before, 0)

    def _remove(self, numbers: list[int], step: str) -> None:
        self._leftovers += numbers
        for number in numbers:
            self._written.pop(number, None)
            self._volumes.pool.retire(number)
            self._volumes.directory.remove(number)
            self._leftovers.remove(number)
            self._volumes.step(step)

    def _disk_bytes(self, numbers: Iterable[int]) -> int:
        return sum(disk_bytes(self._volumes.directory.volume(number)) for number in numbers)

    def _to_pack(self, contents: dict[int, Content]) -> list[int]:
        """The volumes that become one, oldest first."""
        volume_size = self._volumes.sizes.volume
        share = self._policy.live_percent
        able = [
            number
            for number, content in sorted(contents.items(), key=lambda one: one[1].first_position)
            if content.entries and content.last_position <= self._mark and number not in self._bad
        ]
        chosen = {number for number in able if contents[number].bytes * 100 < share * contents[number].size}
        chosen = {number for number in chosen if self._has_dead(number, contents[number].bytes)}
        small = {number for number in able if contents[number].size < volume_size // _SMALL_SHARE}
        if len(small) >= _SMALL_SHARE:
            chosen |= small
        sources: list[int] = []
        live = 0
        for number in able:
            if number in chosen and live < volume_size and len(sources) < _SOURCES_MAX:
                sources.append(number)
                live += contents[number].bytes
        return sources

    def _has_dead(self, number: int, live: int) -> bool:
        """Whether a quarter of what was written is dead: pages that are not full are no reason to write again."""
        if number not in self._written:
            try:
                with self._volumes.pool.using(number) as volume:
                    self._written[number] = volume.written()
            except (lmdb.Error, OSError, PersistenceError) as error:
                if not is_damage(error):
                    raise
                self._bad.add(number)
                return False
        written = self._written[number]
        return written is None or live * 4 <= written * 3

    def _pack(self, sources: list[int], contents: dict[int, Content]) -> Reclaimed:
        volumes = self._volumes
        number = self._next_packed
        self._next_packed += 1
        path = volumes.directory.volume(number)
        before = self._disk_bytes(sources)
        new = make_environment(path, Volume.TABLES)
        try:
            with ExitStack() as stack:
                opened = {source: stack.enter_context(volumes.pool.using(source)) for source in sources}
                stretches = self._stretches(opened)
                live = sum(one.bytes for one in stretches)
                target = Volume(new, volumes.sizes.map + 4 * live, volumes.sizes.flush_at)
                stack.callback(target.close)
                self._copy(opened, stretches, target)
                target.flush_index()
                target.note_written(live)
                positions = target.first_position, target.last_position
            volumes.step("packed copied")
            publish_environment(new, path)
        except (lmdb.Error, OSError, PersistenceError) as error:
            shutil.rmtree(new, ignore_errors=True)
            if is_damage(error):
                self._bad.update(sources)
            raise
        volumes.step("packed renamed")
        content = Content(*positions, disk_bytes(path), sum(one.entries for one in stretches), live)
        self._remap(stretches, sources, number, content)
        volumes.step("remapped")
        self._written[number] = live
        self._remove(sources, "source removed")
        return Reclaimed("packed", tuple(map(volumes.directory.name, sources)), before, disk_bytes(path))

    def _stretches(self, opened: dict[int, Volume]) -> list[Stretch]:
        ledgers: set[int] = set()
        for volume in opened.values():
            ledgers.update(volume.ledger_ids())
        with self._volumes.metas.using(0) as meta:
            return meta.stretches_of(sorted(ledgers), frozenset(opened))

    def _copy(self, opened: dict[int, Volume], stretches: list[Stretch], target: Volume) -> None:
        alive: dict[int, set[int]] = {source: set() for source in opened}
        for one in stretches:
            alive[one.volume].add(one.ledger_id)
        entries = size = 0
        part: list[tuple[int, bytes, dict[int, Run]]] = []
        began = time.monotonic()
        for position, source in heapq.merge(*[_positions(volume, source) for source, volume in opened.items()]):
            try:
                packed = pack_batch(opened[source].value(position), alive[source].__contains__)
            except PersistenceError:
                self._bad.add(source)
                raise
            if packed is None:
                continue
            part.append((position, *packed))
            size += len(packed[0])
            entries += sum([len(run.offsets) for run in packed[1].values()])
            if size >= _SLICE:
                target.append_packed(part)
                self._hold_back(size, time.monotonic() - began)
                part, size, began = [], 0, time.monotonic()
        if part:
            target.append_packed(part)
        if entries != sum(one.entries for one in stretches):
            self._bad.update(opened)
            raise PersistenceError(f"{target.path}: {entries} entries are alive in its sources, the tables know others")

    def _hold_back(self, size: int, seconds: float) -> None:
        rate = self._policy.bytes_per_second
        if rate and self._closing.wait(max(size / rate - seconds, 0)):
            raise PersistenceError("the store is closed")

    def _remap(self, stretches: list[Stretch], sources: list[int], number: int, content: Content) -> None:
        metas = self._volumes.metas
        try:
            with metas.using(0) as meta:
                meta.remap(stretches, sources, number, content)
        except (lmdb.Error, OSError):
            metas.drop(0)
            with metas.using(0) as meta:
                known = number in meta.contents()
            if not known:  # else it is durable, though LMDB could not know
                self._volumes.directory.remove(number)
                raise

    def _ask_for_a_roll(self) -> None:
        """Let the next batch begin a new volume where the newest holds mostly what is dead."""
        volumes = self._volumes
        if self._looked_at == self._drops:
            return
        current = volumes.current
        with volumes.pool.using(current) as volume:
            first, last = volume.first_position, volume.last_position
            size = volume.size
            if size < min(_ROLL_BYTES, volumes.sizes.volume // 4) or 2 * (self._mark - first + 1) < last - first + 1:
                return
            stretches = volume.stretches(current)
        with volumes.metas.using(0) as meta:
            dropped = set(meta.dropped())
        self._looked_at = self._drops
        live = sum(one.bytes for one in stretches if one.ledger_id not in dropped)
        written = sum(one.bytes for one in stretches)
        if live * 100 < self._policy.live_percent * size and live * 4 <= written * 3:
            volumes.roll_after = current


def _positions(volume: Volume, source: int) -> Iterator[tuple[int, int]]:
    for position in volume.positions():
        yield position, source

"""Space reclamation: volumes are sealed, removed once nothing in them is live, and packed once little is.

Every step is durable before the next. The order is such that a crash leaves volumes to remove, never anything to
repair: a volume is removed after no table refers to it, and a packed volume is listed once it is complete.
"""

import itertools
import logging
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.plugins.compression.wire import CodecMissing
from pulsarbox.storage.compression.decoder import Codecs
from pulsarbox.storage.compression.topic_usage import CompressedTopic, by_owner, topics_of
from pulsarbox.storage.engine import Checkpoint, Choose, Compressing, CompressionChoice, Reclaimed, Rows
from pulsarbox.storage.format import PACKED
from pulsarbox.storage.lmdb.environment import disk_bytes, is_damage
from pulsarbox.storage.lmdb.meta_environment import VolumeContent
from pulsarbox.storage.lmdb.volume_set import VolumeSet
from pulsarbox.storage.packing import step_size as limits
from pulsarbox.storage.packing.step_size import LEARN_FROM

if TYPE_CHECKING:
    from pulsarbox.storage.packing.volume_packer import Packer

log = logging.getLogger(__name__)

_REMOVED_AT_ONCE = 16
_SOURCES_MAX = 32
_WORTH = 10
"""A volume is packed for compression if at least one in this many of its live bytes would be compressed."""
_SMALL_SHARE = 8
"""A volume smaller than a full one by this factor is small; this many small ones are merged."""
_ROLL_BYTES = 16 << 20


class PackingPolicy(NamedTuple):
    """Thresholds and rate of packing."""

    live_percent: int
    """Pack volumes whose live share of the file is below this."""
    bytes_per_second: int
    """0 for no limit."""
    learn_from: int = LEARN_FROM


class Reclaimer:
    """The housekeeper's part of the engine; only one thread may call it."""

    def __init__(self, volumes: VolumeSet, policy: PackingPolicy, codecs: Codecs, rows: Rows) -> None:
        """``rows`` are those of the last checkpoint, used to choose what to compress."""
        self._volumes = volumes
        self._policy = policy
        self._codecs = codecs
        self._rows = rows
        self._closing = threading.Event()
        self._packer: Packer | None = None
        self.compressed: tuple[CompressedTopic, ...] = ()
        """Compression statistics per topic; replaced as a whole."""
        self._count_again = True
        self._generation = 0
        """The generation of compression choices that ``_judged`` refers to."""
        self._judged: set[int] = set()
        """Volumes that have nothing to compress."""
        self._unusable: set[str] = set()
        """Unavailable codecs; they are tried again after the next volume is sealed."""
        self._logged: set[str] = set()
        """Unavailable codecs that have been logged."""
        self._mark = 0
        self._dropped: list[tuple[int, tuple[int, ...]]] = []
        """Dropped ledgers, and the newest volume that may hold entries of them."""
        self._looked_at = 0
        self._drops = 0
        self._numbers = itertools.count(PACKED + 1)
        self._leftovers: list[int] = []
        """Unlisted volumes that could not be removed yet."""
        self._bad: set[int] = set()
        """Damaged volumes, which are left unchanged."""
        self._written: dict[int, int] = {}

    def begin(self, mark: int, dropped: list[int], contents: Iterable[int]) -> None:
        """Set the state found by recovery; the live volumes are known."""
        self._mark = mark
        self._numbers = itertools.count(max([PACKED, *contents]) + 1)
        if dropped:
            self._note_dropped(tuple(dropped))

    def note(self, checkpoint: Checkpoint) -> None:
        """Record a written checkpoint."""
        self._mark = checkpoint.position
        if checkpoint.dropped:
            self._count_again = self._count_again or bool(self.compressed)
            self._note_dropped(checkpoint.dropped)

    @property
    def packed_numbers(self) -> Iterator[int]:
        """The numbers of the next packed volumes. Thread-safe."""
        return self._numbers

    def seal_all(self) -> None:
        """Seal all volumes but the newest. Raises PersistenceError, lmdb.Error, OSError."""
        while len(self._volumes.live) > 1:
            self._seal(self._volumes.live[-1])

    def stop(self) -> None:
        """Interrupt a waiting step."""
        self._closing.set()

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """See Engine. Raises PersistenceError, lmdb.Error, OSError."""
        while self._leftovers:
            self._volumes.directory.remove(self._leftovers[-1])
            self._leftovers.pop()
        live = self._volumes.live
        if len(live) > 1 and live[-1] not in self._bad:
            try:
                sealed = self._seal(live[-1])
                self._try_codecs_again()
                return sealed
            except (lmdb.Error, OSError, PersistenceError):
                # On a full disk nothing can be written until something is removed.
                done = self._remove_dead(self._contents())
                if done is None:
                    raise
                return done
        contents = self._contents()
        done = self._remove_dead(contents)
        if done is None and (sources := self._to_pack(contents)):
            done = self._pack_and_remove("packed", sources, contents, compressing)
        if done is None and compressing is not None and (sources := self._to_compress(contents, compressing)):
            done = self._pack_and_remove("compressed", sources, contents, compressing)
        if done is None:
            self._count_compressed()
            self._ask_for_a_roll()
        elif done.what != "sealed":
            self._count_again = True
        return done

    def _contents(self) -> dict[int, VolumeContent]:
        with self._volumes.metas.using(0) as meta:
            return meta.contents()

    def _note_dropped(self, ledgers: tuple[int, ...]) -> None:
        # Entries of a dropped ledger were committed before this call: in the newest volume at most.
        self._dropped.append((self._volumes.current, ledgers))
        self._drops += 1

    def _seal(self, number: int) -> Reclaimed:
        volumes = self._volumes
        path = volumes.directory.volume(number)
        before = disk_bytes(path)
        with volumes.metas.using(0) as meta:
            sealed = meta.marks()[1]
        if sealed < number:  # not if the previous attempt failed after its last step
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
            content = VolumeContent(*positions, disk_bytes(path), 0, 0)
            forget = [ledger_id for newest, ledgers in self._dropped if newest <= number for ledger_id in ledgers]
            with volumes.metas.using(0) as meta:
                meta.seal(number, content, stretches, forget)
            self._written[number] = written
        self._dropped = [one for one in self._dropped if one[0] > number]
        volumes.sealed(number)
        volumes.step("listed")
        return Reclaimed("sealed", (volumes.directory.name(number),), before, disk_bytes(path))

    def _remove_dead(self, contents: dict[int, VolumeContent]) -> Reclaimed | None:
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
        # Only now: a reader of one of the removed volumes may have needed its dictionary.
        with self._volumes.metas.using(0) as meta:
            if meta.last_dictionary():
                meta.drop_dictionaries()

    def _disk_bytes(self, numbers: Iterable[int]) -> int:
        return sum(disk_bytes(self._volumes.directory.volume(number)) for number in numbers)

    def _able(self, contents: dict[int, VolumeContent]) -> list[int]:
        """Return the volumes that may be packed, oldest first."""
        return [
            number
            for number, content in sorted(contents.items(), key=lambda one: one[1].first_position)
            if content.entries and content.last_position <= self._mark and number not in self._bad
        ]

    def _to_pack(self, contents: dict[int, VolumeContent]) -> list[int]:
        """Return the volumes to pack into one, oldest first."""
        volume_size = self._volumes.sizes.volume
        share = self._policy.live_percent
        able = self._able(contents)
        chosen = {number for number in able if contents[number].bytes * 100 < share * contents[number].size}
        chosen = {number for number in chosen if self._has_dead(number, contents[number].bytes)}
        # A packed volume is never small, or it would be merged again and again.
        limit = min(volume_size // _SMALL_SHARE, limits.STEP_BYTES // 2)
        small = {number for number in able if contents[number].size < limit}
        if len(small) >= _SMALL_SHARE:
            chosen |= small
        sources: list[int] = []
        live = 0
        for number in able:
            if number in chosen and live < min(volume_size, limits.STEP_BYTES) and len(sources) < _SOURCES_MAX:
                sources.append(number)
                live += contents[number].bytes
        return sources

    def _has_dead(self, number: int, live: int) -> bool:
        """Return whether a quarter of the written records is dead: partly filled pages do not justify packing."""
        if number not in self._written:
            try:
                with self._volumes.pool.using(number) as volume:
                    self._written[number] = volume.written()
            except (lmdb.Error, OSError, PersistenceError) as error:
                if not is_damage(error):
                    raise
                self._bad.add(number)
                return False
        return live * 4 <= self._written[number] * 3

    def _pack(
        self, sources: list[int], contents: dict[int, VolumeContent], compressing: Compressing | None
    ) -> list[int]:
        # Imported by the housekeeper's thread when it first packs, so that neither startup nor the loop waits.
        from pulsarbox.storage.packing.volume_packer import DamagedSource, Packer

        policy = self._policy
        if self._packer is None:
            self._packer = Packer(
                self._volumes, self._codecs, policy.bytes_per_second, policy.learn_from, self._closing
            )
        number = next(self._numbers)
        try:
            emptied = self._packer.pack(sources, number, contents, self._choices(compressing), compressing)
        except DamagedSource as error:
            self._bad.update([error.volume] if error.volume else sources)
            raise
        except (lmdb.Error, OSError, PersistenceError) as error:
            if is_damage(error):
                self._bad.update(sources)
            raise
        self._written[number] = self._packer.moved
        return [number, *emptied]

    def _pack_and_remove(
        self, what: str, sources: list[int], contents: dict[int, VolumeContent], compressing: Compressing | None
    ) -> Reclaimed:
        volumes = self._volumes
        before = self._disk_bytes(sources)
        number, *emptied = self._pack(sources, contents, compressing)
        self._remove(emptied, "source removed")
        after = self._disk_bytes([number, *set(sources).difference(emptied)])
        return Reclaimed(what, tuple(map(volumes.directory.name, sources)), before, after)

    def _count_compressed(self) -> None:
        if not self._count_again:
            return
        with self._volumes.metas.using(0) as meta:
            names = {tag: name for (tag, _), name in meta.needs().items()}
            given = [(ledger, tag, number, usage) for (_, ledger, tag, number), usage in meta.usage().items()]
            sizes = meta.dictionary_sizes()
        self.compressed = topics_of(given, by_owner(self._rows.get), names, sizes)
        self._count_again = False

    # Compression

    def _choices(self, compressing: Compressing | None) -> Choose:
        """Return the function that chooses the compression of a ledger."""
        return _nothing if compressing is None else compressing.chooser(self._rows)

    def _to_compress(self, contents: dict[int, VolumeContent], compressing: Compressing) -> list[int]:
        """Return the volumes to pack only for compression, oldest first: once for each codec chosen."""
        if self._generation != compressing.generation:
            self._generation = compressing.generation
            self._judged.clear()
            self._unusable.clear()
            self._logged.clear()
        choose = self._choices(compressing)
        sources: list[int] = []
        live = 0
        for number in self._able(contents):
            if live >= limits.STEP_BYTES or len(sources) >= _SOURCES_MAX:
                break
            if number in self._judged:
                continue
            if self._is_worth_compressing(number, choose):
                sources.append(number)
                live += contents[number].bytes
            else:
                self._judged.add(number)
        return sources

    def _is_worth_compressing(self, number: int, choose: Choose) -> bool:
        """Return whether a tenth of a volume's live bytes has never been tried with the codec chosen for it."""
        try:
            with self._volumes.pool.using(number) as volume:
                ledgers = volume.ledger_ids()
        except (lmdb.Error, OSError, PersistenceError) as error:
            if not is_damage(error):
                raise
            self._bad.add(number)
            return False
        with self._volumes.metas.using(0) as meta:
            stretches = meta.stretches_of(ledgers, frozenset((number,)))
            tried = {(ledger_id, usage.tried) for (_, ledger_id, _, _), usage in meta.usage(number).items()}
        untried = whole = 0
        for one in stretches:
            whole += one.bytes
            tag = self._tag_of(choose(one.ledger_id))
            if tag is not None and (one.ledger_id, tag) not in tried:
                untried += one.bytes
        return untried * _WORTH >= whole > 0

    def _tag_of(self, choice: CompressionChoice | None) -> bytes | None:
        """Return the tag of a codec; None if it is not available."""
        if choice is None or choice.codec in self._unusable:
            return None
        try:
            return self._codecs.named(choice.codec).rest_tag
        except CodecMissing as error:
            if choice.codec not in self._logged:
                log.warning("entries at rest are not compressed, the codec is unavailable: %s", error)
            self._unusable.add(choice.codec)
            self._logged.add(choice.codec)
            return None

    def _try_codecs_again(self) -> None:
        """Consider codecs that were unavailable: on a busy machine, a plugin may exceed the time for its loading."""
        if self._unusable:
            self._unusable.clear()
            self._judged.clear()

    def _ask_for_a_roll(self) -> None:
        """Make the next batch start a new volume if the newest holds mostly dead records."""
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


def _nothing(_: int) -> CompressionChoice | None:
    return None

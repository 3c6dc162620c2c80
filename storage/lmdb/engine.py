"""The durable engine: a data directory with the meta environment and the volumes of the journal.

Location of a ledger's entries::

    live volumes          the newest, then those that are closed but not sealed: searched directly, first their
                          unindexed runs in memory, then their index
    all other volumes     the ``volumes`` table of the meta environment names the volume, then its index is searched

A full volume is closed by creating the next one; a commit waits for nothing else. The housekeeper seals it later: it
flushes the index, then lists the ledgers in ``volumes``, each step durable before the next. After a crash, a completed
step is repeated with the same effect, so nothing needs repair. The live entries of old volumes are packed into new
ones, and the old ones are removed: see ``packing``.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import lmdb

from pulsarbox.errors import EntryDamaged, PersistenceError, StoreFull
from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.storage.compression.decoder import RestUnpacker
from pulsarbox.storage.compression.decompressed_cache import KEPT_BYTES, DecompressedCache, UnpackedUse
from pulsarbox.storage.engine import Checkpoint, Compressing, LedgerVolumes, ReadRequest, Reclaimed, Recovery
from pulsarbox.storage.entry_index import VolumeRun
from pulsarbox.storage.entry_read import Answer
from pulsarbox.storage.format import ENSEMBLE, PACKED, RESERVE
from pulsarbox.storage.journal import Batch, JournalRun
from pulsarbox.storage.lmdb.codec_tables import MetaCodecs
from pulsarbox.storage.lmdb.directory import RESTORE_BACKUP, DataDirectory
from pulsarbox.storage.lmdb.environment import create_environment, failure, is_damage
from pulsarbox.storage.lmdb.environment_pool import EnvironmentGone
from pulsarbox.storage.lmdb.erasure import erase_from
from pulsarbox.storage.lmdb.meta_environment import MetaRows, VolumeContent
from pulsarbox.storage.lmdb.needed_codecs import require_codecs
from pulsarbox.storage.lmdb.page_cache import PageCacheWindow
from pulsarbox.storage.lmdb.reserved_space import Reserve
from pulsarbox.storage.lmdb.volume import INDEX_ROOM, FlushAt, Volume
from pulsarbox.storage.lmdb.volume_set import Sizes, Step, VolumeSet
from pulsarbox.storage.packing.garbage_collector import PackingPolicy, Reclaimer
from pulsarbox.storage.packing.step_size import LEARN_FROM
from pulsarbox.storage.record import Entry

STEPS = (
    "next volume made",
    "checkpoint written",
    "index flushed",
    "listed",
    "forgotten",
    "removed",
    "packed copied",
    "packed renamed",
    "remapped",
    "source removed",
)
"""Arguments of ``step``: after each of these, a crash leaves a distinct state."""

MEMBER_STEPS = ("cut off", "copies written", "copies renamed", "copies listed", "rows written", "rows replaced", "cut")
"""More of them, of a directory that is a member of an ensemble."""

_Result = TypeVar("_Result")

ROOM_MIN = 4 << 20
"""Free bytes required before messages are accepted again."""


def _no_step(_: str) -> None:
    pass


class LmdbEngine:
    """An Engine on a data directory. Sizes are in bytes."""

    def __init__(  # noqa: PLR0913  # all but the first are keyword-only
        self,
        path: str | Path,
        *,
        volume_size: int = 1 << 30,
        map_size: int | None = None,
        index_flush_entries: int = 20_000,
        index_flush_bytes: int = 64 << 20,
        open_volumes_max: int = 4,
        page_cache_bytes: int = 0,
        pack_live_percent: int = 50,
        pack_bytes_per_second: int = 0,
        reserve_bytes: int = 0,
        codecs: RestCodecs | None = None,
        learn_from_bytes: int = LEARN_FROM,
        unpacked_bytes: int = KEPT_BYTES,
        gaps: bool = False,
        step: Step = _no_step,
    ) -> None:
        """A new volume starts when the newest exceeds ``volume_size``; its map has ``map_size``.

        An index flush starts when this many entries, or bytes of the log, are only in memory; recovery after a crash
        rereads up to twice as much of the log. At most ``open_volumes_max`` volumes are mapped at once.
        ``page_cache_bytes`` of the journal stay in the page cache, 0 for no limit. A volume is packed once less than
        ``pack_live_percent`` of its file is live, at ``pack_bytes_per_second``, 0 for no limit. ``reserve_bytes`` of
        the disk are kept free of messages.

        ``codecs`` are those that may compress entries; the built-in ones by default. A topic with ``learn_from_bytes``
        in one packing step may get a dictionary. ``unpacked_bytes`` is the size of the cache of decompressed entries.
        With ``gaps``, this is one of several directories of a box: positions may be missing between volumes.
        ``step`` is called with a name from STEPS after each durable step.
        """
        self._path = Path(path)
        # An index of one-entry rows can outgrow its log, hence three times the volume; 16 MiB is the largest batch.
        map_size = 3 * volume_size + (32 << 20) + 2 * INDEX_ROOM if map_size is None else map_size
        self._sizes = Sizes(volume_size, map_size, FlushAt(index_flush_entries, index_flush_bytes))
        self._open_max = open_volumes_max
        self._policy = PackingPolicy(pack_live_percent, pack_bytes_per_second, learn_from_bytes)
        self._gaps = gaps
        self._step = step
        self.codecs = RestCodecs() if codecs is None else codecs
        self._page_cache = PageCacheWindow(page_cache_bytes)
        self._reserve = Reserve(self._path / RESERVE, reserve_bytes)
        self._unpacked = DecompressedCache(unpacked_bytes)
        self._next_position = 0
        self._volumes: VolumeSet  # these two are set by ``recover``
        self._reclaimer: Reclaimer

    @property
    def instance(self) -> str:
        """The id of the data directory; available after ``recover``."""
        return self._volumes.directory.instance

    @property
    def next_position(self) -> int:
        """The position of the next batch, or with gaps, the first that it may have."""
        return self._next_position

    @property
    def volumes(self) -> VolumeSet:
        """The volumes; available after ``recover``."""
        return self._volumes

    @property
    def reclaimer(self) -> Reclaimer:
        """The part that seals, packs and removes volumes; available after ``recover``."""
        return self._reclaimer

    @property
    def unpacker(self) -> RestUnpacker:
        """Decompresses entries; available after ``recover``."""
        return self._unpacker

    @property
    def unpacked(self) -> UnpackedUse:
        """Statistics of the cache of decompressed entries. Thread-safe."""
        return self._unpacked.use

    def recover(self) -> Recovery:
        """Open the data directory, creating it if missing.

        Raises DirectoryHeld if another process has it, PersistenceError if its format cannot be read, it is damaged or
        incomplete, or it needs a codec that is not available.
        """
        directory = DataDirectory(self._path)
        if not self._gaps and (self._path / ENSEMBLE).exists():
            directory.close()
            raise PersistenceError(
                f"{self._path} is one of several data directories of a box, and has only some of its messages: list all"
                " of them in dataDirectories"
            )
        self._volumes = VolumeSet(directory, self._sizes, self._open_max, self._step)
        self._rows = MetaRows(self._volumes.metas, lambda error: failure("a row cannot be read", error, self._path))
        self._reclaimer = Reclaimer(self._volumes, self._policy, self.codecs, self._rows)
        self._unpacker = RestUnpacker(self.codecs, MetaCodecs(self._volumes))
        try:
            return self._recover()
        except (lmdb.Error, OSError) as error:
            self.close()
            raise failure(f"{self._path} cannot be opened", error, self._path) from error
        except BaseException:
            self.close()
            raise

    def commit(self, batch: Batch) -> None:
        """Make a batch durable.

        Raises PersistenceError if the batch could not be stored: nothing of it is stored then, and the same position
        may be committed again. Raises StoreFull if it has entries and the disk is full, ValueError if the position is
        not the next.
        """
        if batch.position != self._next_position:
            raise ValueError(f"batch {batch.position} was committed, but {self._next_position} is next")
        self.store(batch.position, batch.value(), batch.runs)

    def store(self, position: int, value: bytes, runs: Mapping[int, JournalRun]) -> None:
        """Make the value of a batch durable, see ``commit``; its position is after all others of this log."""
        what = f"batch {position} of {len(value)} bytes could not be stored"
        if runs and not self._reserve.hold():
            raise StoreFull(f"{what}: the disk is full; the reserve is for acknowledgements and deletions")
        if runs:
            self._store(position, value, runs, what)
        else:
            try:
                self._from_reserve(lambda: self._store(position, value, runs, what))
            except StoreFull as error:
                # After StoreFull the core refuses messages and retries the rest at once, which would not help here.
                raise PersistenceError(str(error)) from error
        self._volumes.keep_until = position
        self._next_position = position + 1

    def _store(self, position: int, value: bytes, runs: Mapping[int, JournalRun], what: str) -> None:
        try:
            self._append(position, value, runs)
        except (lmdb.Error, OSError) as error:
            if isinstance(error, lmdb.PanicError):
                self._volumes.pool.drop(self._volumes.current)
            raise failure(what, error, self._path, len(value)) from error

    def erase_from(self, position: int, tables: AbstractContextManager[object]) -> None:
        """Delete the batches from a position on, which the checkpoint does not cover. Durable.

        Called by the committing thread; holds ``tables`` while it changes the tables. Raises PersistenceError.
        """
        try:
            erase_from(self._volumes, position, tables)
        except (lmdb.Error, OSError) as error:
            if isinstance(
                error, lmdb.PanicError
            ):  # after an earlier write that failed: the next attempt opens it again
                self._volumes.pool.drop(self._volumes.current)
            raise failure(f"the batches from {position} on could not be erased", error, self._path) from error
        self._next_position = min(self._next_position, position)

    def read(self, request: ReadRequest) -> list[Entry]:
        """See Engine."""
        answer = Answer(request, self._unpacker, self._unpacked)
        self.fill(answer, request.ledger_id)
        return request.answer(answer.entries)

    def fill(self, answer: Answer, ledger_id: int) -> None:
        """Read the entries of an answer. Raises as ``read``."""
        try:
            while answer.open:
                if not self._read_volume(answer, ledger_id):
                    answer.nothing_more()
        except (lmdb.Error, OSError) as error:
            reason = f"entry {ledger_id}:{answer.next_entry} cannot be read"
            if not answer.entries:
                raise failure(reason, error, self._path) from error
        except PersistenceError:
            if not answer.entries:
                raise

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """See Engine. Raises ValueError if its position is not committed."""
        if checkpoint.position >= self._next_position and not self._gaps:
            raise ValueError(f"checkpoint at {checkpoint.position}, but {self._next_position} is the next batch")
        self._from_reserve(lambda: self._checkpoint(checkpoint))
        self._reclaimer.note(checkpoint)
        self._step("checkpoint written")

    def _checkpoint(self, checkpoint: Checkpoint) -> None:
        try:
            with self._volumes.metas.using(0) as meta:
                meta.checkpoint(checkpoint)
                with contextlib.suppress(lmdb.Error):
                    meta.check_readers()
            self._volumes.check_readers()
        except (lmdb.Error, OSError) as error:
            if isinstance(error, lmdb.PanicError):
                self._volumes.metas.drop(0)
            raise failure(f"the checkpoint at {checkpoint.position} could not be stored", error, self._path) from error

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """See Engine."""
        return self._from_reserve(lambda: self._reclaim(compressing))

    def _reclaim(self, compressing: Compressing | None) -> Reclaimed | None:
        try:
            return self._reclaimer.reclaim(compressing)
        except (lmdb.Error, OSError) as error:
            if isinstance(error, lmdb.PanicError):
                self._volumes.metas.drop(0)
                if len(self._volumes.live) > 1:
                    self._volumes.pool.drop(self._volumes.live[-1])
            raise failure("disk space cannot be reclaimed", error, self._path) from error

    def _from_reserve(self, act: Callable[[], _Result]) -> _Result:
        """Run an action that frees space or must not wait for it; if the disk is full, again without the reserve."""
        try:
            return act()
        except StoreFull:
            if not self._reserve.release():
                raise
        return act()

    def check_room(self) -> None:
        """See Engine: requires the whole reserve, and enough space beside it to start a volume."""
        import shutil

        if not self._reserve.hold() or shutil.disk_usage(self._path).free < ROOM_MIN:
            raise StoreFull("the disk is full")

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of the store. Thread-safe. Raises PersistenceError."""
        from pulsarbox.storage.lmdb.engine_stats import statistics

        try:
            return statistics(self._volumes, self.unpacked, reserve_held=self._reserve.held)
        except (lmdb.Error, OSError) as error:
            raise failure("the store cannot be inspected", error, self._path) from error

    def ledger_volumes(self, ledger_ids: Sequence[int]) -> LedgerVolumes:
        """Return the volumes that hold ledgers at present. Thread-safe. Raises PersistenceError."""
        volumes = self._volumes
        try:
            with volumes.metas.using(0) as meta:
                found = meta.stretches_of(ledger_ids)
        except lmdb.Error as error:
            raise failure("the store cannot be inspected", error, self._path) from error
        stretches: dict[int, tuple[tuple[int, int, str], ...]] = {}
        for one in found:
            told = (one.first, one.end, volumes.directory.name(one.volume))
            stretches[one.ledger_id] = (*stretches.get(one.ledger_id, ()), told)
        unsealed = tuple(volumes.directory.name(number) for number in sorted(volumes.live))
        return LedgerVolumes(volumes.directory.instance, stretches, unsealed)

    def release_inherited_lock(self) -> None:
        """Release the inherited lock in a forked child, which would outlive the parent. No other call may follow."""
        if hasattr(self, "_volumes"):
            self._volumes.directory.close()

    def close(self) -> None:
        """Close the environments and release the directory."""
        if hasattr(self, "_reclaimer"):  # unset if another process holds the directory
            self._reclaimer.stop()
            self._volumes.close()

    def _recover(self) -> Recovery:
        volumes = self._volumes
        numbers = volumes.directory.volume_numbers()
        packed = volumes.directory.packed_numbers()
        if packed and not volumes.directory.meta.exists():
            raise PersistenceError(f"{volumes.directory.meta} is missing: it lists the contents of the packed volumes")
        with volumes.metas.using(0) as meta:
            mark, sealed = meta.marks()
            contents = meta.contents()
            dropped = meta.dropped()
            require_codecs(meta, self.codecs, str(self._path))
        unsealed = [number for number in numbers if number > sealed]
        if not unsealed and not sealed and not mark:
            create_environment(volumes.directory.volume(1), Volume.TABLES)
            unsealed = [1]
        if not unsealed or unsealed != list(range(sealed + 1, unsealed[-1] + 1)):
            there = ", ".join(map(str, unsealed)) or "none"
            raise PersistenceError(
                f"{self._path}: a volume is missing: expected all after {sealed}, found {there}; {RESTORE_BACKUP}"
            )
        for number in (*numbers, *packed):
            if number not in contents and (number <= sealed or number >= PACKED):
                volumes.directory.remove(number)
        volumes.begin(tuple(unsealed[::-1]))
        parts, newest = self._parts_after(mark, sealed, contents)
        self._next_position = max(mark, newest) + 1
        volumes.keep_until = self._next_position - 1
        self._reclaimer.begin(mark, dropped, contents)
        self._reserve.hold()
        batches, reclaimer = (value for _, value in self._batches(parts)), self._reclaimer
        return Recovery(self._rows, batches, self._next_position, lambda: reclaimer.compressed, lambda: self.unpacked)

    def _parts_after(
        self, mark: int, sealed: int, contents: dict[int, VolumeContent]
    ) -> tuple[list[tuple[int, int, int]], int]:
        """Return volume, first and last position of each part of the log after ``mark``, and its newest position.

        Volumes whose batches are all covered by the checkpoint may be deleted.
        """
        parts: list[tuple[int, int, int]] = []
        newest = newest_volume = first = 0
        logs = sorted([number for number in contents if number < PACKED], reverse=True)
        for number in (*self._volumes.live, *logs):
            low, high = self._extent(number, contents)
            if not high:
                continue
            if first and (high >= first or (high < first - 1 and not self._gaps)):
                name = self._volumes.directory.volume(number)
                raise PersistenceError(f"{name}: its log ends at batch {high}, but the next begins at {first}")
            if not newest:
                newest, newest_volume = high, number
            first = low
            if high > mark:
                parts.append((number, max(first, mark + 1), high))
            if first <= mark + 1:
                break
        if self._gaps:
            return parts[::-1], newest
        if newest < mark and (newest_volume >= sealed or not sealed):
            raise PersistenceError(f"{self._path}: the log ends at batch {newest}, but its checkpoint covers {mark}")
        if first > mark + 1:
            raise PersistenceError(f"{self._path}: the log begins at batch {first}, but its checkpoint ends at {mark}")
        return parts[::-1], newest

    def _extent(self, number: int, contents: dict[int, VolumeContent]) -> tuple[int, int]:
        content = contents.get(number)
        if content is not None:
            return content.first_position, content.last_position
        with self._volumes.pool.using(number) as volume:
            return volume.first_position, volume.last_position

    def batches(self, after: int) -> Iterator[tuple[int, bytes]]:
        """Yield positions and values of the log after a position that the checkpoint does not exceed.

        Raises PersistenceError at a damaged batch.
        """
        with self._volumes.metas.using(0) as meta:
            sealed, contents = meta.marks()[1], meta.contents()
        return self._batches(self._parts_after(after, sealed, contents)[0])

    def _batches(self, parts: list[tuple[int, int, int]]) -> Iterator[tuple[int, bytes]]:
        for number, first, last in parts:
            with self._volumes.pool.using(number) as volume:
                for position, value in volume.batches(first):
                    if position > last:
                        break
                    yield position, value

    def _append(self, position: int, value: bytes, runs: Mapping[int, JournalRun]) -> None:
        volumes = self._volumes
        with volumes.appending:
            number = volumes.current
            with volumes.pool.using(number) as volume:
                full = (
                    volume.size >= self._sizes.volume or not volume.has_room(len(value)) or volumes.roll_after == number
                )
                empty = not volume.last_position
                # A ledger has consecutive entries in a volume, so a gap in the log begins a new one.
                if empty or not (full or position != volume.last_position + 1):
                    try:
                        volume.append(position, value, runs)
                        self._page_cache.written(volume.file, volume.size)
                        return
                    except lmdb.MapFullError:
                        if empty:
                            raise
            number = volumes.begin_next()
            with volumes.pool.using(number) as volume:
                volume.append(position, value, runs)
                self._page_cache.written(volume.file, volume.size)

    def _read_volume(self, answer: Answer, ledger_id: int) -> bool:
        """Take the entries of one volume; False if no volume has the next entry."""
        before: VolumeRun | None = None
        while True:
            try:
                found, damage = self._read_live(answer, ledger_id)
            except EnvironmentGone:
                continue  # sealed and removed since ``live`` was read: the tables list it now
            if found:
                return True
            entry = answer.next_entry
            with self._volumes.metas.using(0) as meta:
                stretch = meta.stretch_of(ledger_id, entry)
            if stretch is None:
                if damage is not None:
                    raise EntryDamaged(ledger_id, entry, entry, str(damage)) from damage
                return False
            if stretch == before:
                raise EntryDamaged(ledger_id, entry, stretch.end - 1, "its volume does not contain it")
            before = stretch
            try:
                with self._volumes.pool.using(stretch.volume) as volume:
                    if volume.read_into(answer, ledger_id):
                        return True
            except EnvironmentGone:
                pass  # packed since the lookup
            except (lmdb.Error, OSError, PersistenceError) as error:
                if is_damage(error):
                    raise EntryDamaged(ledger_id, entry, stretch.end - 1, str(error)) from error
                raise

    def _read_live(self, answer: Answer, ledger_id: int) -> tuple[bool, Exception | None]:
        """Return whether a live volume had the next entry; if not, the damage that may be the reason."""
        damage: Exception | None = None
        for number in self._volumes.live:
            try:
                with self._volumes.pool.using(number) as volume:
                    if volume.read_into(answer, ledger_id):
                        return True, None
            except (lmdb.Error, OSError, PersistenceError) as error:
                if not is_damage(error):
                    raise
                damage = error
        return False, damage

"""Removal of the end of a log: batches that were not confirmed."""

from contextlib import AbstractContextManager
from functools import partial

from pulsarbox.storage.entry_index import runs_of
from pulsarbox.storage.format import PACKED
from pulsarbox.storage.lmdb.meta_environment import ErasedRun
from pulsarbox.storage.lmdb.volume import Volume
from pulsarbox.storage.lmdb.volume_set import VolumeSet


def erase_from(volumes: VolumeSet, position: int, tables: AbstractContextManager[object]) -> None:
    """Delete the batches from a position on, newest first; ``tables`` is held while the tables change.

    A crash leaves a log without some of them. The checkpoint covers none of them, so no volume with them was packed.
    Raises PersistenceError, lmdb.Error, OSError.
    """
    newest = volumes.current
    with volumes.pool.using(newest) as volume:
        first, stale = volume.first_position, volume.erase_from(position)
    if stale:
        volumes.pool.drop(newest)
    volumes.keep_until = position - 1
    if first and first < position:
        return  # all others are before it
    with tables:
        for number in volumes.live[1:]:
            with volumes.pool.using(number) as volume:
                stale = volume.erase_from(position)
            if stale:
                volumes.pool.drop(number)
        _erase_sealed(volumes, position)


def _erase_sealed(volumes: VolumeSet, position: int) -> None:
    with volumes.metas.using(0) as meta:
        contents = meta.contents()
    for number in sorted(contents, reverse=True):
        if number >= PACKED or contents[number].last_position < position:
            continue
        firsts: dict[int, int] = {}
        with volumes.pool.using(number) as volume:
            for each in volume.positions(position):
                for ledger_id, run in runs_of(volume.value(each)).items():
                    firsts.setdefault(ledger_id, run.first_entry)
        with volumes.metas.using(0) as meta:
            cuts = [ErasedRun(ledger_id, first, 1 << 64, number) for ledger_id, first in firsts.items()]
            meta.cut(cuts, {number: position - 1})
        volumes.step("cut off")
        volumes.pool.replace(number, partial(_erase_in, volumes, number, position))


def _erase_in(volumes: VolumeSet, number: int, position: int) -> None:
    volume = Volume(volumes.directory.volume(number), volumes.sizes.map, volumes.sizes.flush_at)
    try:
        volume.erase_from(position)
    finally:
        volume.close()

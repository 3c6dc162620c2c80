"""Statistics of an open store: its environments, their maps and readers, and the live share of each volume.

Thread-safe beside the engine's threads, through the same pools; reads some pages of meta, and no messages.
"""

import shutil
from contextlib import suppress
from typing import Any, Final, NamedTuple

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.compression.decompressed_cache import UnpackedUse
from pulsarbox.storage.format import PACKED
from pulsarbox.storage.lmdb.directory import DATA_FILE
from pulsarbox.storage.lmdb.environment import disk_bytes
from pulsarbox.storage.lmdb.meta_environment import VolumeContent
from pulsarbox.storage.lmdb.volume_set import VolumeSet

VOLUMES_MAX: Final = 1000
"""Number of volumes listed individually, newest first."""
_META_PAGES: Final = 2


class Environment(NamedTuple):
    """One LMDB environment; sizes are in bytes."""

    map_size: int
    file_size: int
    free_pages: int
    """Free pages of the file, including the pages of the free list."""
    page_size: int
    readers: int
    oldest_reader: dict[str, int] | None
    """``pid``, and how many transactions it is ``behind``: pages visible to it cannot be reused."""


def environment_of(env: "lmdb.Environment") -> Environment:
    """Return the statistics of an open environment. Raises lmdb.Error."""
    info, main = env.info(), env.stat()
    pages = int(info["last_pgno"]) + 1
    used = _META_PAGES + _pages(main)
    with env.begin() as txn:
        names = [bytes(name) for name in txn.cursor().iternext(keys=True, values=False)]
        for name in names:
            used += _pages(txn.stat(env.open_db(name, txn, create=False)))
    readers = _readers(env.readers(), int(info["last_txnid"]))
    return Environment(
        int(info["map_size"]),
        pages * int(main["psize"]),
        max(pages - used, 0),
        int(main["psize"]),
        int(info["num_readers"]),
        max(readers, key=lambda each: each["behind"], default=None),
    )


def _pages(stat: Any) -> int:
    return int(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])


def _readers(text: str, last: int) -> list[dict[str, int]]:
    """Parse LMDB's reader list: process, thread and transaction in columns; `-` for an idle reader."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0].isdecimal() and words[2].isdecimal():
            found.append({"pid": int(words[0]), "behind": max(last - int(words[2]), 0)})
    return found


def statistics(volumes: VolumeSet, unpacked: UnpackedUse, *, reserve_held: bool) -> dict[str, Any]:
    """Return all statistics, under stable names. Raises PersistenceError, lmdb.Error, OSError."""
    with volumes.metas.using(0) as meta:
        contents = meta.contents()
        meta_environment = environment_of(meta.environment)
    live = volumes.live
    rows = [_live_row(volumes, number) for number in live]
    rows += [_row(volumes, number, contents[number]) for number in sorted(contents, reverse=True) if number not in live]
    usage = shutil.disk_usage(volumes.directory.path)
    meta_bytes = disk_bytes(volumes.directory.meta)
    return {
        "rows": rows[:VOLUMES_MAX],
        "volumes": len(rows),
        "volumeBytes": sum(row["diskUsed"] for row in rows),
        "liveBytes": sum(row["liveBytes"] or 0 for row in rows),
        "meta": {
            "mapSize": meta_environment.map_size,
            "fileSize": meta_environment.file_size,
            "freePages": meta_environment.free_pages,
            "pageSize": meta_environment.page_size,
            "readers": meta_environment.readers,
            "oldestReader": meta_environment.oldest_reader,
            "diskUsed": meta_bytes,
        },
        "diskFree": usage.free,
        "diskTotal": usage.total,
        "reserveHeld": reserve_held,
        "unpackedHits": unpacked.hits,
        "unpackedMisses": unpacked.misses,
        "unpackedBytes": unpacked.bytes,
    }


def _live_row(volumes: VolumeSet, number: int) -> dict[str, Any]:
    row = _blank(volumes, number) | {"state": "current" if number == volumes.current else "unsealed"}
    with suppress(PersistenceError), volumes.pool.using(number) as volume:
        environment = environment_of(volume.environment)
        row |= {
            "firstPosition": volume.first_position,
            "lastPosition": volume.last_position,
            "mapSize": environment.map_size,
            "freePages": environment.free_pages,
            "readers": environment.readers,
            "oldestReader": environment.oldest_reader,
        }
    return row


def _row(volumes: VolumeSet, number: int, content: VolumeContent) -> dict[str, Any]:
    row = _blank(volumes, number)
    return row | {
        "state": "packed" if number >= PACKED else "sealed",
        "firstPosition": content.first_position,
        "lastPosition": content.last_position,
        "liveEntries": content.entries,
        "liveBytes": content.bytes,
        "liveShare": min(content.bytes / row["fileSize"], 1.0) if row["fileSize"] else 0.0,
    }


def _blank(volumes: VolumeSet, number: int) -> dict[str, Any]:
    path = volumes.directory.volume(number)
    size = used = 0
    with suppress(OSError):  # the volume may just have been removed
        size, used = (path / DATA_FILE).stat().st_size, disk_bytes(path)
    return {
        "name": volumes.directory.name(number),
        "state": "",
        "fileSize": size,
        "diskUsed": used,
        "firstPosition": 0,
        "lastPosition": 0,
        "liveEntries": None,
        "liveBytes": None,
        "liveShare": None,
        "mapSize": None,
        "freePages": None,
        "readers": None,
        "oldestReader": None,
    }

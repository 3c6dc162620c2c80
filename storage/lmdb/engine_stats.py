"""What an open store takes and holds: its environments, their maps and readers, and what of each volume is alive.

Looked at beside the threads of the engine, through the same pools; it reads some pages of meta, and no messages.
"""

import shutil
from contextlib import suppress
from typing import Any, Final, NamedTuple

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.compression.decompressed_cache import UnpackedUse
from pulsarbox.storage.format import PACKED
from pulsarbox.storage.lmdb.directory import DATA_FILE
from pulsarbox.storage.lmdb.meta_environment import Content
from pulsarbox.storage.lmdb.volume import disk_bytes
from pulsarbox.storage.lmdb.volume_set import VolumeSet

VOLUMES_MAX: Final = 1000
"""The newest so many are told one by one."""
_META_PAGES: Final = 2


class Environment(NamedTuple):
    """One LMDB environment: sizes in bytes."""

    map_size: int
    file_size: int
    free_pages: int
    """Pages of the file that nothing uses; the list of them is counted among them."""
    page_size: int
    readers: int
    oldest_reader: dict[str, int] | None
    """``pid``, and how many transactions ``behind`` the last one it reads: what it may see is not used again."""


def environment_of(env: "lmdb.Environment") -> Environment:
    """The numbers of an open environment. Raises lmdb.Error."""
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
    """LMDB's own list of readers: process, thread and transaction of each, in columns; `-` where it reads nothing."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0].isdecimal() and words[2].isdecimal():
            found.append({"pid": int(words[0]), "behind": max(last - int(words[2]), 0)})
    return found


def standing(volumes: VolumeSet, unpacked: UnpackedUse, *, reserve_held: bool) -> dict[str, Any]:
    """Everything, under names that stay. Raises PersistenceError, lmdb.Error, OSError."""
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


def _row(volumes: VolumeSet, number: int, content: Content) -> dict[str, Any]:
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
    with suppress(OSError):  # it may have gone this very moment
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

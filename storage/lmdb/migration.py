"""Migration of a data directory from version 1: its meta environment changes, its volumes do not.

One transaction changes the tables, then INSTANCE is rewritten. A crash between the two leaves new tables and an old
INSTANCE: the migration is repeated with the same effect.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.entry_index import VolumeRun
from pulsarbox.storage.format import CONTENT, INDEX_KEY, LOG_KEY, STRETCH
from pulsarbox.storage.lmdb.directory import DataDirectory
from pulsarbox.storage.lmdb.meta_environment import MAP_SIZE, POSITION, SEALED, TABLES, unpack_row
from pulsarbox.storage.lmdb.volume import FlushAt, Volume, disk_bytes, is_damage, open_environment


class _Old(NamedTuple):
    """A sealed volume of version 1."""

    number: int
    positions: tuple[int, int]
    size: int
    stretches: list[VolumeRun]


def migrate(directory: DataDirectory, map_size: int, step: Callable[[str], None]) -> None:
    """Migrate ``directory``, locked by this process, from version 1 to 2.

    Raises PersistenceError, lmdb.Error, OSError; it is unchanged then.
    """
    numbers = directory.volume_numbers()
    if directory.meta.exists():
        env = open_environment(directory.meta, MAP_SIZE)
        try:
            _migrate_tables(env, directory, numbers, map_size)
        finally:
            env.close()
        step("tables migrated")
    directory.set_format()


def _migrate_tables(env: lmdb.Environment, directory: DataDirectory, numbers: list[int], map_size: int) -> None:
    rows, mark, volumes, contents, _ = [env.open_db(name) for name in TABLES]
    sealed = numbers[-1] - 1 if numbers else 0  # version 1 listed every volume but the newest before creating the next
    with env.begin() as txn:
        listed = [(*INDEX_KEY.unpack(key), *LOG_KEY.unpack(value[:8])) for key, value in txn.cursor(db=volumes)]
        alive, owners = _ledgers_and_owners(unpack_row(key, value) for key, value in txn.cursor(db=rows))
        position: int = LOG_KEY.unpack(txn.get(POSITION, LOG_KEY.pack(0), db=mark))[0]
    old = [_look_at(directory, number, listed, position, map_size) for number in numbers[:-1]]
    with env.begin(write=True) as txn:
        txn.drop(volumes, delete=False)
        txn.drop(contents, delete=False)
        for volume in old:
            # A ledger without a row is deleted; one that began after the checkpoint has its row in the log.
            kept = [one for one in volume.stretches if one.ledger_id in alive or volume.positions[1] > position]
            for one in kept:
                key = INDEX_KEY.pack(one.ledger_id, one.first)
                txn.put(key, STRETCH.pack(one.volume, one.entries, one.bytes), db=volumes)
            entries = sum(one.entries for one in kept)
            size = sum(one.bytes for one in kept)
            value = CONTENT.pack(*volume.positions, volume.size, entries, size)
            txn.put(LOG_KEY.pack(volume.number), value, db=contents)
        for key, value in owners:
            txn.put(key, value, db=rows)
        txn.put(SEALED, LOG_KEY.pack(sealed), db=mark)


def _look_at(
    directory: DataDirectory, number: int, listed: list[tuple[int, int, int]], position: int, map_size: int
) -> _Old:
    path = directory.volume(number)
    try:
        volume = Volume(path, map_size, FlushAt(1, 1), sealed=True)
        try:
            positions = volume.first_position, volume.last_position
            stretches = volume.stretches(number)
        finally:
            volume.close()
    except (lmdb.Error, OSError, PersistenceError) as error:
        if not is_damage(error):
            raise
        # The volume is unreadable. Its listed entries remain, as far as known: they are damaged, not deleted. If its
        # log is still needed, recovery fails.
        positions = position, position
        stretches = list(_as_listed(number, listed))
    return _Old(number, positions, disk_bytes(path), stretches)


def _as_listed(number: int, listed: list[tuple[int, int, int]]) -> Iterator[VolumeRun]:
    for at, (ledger_id, first, volume) in enumerate(listed):
        if volume == number:
            following = listed[at + 1] if at + 1 < len(listed) else (None, 0, 0)
            entries = following[1] - first if following[0] == ledger_id else 1
            yield VolumeRun(ledger_id, first, number, entries, 0)


def _ledgers_and_owners(rows: Iterable[tuple[bytes, bytes]]) -> tuple[set[int], list[tuple[bytes, bytes]]]:
    """Return the existing ledgers, and the owner row of each topic id, ledger and cursor."""
    topics: dict[int, bytes] = {}
    owned: list[tuple[int, bytes]] = []
    ledgers: set[int] = set()
    for key, value in rows:
        kind, _, rest = key.partition(b"/")
        if kind == b"topic":
            topics[json.loads(value)["id"]] = json.dumps(rest.decode()).encode()
        elif kind in (b"ledger", b"cursor"):
            topic, _, own = rest.partition(b"/")
            owned.append((int(topic, 16), own))
            if kind == b"ledger":
                ledgers.add(int(own, 16))
    owners = [(b"owner/%016x" % topic_id, name) for topic_id, name in topics.items()]
    owners += [(b"owner/" + own, topics[topic_id]) for topic_id, own in owned if topic_id in topics]
    return ledgers, owners

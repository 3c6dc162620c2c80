"""Keys and values of the metadata rows. Values are JSON, so that an offline data directory is human-readable.

::

    ids                                     {"next": the next id, "boot": number of starts}
    clock                                   {"offset": ms by which the virtual clock is ahead of real time}
    dynamic                                 {setting: value} of the settings changed at run time
    tenant/<tenant>                         the tenant's info, as in the Admin API
    namespace/<tenant>/<namespace>          the namespace's policies, as in the Admin API
    resourcegroup/<name>                    the rates of a resource group, as in the Admin API
    cluster/<name>                          a cluster's data, as in the Admin API; optional for the box's own
    failuredomain/<cluster>                 {domain: data} of the failure domains of a cluster
    isolation/<cluster>                     {policy: data} of the namespace isolation policies of a cluster
    migration/<cluster>                     the migration of a cluster, as in the Admin API
    bookies/racks                           {group: {bookie: info}}, as in the Admin API
    bookieaffinity/<tenant>/<namespace>     the bookie affinity group of a namespace, as in the Admin API
    quota/default                           the default resource quota of bundles, as in the Admin API
    bundlequota/<tenant>/<namespace>/<bundle>
                                            the resource quota of a bundle
    policies/<topic name>                   the topic's own policies; for a partitioned topic, those of all partitions
    partitions/<topic name>                 {"partitions": n, "properties": {}}
    topic/<topic name>                      {"id": n, "created": ms, "properties": {}; optionally "deadline":
                                            ms, "epoch": how often a producer got exclusive access, minus one,
                                            "unused": ms, since when it is inactive,
                                            "deadLetters": true, if the box has moved dead letters there,
                                            "terminated": [ledger, entry] of its last message;
                                            "covered": [ledger, entry] up to which deleted subscriptions have
                                            covered it; "unsubscribed": what no subscription has covered, as in the
                                            row below: {"bytes": n, "since": ms, "ledger": the first}}
    unsubscribed/<class, 2 hex>/<ms, 16 hex>/<topic id>
                                            {"topic": its name, "bytes": n}: messages that unsubscribed retention
                                            keeps, by bit length of that size, then by the age of the oldest
    deadline/<ms, 16 hex>/<topic id>        {"topic": its name}: the topic is due for a check then, loaded or not
    walk/<id>                               {"prefix": of the keys of the topics to check, "after": the last one
                                            checked}, after a policy change, until all topics are checked
    job/<id>                                a job: "spec", as requested; "parts": [[topic, ledger, last entry at its
                                            start], ...]; "total": messages at its start
    jobstate/<id>                           its progress: see ``broker.jobs.job``
    kept                                    {"values": the broker-level policies when topics were last checked}
    owner/<id>                              the name of the topic that owns a topic id, ledger or cursor; derived from
                                            the rows above and below, and written by checkpoints only
    schema/<topic name>/<version, 16 hex>   the schema
    ledger/<topic id>/<ledger id>           see ``recovery.ledger_row``; "hole": [messages, bytes] of the ledgers before
                                            it that were deleted while an earlier one remained
    cursor/<topic id>/<cursor id>           {"name": subscription, "properties": {}, "created": ms;
                                            "unused": ms, since when it has no consumers; "deadLetter": its
                                            policy, as in the API; "compacted": see ``compacted_ledger.Behind``}
    keyhash/<topic id>/<cursor id>          {"hashing": plugin, "own": bool, "topic": name, "subscription": name} of a
                                            Key_Shared subscription with a hash other than Murmur3. Ids are decimal
    compacted/<topic id>/<ledger id>        the compacted view of a topic, see ``compacted_ledger.View``
    compacting/<topic id>/<ledger id>       {}: a compacted ledger that is being written, or is read only by consumers
                                            that began with it. It does not survive a restart
    sequence/<topic id>/<producer>          {"highest": the highest sequence id of the producer, "published": ms;
                                            "begun": [sequence id, ms, CRC32C of its chunks] of a message whose last
                                            chunk is not published yet}
    delays/<topic id>/<ledger id>           {"<chunk>": [number of delayed entries, first time, last time,
                                            their bytes]}
    delayed/<topic id>/<ledger id>/<chunk>  the chunk, 4096 entry ids, in 8 hex: the times (u64, ms since 1970) at which
                                            its delayed entries are due, sorted; then the place of each in it (u16);
                                            then the bytes of each (u32)
    quarantine/<ledger id>/<entry id>       a damaged entry: its topic, the last entry damaged with it, the reason, the
                                            time of detection (ms), and its readable bytes (base64)
    txn/<most>/<least>                      a transaction, see ``broker.transactions.transaction``: an open one, or one
                                            of the most recently ended ones
    pending/<most>/<least>/<topic id>/<cursor id>/<number>
                                            the acknowledgements of one ACK in an open transaction
    epoch/<tenant>/<namespace>/<sink>       {"epoch": the last epoch that a sink has committed, -1 for none,
                                            "committed": ms, "owner": the role that began it}; if the writer names
                                            itself, "writer", its "run", and "former": the writers it replaced
    package/<tenant>/<namespace>/<type>/<name>/<version>
                                            {"ledger": that has its content, "entries": n, "size": bytes, "metadata": as
                                            in the Admin API}
    packagedata/<ledger id>                 {"package": its name, "entries": n}: the ledger has the content of a
                                            package. Without "entries", it is being uploaded, and the row does not
                                            survive a restart
    packages                                {"count": n, "bytes": n} of all packages
    open/<topic id>/<most>/<least>          {"runs": [[ledger, first entry, last, messages before, after, bytes before,
                                            after]]}: the entries of an open transaction
    aborted/<topic id>/<ledger id>/<first entry>
                                            {"run": [last entry, messages before, after, bytes before, after]}:
                                            entries of an aborted transaction
    acks/<cursor id>                        the cursor's mark-delete, as a record
    acks/<cursor id>/<ledger id>/<chunk>    its acknowledgements beyond it in a chunk of entries, as records: ranges,
                                            partly acknowledged batches, redelivery counts. The chunk in 8 hex

Ids of topics, ledgers and cursors come from one counter and are sixteen hex digits in keys, so that keys sort by them.
The two halves of a transaction's id are sixteen hex digits each.
Only checkpoints write the rows of acknowledgements, sequence ids, delays and open entries.
"""

import json
from collections.abc import Iterator
from heapq import merge
from itertools import islice, takewhile
from operator import itemgetter
from typing import Any, Final

from sortedcontainers import SortedDict

from pulsarbox.storage.engine import Rows
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Meta, pack_meta

Row = dict[str, Any]

IDS: Final = "ids"
CLOCK: Final = "clock"
DYNAMIC: Final = "dynamic"
KEPT: Final = "kept"
WALKS: Final = "walk/"
COMPACTING: Final = "compacting/"
TXNS: Final = "txn/"
PENDING: Final = "pending/"
JOBS: Final = "job/"
UNSUBSCRIBED: Final = "unsubscribed/"
PACKAGES: Final = "packages"
PACKAGE_DATA: Final = "packagedata/"

_AFTER_ALL: Final = "\U0010ffff"


def tenant_key(tenant: str) -> str:
    """Return the key of a tenant's row."""
    return f"tenant/{tenant}"


def namespace_key(namespace: str) -> str:
    """Return the key of the row of ``tenant/namespace``."""
    return f"namespace/{namespace}"


def policies_key(topic: str) -> str:
    """Return the key of a topic's policies."""
    return f"policies/{topic}"


def partitions_key(topic: str) -> str:
    """Return the key of a partitioned topic's row."""
    return f"partitions/{topic}"


def topic_key(topic: str) -> str:
    """Return the key of a topic's row."""
    return f"topic/{topic}"


def schema_key(topic: str, version: int) -> str:
    """Return the key of one version of a topic's schema."""
    return f"schema/{topic}/{version:016x}"


def ledger_key(topic_id: int, ledger_id: int | None = None) -> str:
    """Return the key of a ledger's row; without a ledger, the key prefix of all ledgers of the topic."""
    return f"ledger/{topic_id:016x}/" + ("" if ledger_id is None else f"{ledger_id:016x}")


def cursor_key(topic_id: int, cursor_id: int | None = None) -> str:
    """Return the key of a durable subscription's row; without a cursor, the key prefix of all of the topic."""
    return f"cursor/{topic_id:016x}/" + ("" if cursor_id is None else f"{cursor_id:016x}")


def deadline_key(wall: int, topic_id: int) -> str:
    """Return the key of the time (ms since 1970) at which a topic is due for a check."""
    return f"deadline/{wall:016x}/{topic_id:016x}"


def unsubscribed_key(number: int, wall: int | None = None, topic_id: int = 0) -> str:
    """Return the key of a topic with messages that no subscription has covered, by size class and age (ms since 1970).

    Without an age, the key prefix of the size class.
    """
    return f"{UNSUBSCRIBED}{number:02x}/" + ("" if wall is None else f"{wall:016x}/{topic_id:016x}")


def walk_key(number: int) -> str:
    """Return the key of a topic walk in progress."""
    return f"{WALKS}{number:016x}"


def job_key(number: int) -> str:
    """Return the key of a job's specification."""
    return f"{JOBS}{number:016x}"


def job_state_key(number: int) -> str:
    """Return the key of a job's progress."""
    return f"jobstate/{number:016x}"


def quarantine_key(ledger_id: int, entry_id: int) -> str:
    """Return the key of a quarantined entry."""
    return f"quarantine/{ledger_id:016x}/{entry_id:016x}"


def owner_key(number: int) -> str:
    """Return the key of the name of the topic that owns a topic id, ledger id or cursor id."""
    return f"owner/{number:016x}"


def acks_key(cursor_id: int) -> str:
    """Return the key of a cursor's mark-delete position, which is also the key prefix of its other acknowledgements."""
    return f"acks/{cursor_id:016x}"


def acks_chunk_key(cursor_id: int, ledger_id: int, number: int) -> str:
    """Return the key of a cursor's acknowledgements in one chunk of a ledger."""
    return f"acks/{cursor_id:016x}/{ledger_id:016x}/{number:08x}"


def compacted_key(topic_id: int, ledger_id: int | None = None) -> str:
    """Return the key of a topic's compacted view; without a ledger, the key prefix of all views of the topic."""
    return f"compacted/{topic_id:016x}/" + ("" if ledger_id is None else f"{ledger_id:016x}")


def compacting_key(topic_id: int, ledger_id: int | None = None) -> str:
    """Return the key of a temporary compacted ledger; without a ledger, the key prefix of all of the topic."""
    return f"{COMPACTING}{topic_id:016x}/" + ("" if ledger_id is None else f"{ledger_id:016x}")


def sequence_key(topic_id: int, producer: str = "") -> str:
    """Return the key of a producer's highest sequence id; without a name, the key prefix of all of the topic."""
    return f"sequence/{topic_id:016x}/{producer}"


def delays_key(topic_id: int, ledger_id: int | None = None) -> str:
    """Return the key of a ledger's delayed extents; without a ledger, the key prefix of all of the topic."""
    return f"delays/{topic_id:016x}/" + ("" if ledger_id is None else f"{ledger_id:016x}")


def delayed_key(topic_id: int, ledger_id: int, number: int) -> str:
    """Return the key of a chunk of delayed entries."""
    return f"delayed/{topic_id:016x}/{ledger_id:016x}/{number:08x}"


def txn_key(most: int | None = None, least: int = 0) -> str:
    """Return the key of a transaction; without an id, the key prefix of all transactions."""
    return TXNS if most is None else f"{TXNS}{most:016x}/{least:016x}"


def pending_key(most: int, least: int, topic_id: int | None = None, cursor_id: int = 0, number: int = 0) -> str:
    """Return the key of an acknowledgement in a transaction; without a topic, the key prefix of the transaction."""
    key = f"{PENDING}{most:016x}/{least:016x}/"
    return key if topic_id is None else f"{key}{topic_id:016x}/{cursor_id:016x}/{number:08x}"


def epoch_key(sink: str) -> str:
    """Return the key of a sink's last epoch; for ``tenant/namespace/``, the key prefix of all of the namespace."""
    return f"epoch/{sink}"


def package_key(namespace: str, kind: str = "", name: str = "", version: str = "") -> str:
    """Return the key of a package's row; without a version, name or type, the key prefix of all of these."""
    return f"package/{namespace}/" + "".join(f"{each}/" for each in (kind, name) if each) + version


def package_data_key(ledger_id: int) -> str:
    """Return the key of a ledger that has the content of a package."""
    return f"{PACKAGE_DATA}{ledger_id:016x}"


def open_key(topic_id: int, most: int | None = None, least: int = 0) -> str:
    """Return the key of an open transaction's entries; without a transaction, the key prefix of the topic."""
    return f"open/{topic_id:016x}/" + ("" if most is None else f"{most:016x}/{least:016x}")


def aborted_key(topic_id: int, ledger_id: int | None = None, first: int | None = None) -> str:
    """Return the key of a run of aborted entries; without the rest, the key prefix of the topic or ledger."""
    key = f"aborted/{topic_id:016x}/" + ("" if ledger_id is None else f"{ledger_id:016x}/")
    return key if first is None else f"{key}{first:016x}"


class Catalog:
    """All rows: those of the last checkpoint on disk, and in memory those written since.

    Memory holds only what changed since the last checkpoint.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._fresh: SortedDict[str, bytes | None] = SortedDict()
        self._taken: SortedDict[str, bytes | None] = SortedDict()
        """Rows of the checkpoint being written."""

    def get(self, key: str) -> Row | None:
        """Return the row, or None if there is none."""
        value = self.raw(key)
        return None if value is None else json.loads(value)

    def raw(self, key: str) -> bytes | None:
        """Return the row as stored, or None if there is none."""
        for rows in (self._fresh, self._taken):
            if key in rows:
                value: bytes | None = rows[key]
                return value
        return self._rows.get(key.encode())

    def __contains__(self, key: str) -> bool:
        return self.raw(key) is not None

    def keys(self, prefix: str) -> Iterator[str]:
        """Return the current keys that start with ``prefix``, sorted."""
        return (key for key, _ in self.items(prefix))

    def items(self, prefix: str, after: str = "", before: str = "") -> Iterator[tuple[str, bytes]]:
        """Return the current rows whose keys start with ``prefix``, sorted.

        ``after`` and ``before`` are exclusive bounds of the keys; rows outside of them are not read.
        """
        memory: dict[str, bytes | None] = {}
        low, high = max(prefix, after), before or prefix + _AFTER_ALL
        for rows in (self._taken, self._fresh):
            memory.update((key, rows[key]) for key in rows.irange(low, high, (not after, not before)))
        found = self._rows.items(prefix.encode(), after.encode())
        stored: Iterator[tuple[str, bytes]] = ((key.decode(), value) for key, value in found)
        if before:
            stored = takewhile(lambda row: row[0] < before, stored)
        if not memory:
            return stored
        fresh = ((key, value) for key, value in sorted(memory.items()) if value is not None)
        return merge((item for item in stored if item[0] not in memory), fresh)

    def last(self, prefix: str, through: str) -> tuple[str, bytes] | None:
        """Return the last row whose key starts with ``prefix`` and is not after ``through``, or None if there is none.

        For short keys only.
        """
        best: tuple[str, bytes] | None = None
        for rows, above in ((self._fresh, ()), (self._taken, self._fresh)):
            for key in rows.irange(prefix, through, reverse=True):
                value = rows[key]
                if value is not None and key not in above:
                    best = max(best or (key, value), (key, value), key=itemgetter(0))
                    break
        found = self._rows.last(prefix.encode(), through.encode())
        while found is not None and self._is_deleted(found[0].decode()):  # rows are deleted with their ledger
            found = self._rows.last(prefix.encode(), _before(found[0]))
        if found is None or (best is not None and found[0].decode() <= best[0]):
            return best
        key = found[0].decode()
        return key, self.raw(key) or found[1]

    def page(self, prefix: str, after: str, count: int) -> tuple[list[str], str | None]:
        """Return about ``count`` sorted keys after ``after``, and the key to continue after (None at the end).

        The cost does not depend on how many keys follow.
        """
        low, high = after or prefix, prefix + _AFTER_ALL
        looked = [
            list(islice(rows.irange(low, high, inclusive=(not after, True)), count))
            for rows in (self._fresh, self._taken)
        ]
        stored = (key.decode() for key, _ in self._rows.items(prefix.encode(), after.encode()))
        looked.append(list(islice(stored, count)))
        end = min((keys[-1] for keys in looked if len(keys) == count), default=None)
        keys = sorted({key for keys in looked for key in keys if end is None or key <= end})
        return [key for key in keys if not self._is_deleted(key)], end

    def _is_deleted(self, key: str) -> bool:
        """Return whether the row was deleted since the last checkpoint."""
        for rows in (self._fresh, self._taken):
            if key in rows:
                return rows[key] is None
        return False

    def first(self, prefix: str) -> str | None:
        """Return the first key that starts with ``prefix``, or None if there is none."""
        stored = (key.decode() for key, _ in self._rows.items(prefix.encode()))
        found = [next((key for key in stored if key not in self._fresh and key not in self._taken), None)]
        for rows, above in ((self._fresh, ()), (self._taken, self._fresh)):
            keys = rows.irange(prefix, prefix + _AFTER_ALL)
            found.append(next((key for key in keys if rows[key] is not None and key not in above), None))
        return min((key for key in found if key is not None), default=None)

    def put(self, batch: Batch, key: str, row: Row | None) -> None:
        """Write a row, or delete it with None; durable with the batch."""
        value = _encode(row)
        batch.add(pack_meta(Meta(key.encode(), value)))
        self.apply(key, value)

    def note(self, key: str, value: bytes | Row | None) -> None:
        """Write a row for the checkpoint only: the log has its content in other records."""
        self._fresh[key] = _encode(value) if isinstance(value, dict) else value

    def apply(self, key: str, value: bytes | None) -> None:
        """Apply a row from the log, and maintain the owner rows that follow from it."""
        kind, _, rest = key.partition("/")
        if kind == "topic":
            known = value if value is not None else self.raw(key)
            if known is not None:
                self._own(json.loads(known)["id"], None if value is None else _encode(rest))
        elif kind in ("ledger", "cursor"):
            topic_id, number = (int(part, 16) for part in rest.split("/"))
            self._own(number, None if value is None else self.raw(owner_key(topic_id)))
        self._fresh[key] = value

    def owner(self, number: int) -> str | None:
        """Return the name of the topic that owns an id, or None if no topic does."""
        value = self.raw(owner_key(number))
        return None if value is None else json.loads(value)

    def delete_all(self, prefix: str) -> None:
        """Delete all rows whose keys start with ``prefix``, at the next checkpoint."""
        for key in list(self.keys(prefix)):
            self._fresh[key] = None

    def _own(self, number: int, name: bytes | None) -> None:
        key = owner_key(number)
        if self.raw(key) != name:
            self._fresh[key] = name

    # Checkpoints

    @property
    def fresh(self) -> int:
        """Number of rows written since the last checkpoint was taken."""
        return len(self._fresh)

    def take(self) -> dict[bytes, bytes | None]:
        """Return the rows written since the last call, in no order, for a checkpoint. Only one may be in progress."""
        assert not self._taken
        self._taken, self._fresh = self._fresh, SortedDict()
        # dict.items bypasses the key order, which is not needed here: 20,000 rows take 2 ms of a turn instead of 7.
        return {key.encode(): value for key, value in dict.items(self._taken)}

    def stored(self) -> None:
        """Discard the taken rows: their checkpoint is on disk."""
        self._taken = SortedDict()

    def restore(self) -> None:
        """Restore the taken rows: their checkpoint has failed. Later writes win."""
        self._taken.update(self._fresh)
        self._fresh, self._taken = self._taken, SortedDict()


def _before(key: bytes) -> bytes:
    """Return a key directly before one that ends with a hex digit, and after all shorter ones."""
    return key[:-1] + bytes((key[-1] - 1,)) + b"\xff"


_to_json: Final = json.JSONEncoder(separators=(",", ":")).encode
"""json.dumps would create an encoder per row, a fifth of its time."""


def _encode(row: Row | str | None) -> bytes | None:
    return None if row is None else _to_json(row).encode()

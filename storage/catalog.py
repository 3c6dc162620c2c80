"""The rows of the metadata: what exists, by key. JSON values, so that a dead directory can be read by eye.

::

    ids                                     {"next": the next id, "boot": starts so far}
    clock                                   {"offset": ms by which the virtual clock is ahead of the real time}
    tenant/<tenant>                         the tenant's info, as in the Admin API
    namespace/<tenant>/<namespace>          the namespace's policies, as in the Admin API
    policies/<topic name>                   the topic's own policies, of a partitioned topic those of all partitions
    partitions/<topic name>                 {"partitions": n, "properties": {}}
    topic/<topic name>                      {"id": n, "created": ms, "properties": {}; where it has them "deadline":
                                            ms, "epoch": how often it was given to one producer alone, less one,
                                            "unused": ms, since when, if nobody uses it,
                                            "deadLetters": true, where the box has moved some there,
                                            "terminated": [ledger, entry] of the last message it will ever have;
                                            "covered": [ledger, entry] up to where subscriptions that are deleted have
                                            covered it; "unsubscribed": what of it no subscription has covered, as the
                                            row below: {"bytes": n, "since": ms, "ledger": the first}}
    unsubscribed/<class, 2 hex>/<ms, 16 hex>/<topic id>
                                            {"topic": its name, "bytes": n} of messages that unsubscribed retention
                                            keeps: by bit length of that number, then by when the oldest came
    deadline/<ms, 16 hex>/<topic id>        the topic's name: then it is to be looked at, loaded or not
    walk/<id>                               {"prefix": of the keys of the topics to look at, "after": the last one that
                                            was}, until all of them were: a policy has changed
    job/<id>                                a job: "spec", as it was asked for; "parts": [[topic, ledger, entry of the
                                            last one that was there], ...]; "total": messages then
    jobstate/<id>                           how far it is: see ``broker.jobs.job``
    kept                                    {"values": the broker's own policies when topics were looked at last}
    owner/<id>                              the name of the topic that a topic id, ledger or cursor is of; made of the
                                            rows above and below, and written by checkpoints only
    schema/<topic name>/<version, 16 hex>   the schema
    ledger/<topic id>/<ledger id>           see ``recovery.ledger_row``; "hole": [messages, bytes] of the ledgers before
                                            it that went while an earlier one stayed
    cursor/<topic id>/<cursor id>           {"name": subscription, "properties": {}, "created": ms;
                                            "unused": ms, since when, where it has no consumers; "deadLetter": its
                                            policy, as in the API; "compacted": see ``compacted.Behind``}
    compacted/<topic id>/<ledger id>        the compacted view of a topic, see ``compacted.View``
    compacting/<topic id>/<ledger id>       {}: a compacted ledger that is being made, or that those alone still read
                                            who began with it. With a restart it is no more
    sequence/<topic id>/<producer>          {"highest": the highest sequence id of the producer, "published": ms;
                                            "begun": [sequence id, ms, CRC32C of its chunks] of a message whose last
                                            chunk is still to come}
    delays/<topic id>/<ledger id>           {"<chunk>": [how many of it are delayed, the first time, the last time,
                                            bytes of them]}
    delayed/<topic id>/<ledger id>/<chunk>  the chunk, 4096 entry ids, in 8 hex: the times (u64, ms since 1970) at which
                                            its delayed entries fall due, sorted; then the place of each in it (u16);
                                            then the bytes of each (u32; the first rows that there were end before them)
    quarantine/<ledger id>/<entry id>       a damaged entry: its topic, the last one damaged with it, the reason, when
                                            it was found (ms), and what there is of its bytes (base64)
    txn/<most>/<least>                      a transaction, see ``broker.transactions.transaction``: an open one, or one
                                            of the last that ended
    pending/<most>/<least>/<topic id>/<cursor id>/<number>
                                            what one ACK has acknowledged in an open transaction
    epoch/<tenant>/<namespace>/<sink>       {"epoch": the last one that a sink has committed, -1 for none,
                                            "committed": ms, "owner": the role that began it}; where the writer says
                                            who it is "writer", its "run", and "former": those who were replaced
    open/<topic id>/<most>/<least>          {"runs": [[ledger, first entry, last, messages before, after, bytes before,
                                            after]]} of the entries of an open transaction
    aborted/<topic id>/<ledger id>/<first entry>
                                            {"run": [last entry, messages before, after, bytes before, after]} of
                                            entries of a transaction that was aborted
    acks/<cursor id>                        the cursor's mark-delete, as a record (of version 1: all that it has)
    acks/<cursor id>/<ledger id>/<chunk>    what it has beyond in a chunk of a ledger's entries, as records: ranges,
                                            partly acknowledged batches, redelivery counts. The chunk in 8 hex

Ids of topics, ledgers and cursors come from one counter and are sixteen hex digits in keys, so that keys sort by them.
The two halves of a transaction's id are sixteen hex digits each.
The rows of acknowledgements, sequence ids, delays and open entries are written by checkpoints only. A version that does
not know of delays lets their rows be, and publishes entries without: see ``delays`` for what becomes of those.
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

_AFTER_ALL: Final = "\U0010ffff"


def tenant_key(tenant: str) -> str:
    """Key of a tenant's row."""
    return f"tenant/{tenant}"


def namespace_key(namespace: str) -> str:
    """Key of the row of ``tenant/namespace``."""
    return f"namespace/{namespace}"


def policies_key(topic: str) -> str:
    """Key of the row of a topic's policies."""
    return f"policies/{topic}"


def partitions_key(topic: str) -> str:
    """Key of the row of a partitioned topic."""
    return f"partitions/{topic}"


def topic_key(topic: str) -> str:
    """Key of a topic's row."""
    return f"topic/{topic}"


def schema_key(topic: str, version: int) -> str:
    """Key of one version of a topic's schema."""
    return f"schema/{topic}/{version:016x}"


def ledger_key(topic_id: int, ledger_id: int | None = None) -> str:
    """Key of a ledger's row; without the ledger, what the keys of all ledgers of the topic start with."""
    return f"ledger/{topic_id:016x}/" + ("" if ledger_id is None else f"{ledger_id:016x}")


def cursor_key(topic_id: int, cursor_id: int | None = None) -> str:
    """Key of a durable subscription's row; without it, what the keys of all of the topic start with."""
    return f"cursor/{topic_id:016x}/" + ("" if cursor_id is None else f"{cursor_id:016x}")


def deadline_key(wall: int, topic_id: int) -> str:
    """Key of the instant (ms since 1970) at which a topic is to be looked at."""
    return f"deadline/{wall:016x}/{topic_id:016x}"


def unsubscribed_key(number: int, wall: int | None = None, topic_id: int = 0) -> str:
    """Key of a topic with messages that no subscription has covered, by class of size and by age (ms since 1970);
    without the latter, what the keys of all of a class start with."""
    return f"{UNSUBSCRIBED}{number:02x}/" + ("" if wall is None else f"{wall:016x}/{topic_id:016x}")


def walk_key(number: int) -> str:
    """Key of a walk over topics that is under way."""
    return f"{WALKS}{number:016x}"


def job_key(number: int) -> str:
    """Key of what a job was asked for."""
    return f"{JOBS}{number:016x}"


def job_state_key(number: int) -> str:
    """Key of how far a job is."""
    return f"jobstate/{number:016x}"


def quarantine_key(ledger_id: int, entry_id: int) -> str:
    """Key of a damaged entry that is kept aside."""
    return f"quarantine/{ledger_id:016x}/{entry_id:016x}"


def owner_key(number: int) -> str:
    """Key of the name of the topic that a topic id, ledger id or cursor id belongs to."""
    return f"owner/{number:016x}"


def acks_key(cursor_id: int) -> str:
    """Key of a cursor's mark-delete, and what the keys of its other acknowledgements start with."""
    return f"acks/{cursor_id:016x}"


def acks_chunk_key(cursor_id: int, ledger_id: int, number: int) -> str:
    """Key of a cursor's acknowledgements in one chunk of a ledger."""
    return f"acks/{cursor_id:016x}/{ledger_id:016x}/{number:08x}"


def compacted_key(topic_id: int, ledger_id: int | None = None) -> str:
    """Key of a topic's compacted view; without the ledger, what the keys of all of the topic start with."""
    return f"compacted/{topic_id:016x}/" + ("" if ledger_id is None else f"{ledger_id:016x}")


def compacting_key(topic_id: int, ledger_id: int | None = None) -> str:
    """Key of a compacted ledger that does not outlive a restart; without it, as above."""
    return f"{COMPACTING}{topic_id:016x}/" + ("" if ledger_id is None else f"{ledger_id:016x}")


def sequence_key(topic_id: int, producer: str = "") -> str:
    """Key of a producer's highest sequence id; without the name, what the keys of all of the topic start with."""
    return f"sequence/{topic_id:016x}/{producer}"


def delays_key(topic_id: int, ledger_id: int | None = None) -> str:
    """Key of the extents of a ledger's delayed entries; without it, what the keys of all of the topic start with."""
    return f"delays/{topic_id:016x}/" + ("" if ledger_id is None else f"{ledger_id:016x}")


def delayed_key(topic_id: int, ledger_id: int, number: int) -> str:
    """Key of a chunk of delayed entries."""
    return f"delayed/{topic_id:016x}/{ledger_id:016x}/{number:08x}"


def txn_key(most: int | None = None, least: int = 0) -> str:
    """Key of a transaction; without it, what the keys of all start with."""
    return TXNS if most is None else f"{TXNS}{most:016x}/{least:016x}"


def pending_key(most: int, least: int, topic_id: int | None = None, cursor_id: int = 0, number: int = 0) -> str:
    """Key of an acknowledgement in a transaction; without the topic, what the keys of all of the transaction start
    with."""
    key = f"{PENDING}{most:016x}/{least:016x}/"
    return key if topic_id is None else f"{key}{topic_id:016x}/{cursor_id:016x}/{number:08x}"


def epoch_key(sink: str) -> str:
    """Key of a sink's last epoch; ``tenant/namespace/`` is what the keys of all of a namespace start with."""
    return f"epoch/{sink}"


def open_key(topic_id: int, most: int | None = None, least: int = 0) -> str:
    """Key of the entries of an open transaction; without it, what the keys of all of the topic start with."""
    return f"open/{topic_id:016x}/" + ("" if most is None else f"{most:016x}/{least:016x}")


def aborted_key(topic_id: int, ledger_id: int | None = None, first: int | None = None) -> str:
    """Key of a run of aborted entries; without the rest, what the keys of all of the topic or ledger start with."""
    key = f"aborted/{topic_id:016x}/" + ("" if ledger_id is None else f"{ledger_id:016x}/")
    return key if first is None else f"{key}{first:016x}"


class Catalog:
    """All rows: those of the last checkpoint on the disk, and in memory those written since then.

    Only what changed since the last checkpoint takes memory.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._fresh: SortedDict[str, bytes | None] = SortedDict()
        self._taken: SortedDict[str, bytes | None] = SortedDict()
        """Rows of a checkpoint that is being written."""

    def get(self, key: str) -> Row | None:
        """The row, None where there is none."""
        value = self.raw(key)
        return None if value is None else json.loads(value)

    def raw(self, key: str) -> bytes | None:
        """The row as it is stored, None where there is none."""
        for rows in (self._fresh, self._taken):
            if key in rows:
                value: bytes | None = rows[key]
                return value
        return self._rows.get(key.encode())

    def __contains__(self, key: str) -> bool:
        return self.raw(key) is not None

    def keys(self, prefix: str) -> Iterator[str]:
        """The keys that start with ``prefix``, sorted, as they are now."""
        return (key for key, _ in self.items(prefix))

    def items(self, prefix: str, after: str = "", before: str = "") -> Iterator[tuple[str, bytes]]:
        """The rows whose keys start with ``prefix``, sorted, as they are now; of these only those whose keys come
        behind ``after``, and before ``before``, where those are given. The others are not looked at."""
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
        """The last row whose key starts with ``prefix`` and is not behind ``through``; None where there is none.
        Of rows with short keys."""
        best: tuple[str, bytes] | None = None
        for rows, above in ((self._fresh, ()), (self._taken, self._fresh)):
            for key in rows.irange(prefix, through, reverse=True):
                value = rows[key]
                if value is not None and key not in above:
                    best = max(best or (key, value), (key, value), key=itemgetter(0))
                    break
        found = self._rows.last(prefix.encode(), through.encode())
        while found is not None and self._is_deleted(found[0].decode()):  # as rows are with their ledger
            found = self._rows.last(prefix.encode(), _before(found[0]))
        if found is None or (best is not None and found[0].decode() <= best[0]):
            return best
        key = found[0].decode()
        return key, self.raw(key) or found[1]

    def page(self, prefix: str, after: str, count: int) -> tuple[list[str], str | None]:
        """Some of the keys that start with ``prefix`` and come behind ``after``, sorted, about ``count`` of them; and
        behind which key to go on, None at the end. It takes as long whatever comes later."""
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
        """Whether a row that was there is deleted since the last checkpoint."""
        for rows in (self._fresh, self._taken):
            if key in rows:
                return rows[key] is None
        return False

    def first(self, prefix: str) -> str | None:
        """The first key that starts with ``prefix``, None where there is none."""
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
        """Write a row for the checkpoint alone: the log has its content in other records."""
        self._fresh[key] = _encode(value) if isinstance(value, dict) else value

    def apply(self, key: str, value: bytes | None) -> None:
        """Take a row over as the log has it, and keep the owners that follow from it."""
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
        """The name of the topic that an id belongs to, None where nothing has it."""
        value = self.raw(owner_key(number))
        return None if value is None else json.loads(value)

    def delete_all(self, prefix: str) -> None:
        """Delete the rows of the checkpoint that start with ``prefix``."""
        for key in list(self.keys(prefix)):
            self._fresh[key] = None

    def _own(self, number: int, name: bytes | None) -> None:
        key = owner_key(number)
        if self.raw(key) != name:
            self._fresh[key] = name

    # Checkpoints

    @property
    def fresh(self) -> int:
        """How many rows were written since the last checkpoint was taken."""
        return len(self._fresh)

    def take(self) -> dict[bytes, bytes | None]:
        """The rows written since the last call, in no order, for a checkpoint. There is one at a time."""
        assert not self._taken
        self._taken, self._fresh = self._fresh, SortedDict()
        # Past the order of the keys, which nobody asks for here: of 20,000 rows that is 2 ms of a turn instead of 7.
        return {key.encode(): value for key, value in dict.items(self._taken)}

    def stored(self) -> None:
        """The checkpoint that rows were taken for is on the disk."""
        self._taken = SortedDict()

    def give_back(self) -> None:
        """The checkpoint that rows were taken for has failed; later writes win."""
        self._taken.update(self._fresh)
        self._fresh, self._taken = self._taken, SortedDict()


def _before(key: bytes) -> bytes:
    """What comes right before a key that ends with a hex digit, and behind all shorter ones."""
    return key[:-1] + bytes((key[-1] - 1,)) + b"\xff"


_to_json: Final = json.JSONEncoder(separators=(",", ":")).encode
"""json.dumps would make an encoder for each row, a fifth of what it takes."""


def _encode(row: Row | str | None) -> bytes | None:
    return None if row is None else _to_json(row).encode()

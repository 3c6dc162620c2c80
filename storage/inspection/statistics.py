"""Statistics of a data directory: its contents, its live data, and its disk usage."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.compression.topic_usage import topics_of
from pulsarbox.storage.format import META, PACKED
from pulsarbox.storage.inspection.box import Box, Vanished, no_tables, number_of, read_tables
from pulsarbox.storage.inspection.child import ChildEnded, Line, run
from pulsarbox.storage.inspection.copies import DirectoryRuns
from pulsarbox.storage.inspection.holdings import Holdings
from pulsarbox.storage.inspection.tail import Tail
from pulsarbox.storage.lmdb.meta_environment import unpack_row as unpack_meta_row

_ROUNDS_MAX = 5


def statistics(path: Path, topics: int) -> dict[str, Any]:
    """Return the statistics of the box at ``path``, with its ``topics`` largest topics. Raises PersistenceError."""
    return statistics_with_runs(path, topics)[0]


def statistics_with_runs(path: Path, topics: int) -> tuple[dict[str, Any], DirectoryRuns]:
    """Return the statistics of the directory at ``path``, and the entries in it. Raises PersistenceError."""
    Box(path)
    skip: list[str] = []
    while True:
        runs, document = DirectoryRuns(), None
        try:
            for line in run("stat", path, {"topics": topics, "skip": skip}):
                runs.take(line)
                document = line[1] if line[0] == "stat" else document
        except ChildEnded as error:
            if not error.where or error.where == META or error.where in skip:
                advice = "`pulsarbox storage check` shows the damage"
                raise PersistenceError(f"{path / (error.where or META)}: {error.reason}: {advice}") from error
            skip.append(error.where)
        else:
            assert isinstance(document, dict)
            return document, runs


def gather(path: Path, options: dict[str, Any]) -> Iterator[Line]:
    """Gather statistics in a child process; volumes in ``skip`` crashed an earlier child."""
    for attempt in range(_ROUNDS_MAX):
        try:
            gathering = _Gathering(Box(path), set(options["skip"]))
            yield from gathering.read()
            yield from gathering.runs()
            yield ["stat", gathering.document(options["topics"])]
            return
        except Vanished:
            if attempt == _ROUNDS_MAX - 1:
                raise


class _Gathering:
    def __init__(self, box: Box, skip: set[str]) -> None:
        self.box = box
        self.skip = skip
        self.holdings = Holdings()
        self.damaged_rows = 0
        self.tables = no_tables()
        self.names: list[str] = []
        self.tails: dict[str, Tail] = {}
        self.extents: dict[str, tuple[int, int]] = {}
        self.unreadable: dict[str, str] = dict.fromkeys(skip, "reading it crashed the process")

    def read(self) -> Iterator[Line]:
        """Read the meta environment, the extent of each volume, and the log of unlisted volumes."""
        yield ["at", META, 0]
        with self.box.open(META, growing=True) as env, env.snapshot():
            for stored_key, stored_value in env.rows(b"rows"):
                key, value = unpack_meta_row(stored_key, stored_value)
                self.holdings.rows += 1
                try:
                    self.holdings.apply(key, value)
                except PersistenceError:
                    self.damaged_rows += 1
            self.tables = read_tables(env)
        self.names = self.box.volumes()
        for name in self.names:
            content = self.tables.contents.get(number_of(name))
            if content is not None:
                self.extents[name] = content.first_position, content.last_position
            if name in self.skip:
                continue
            # A listed volume is read only if its log extends past the checkpoint.
            if content is not None and (content.last_position <= self.tables.mark or number_of(name) >= PACKED):
                continue
            yield ["at", name, 0]
            try:
                with self.box.open(name, growing=content is None) as env:
                    self.extents[name] = env.extent()
                    tail = self.tails[name] = Tail(self.tables.mark, everything=content is None)
                    yield from tail.read(env, name)
            except Vanished:
                raise
            except PersistenceError as error:
                self.unreadable[name] = str(error)
        for name in self.names:
            if name in self.tails:
                self.tails[name].apply_to(self.holdings)

    def runs(self) -> Iterator[Line]:
        """Yield the entries in the directory and the ledgers of its rows, if it is one of several."""
        if not self.box.is_member:
            return
        for ledger_id, ledger in self.holdings.ledgers.items():
            yield ["ledger", ledger_id, ledger.entries if ledger.closed and not ledger.replayed else -1]
        for one in self.tables.stretches:
            if one.ledger_id not in self.tables.dropped:
                yield ["run", one.ledger_id, one.first, one.entries, one.bytes]
        for name, tail in self.tails.items():
            if number_of(name) in self.tables.contents or self._state(name) == "left over":
                continue
            for ledger_id, stored in tail.stored.ledgers.items():
                for part in stored:
                    yield ["run", ledger_id, part.first, part.entries, part.bytes]

    def document(self, topics: int) -> dict[str, Any]:
        """Return all statistics, under stable names."""
        box, mark = self.box, self.tables.mark
        volumes = [self._volume(name) for name in self.names]
        totals = self._totals()
        last = max([mark, *(extent[1] for extent in self.extents.values())])
        used = {name: box.disk_used(name) for name in (META, *self.names)}
        return {
            "directory": str(box.path),
            "instance": box.identity.instance,
            "format": box.identity.format,
            "created": box.identity.created,
            "live": box.live,
            "pid": box.pid or None,
            "checkpoint": mark,
            "last_position": last,
            "lag": {"batches": last - mark, "bytes": sum(tail.lag_bytes for tail in self.tails.values())},
            "totals": {
                "topics": len(self.holdings.topics),
                "partitioned_topics": len(self.holdings.partitioned),
                "partitions": sum(self.holdings.partitioned.values()),
                "subscriptions": len(self.holdings.cursors),
                "producers": sum(len(names) for names in self.holdings.producers.values()),
                "ledgers": len(self.holdings.ledgers),
                "open_transactions": self.holdings.transactions.open_transactions(),
                "aborted_entries": self.holdings.transactions.aborted_entries(),
                "sinks": len(self.holdings.transactions.epochs),
                "packages": sum(self.holdings.ledgers[each].closed for each in self.holdings.packages),
                "package_bytes": sum(totals[each][1] for each in self.holdings.packages),
                "rows": self.holdings.rows,
                "damaged_rows": self.damaged_rows,
                "entries": sum(entries for entries, _ in totals.values()),
                "bytes": sum(size for _, size in totals.values()),
            },
            "disk": {
                "used": sum(used.values()),
                "reserved": box.reserved(),
                "meta": used[META],
                "volumes": sum(used.values()) - used[META],
                "free": shutil.disk_usage(box.path).free,
            },
            "volumes": volumes,
            "topics": self._topics(totals, topics),
            "codecs": self._codecs(),
        }

    def _volume(self, name: str) -> dict[str, Any]:
        number = number_of(name)
        first, last = self.extents.get(name, (0, 0))
        content = self.tables.contents.get(number)
        ledgers = {stretch.ledger_id for stretch in self.tables.stretches if stretch.volume == number}
        entries, size = (content.entries, content.bytes) if content is not None else (0, 0)
        if name in self.tails and content is None:
            held = self.tails[name].stored.ledgers
            ledgers = set(held) & set(self.holdings.ledgers)
            entries = sum(stored.entries for ledger in ledgers for stored in held[ledger])
            size = sum(stored.bytes for ledger in ledgers for stored in held[ledger])
        file_size = self.box.file_size(name)
        return {
            "name": name,
            "state": self._state(name),
            "first_position": first,
            "last_position": last,
            "file_size": file_size,
            "disk_used": self.box.disk_used(name),
            "live_entries": entries,
            "live_bytes": size,
            "live_percent": round(100 * size / file_size, 1) if file_size else 0.0,
            "ledgers": len(ledgers),
            "unreadable": self.unreadable.get(name),
        }

    def _state(self, name: str) -> str:
        number = number_of(name)
        if number >= PACKED:
            return "packed" if number in self.tables.contents else "left over"
        if name == self.names[-1]:
            return "current"
        if number in self.tables.contents:
            return "sealed"
        return "left over" if number <= self.tables.sealed else "unsealed"

    def _totals(self) -> dict[int, tuple[int, int]]:
        """Return entries and bytes of each existing ledger."""
        totals = dict.fromkeys(self.holdings.ledgers, (0, 0))

        def count(ledger_id: int, entries: int, size: int) -> None:
            if ledger_id in totals:
                before = totals[ledger_id]
                totals[ledger_id] = before[0] + entries, before[1] + size

        for stretch in self.tables.stretches:
            count(stretch.ledger_id, stretch.entries, stretch.bytes)
        for name, tail in self.tails.items():
            if number_of(name) in self.tables.contents or self._state(name) == "left over":
                continue
            for ledger_id, stored in tail.stored.ledgers.items():
                for part in stored:
                    count(ledger_id, part.entries, part.bytes)
        return totals

    def _compressed(self) -> dict[str, list[dict[str, Any]]]:
        """Return compression statistics by topic, for existing ledgers."""
        tables = self.tables
        given = [(ledger_id, tag, number, usage) for (_, ledger_id, tag, number), usage in tables.compressed.items()]
        names = {tag: name for (tag, _), name in tables.needs.items()}
        found: dict[str, list[dict[str, Any]]] = {}
        for each in topics_of(given, self._topic_of, names, tables.dictionaries):
            document = each.document()
            found.setdefault(document.pop("topic"), []).append(document)
        return found

    def _codecs(self) -> list[dict[str, Any]]:
        """Return the codecs that entries need, and the topics of those entries."""
        topics: dict[bytes, set[str]] = {}
        for (_, ledger_id, tag, _), usage in self.tables.compressed.items():
            topic = self._topic_of(ledger_id)
            if topic and usage.entries:
                topics.setdefault(tag, set()).add(topic)
        names = {tag: name for (tag, _), name in self.tables.needs.items()}
        return [
            {"name": names[tag], "tag": tag.decode("latin-1"), "topics": sorted(topics[tag])}
            for tag in sorted(names)
            if tag in topics
        ]

    def _topic_of(self, ledger_id: int) -> str:
        return self.holdings.topic_of(ledger_id) if ledger_id in self.holdings.ledgers else ""

    def _topics(self, totals: dict[int, tuple[int, int]], limit: int) -> list[dict[str, Any]]:
        sums: dict[int, list[int]] = {topic_id: [0, 0, 0] for topic_id in self.holdings.topics}
        for ledger_id, (entries, size) in totals.items():
            if ledger_id in self.holdings.packages:
                continue
            row = sums.setdefault(self.holdings.ledgers[ledger_id].topic_id, [0, 0, 0])
            row[0] += 1
            row[1] += entries
            row[2] += size
        subscriptions = self.holdings.subscriptions()
        compressed = self._compressed()
        largest = sorted(sums, key=lambda topic_id: (-sums[topic_id][2], self.holdings.name_of(topic_id)))[:limit]
        return [
            {
                "name": self.holdings.name_of(topic_id) or f"(topic {topic_id})",
                "ledgers": sums[topic_id][0],
                "entries": sums[topic_id][1],
                "bytes": sums[topic_id][2],
                "subscriptions": subscriptions.get(topic_id, 0),
                "compressed": compressed.get(self.holdings.name_of(topic_id), []),
            }
            for topic_id in largest
        ]

"""Results of the child processes that examine a box: the meta tables, and each volume."""

from pathlib import Path
from typing import Any

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.entry_index import VolumeRun
from pulsarbox.storage.format import META
from pulsarbox.storage.inspection.box import Box, no_tables
from pulsarbox.storage.inspection.child import ChildEnded, run
from pulsarbox.storage.inspection.findings import Finding, damage
from pulsarbox.storage.inspection.holdings import Holdings
from pulsarbox.storage.inspection.transaction_check import RESTORE, Flagged
from pulsarbox.storage.lmdb.meta_environment import VolumeContent
from pulsarbox.storage.transactions import TxnId


class ExaminedMeta:
    """The meta environment; ``whole`` is False if it could not be read to its end."""

    def __init__(self, path: Path) -> None:
        self.holdings = Holdings()
        self.tables = no_tables()
        self.producers: dict[int, int] = {}
        """Number of producers with stored sequence ids, by topic id."""
        self.findings: list[Finding] = []
        self.whole = True
        try:
            for line in run("meta", path, {}):
                self._take(line)
        except ChildEnded as error:
            self.whole = False
            self.findings.append(
                damage(META, f"{error.reason}: the checkpoint and the tables of volumes cannot be relied on", RESTORE)
            )

    def _take(self, line: list[Any]) -> None:
        kind, *fields = line
        tables = self.tables
        if kind == "row":
            self.holdings.apply(fields[0].encode(), fields[1].encode())
        elif kind == "acks":
            self.holdings.acks.add(fields[0])
        elif kind == "producers":
            self.producers[fields[0]] = fields[1]
        elif kind == "mark":
            self.tables = tables._replace(mark=fields[0], sealed=fields[1])
        elif kind == "stretch":
            tables.stretches.append(VolumeRun(*fields))
        elif kind == "content":
            tables.contents[fields[0]] = VolumeContent(*fields[1:])
        elif kind == "dropped":
            tables.dropped.add(fields[0])
        elif kind == "finding":
            self.findings.append(Finding(*fields))


class ExaminedVolume:
    """A volume; ``whole`` is False if it could not be read to its end, ``vanished`` if it was deleted."""

    def __init__(
        self, box: Box, name: str, *, sealed: bool, mark: int, quick: bool, plugins: Path | None = None
    ) -> None:
        self.name = name
        self.sealed = sealed
        self.first = self.last = self.indexed = self.size = self.entries = self.batches = 0
        self.runs: dict[int, list[tuple[int, int, int]]] = {}
        self.lost: list[tuple[int, int, int]] = []
        self.bad: set[int] = set()
        self.flagged: list[Flagged] = []
        self.replay: list[tuple[int, str, str | None]] = []
        self.findings: list[Finding] = []
        self.whole = True
        self.vanished = False
        options = {"name": name, "sealed": sealed, "mark": mark, "quick": quick, "plugins": str(plugins or "")}
        try:
            for line in run("volume", box.path, options):
                self._take(line)
        except ChildEnded as error:
            self.whole = False
            self.vanished = box.is_gone(name)
            where = error.where or name
            if error.number:
                where += f", batch {error.number} or after it"
            self.findings.append(damage(where, f"{error.reason}: what it holds cannot be relied on", RESTORE))

    def apply_to(self, holdings: Holdings, mark: int) -> list[Finding]:
        """Replay the rows that its log writes after the mark; return the problems found."""
        found: list[Finding] = []
        for position, key, value in self.replay:
            if position <= mark:
                continue
            try:
                holdings.apply(key.encode(), None if value is None else value.encode(), replayed=True)
            except PersistenceError as error:
                found.append(damage(f"{self.name}, batch {position}", str(error), RESTORE))
        return found

    def _take(self, line: list[Any]) -> None:
        kind, *fields = line
        if kind == "run":
            self.runs.setdefault(fields[0], []).append((fields[1], fields[2], fields[3]))
        elif kind == "volume":
            self.first, self.last, self.indexed, self.size, self.entries, self.batches = fields
        elif kind == "replay":
            self.replay.append((fields[0], fields[1], fields[2]))
        elif kind == "finding":
            self.findings.append(Finding(*fields))
        elif kind == "lost":
            self.lost.append((fields[0], fields[1], fields[2]))
        elif kind == "flagged":
            self.flagged.append(Flagged(fields[0], fields[1], fields[2], TxnId(*fields[3:5]), fields[5]))
        elif kind == "bad":
            self.bad.add(fields[0])

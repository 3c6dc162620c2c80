"""Integrity check of a data directory: child processes examine each environment, then the results are cross-checked."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

from pulsarbox.storage.entry_index import VolumeRun
from pulsarbox.storage.format import LOCK, META, PACKED
from pulsarbox.storage.inspection.box import Box, name_of, number_of
from pulsarbox.storage.inspection.examined import ExaminedMeta, ExaminedVolume
from pulsarbox.storage.inspection.findings import DAMAGE, Finding, damage, warning
from pulsarbox.storage.inspection.transaction_check import RESTORE
from pulsarbox.storage.inspection.transaction_check import findings as transaction_findings
from pulsarbox.storage.lmdb.meta_environment import VolumeContent

CHILDREN: Final = 2
_ROUNDS_MAX = 5
_OFTEN = 20
"""Maximum number of findings of one kind listed individually."""

Progress = Callable[[str, int, int], None]
"""Gets the name of the environment that is examined, or is done, the bytes of those done, and of all."""


class CheckReport(NamedTuple):
    """The result of a check."""

    box: Box
    findings: list[Finding]
    environments: int
    batches: int
    entries: int
    ledgers: int

    @property
    def damaged(self) -> bool:
        """Whether data is lost."""
        return any(finding.severity == DAMAGE for finding in self.findings)

    def document(self) -> dict[str, Any]:
        """Return the report as JSON."""
        severities = [finding.severity for finding in self.findings]
        return {
            "directory": str(self.box.path),
            "instance": self.box.identity.instance,
            "live": self.box.live,
            "findings": [finding.document() for finding in self.findings],
            "summary": {
                "damage": severities.count(DAMAGE),
                "warnings": len(severities) - severities.count(DAMAGE),
                "environments": self.environments,
                "batches": self.batches,
                "entries": self.entries,
                "ledgers": self.ledgers,
            },
        }


def check(
    path: Path, *, quick: bool = False, progress: Progress = lambda name, done, total: None, plugins: Path | None = None
) -> CheckReport:
    """Check a box. ``quick`` skips the bodies of entries; ``plugins`` is a directory with codecs.

    Raises PersistenceError if it cannot be opened.
    """
    box = Box(path)
    volumes: dict[tuple[str, bool], ExaminedVolume] = {}
    again = _ROUNDS_MAX
    while True:
        progress(META, 0, 0)
        meta = ExaminedMeta(path)
        mark = meta.tables.mark
        wanted = _wanted(box, meta)
        missing = [one for one in wanted if one not in volumes]
        work = _Work(box, [name for name, _ in missing], progress)

        def examine(one: tuple[str, bool], mark: int = mark, work: _Work = work) -> ExaminedVolume:
            found = ExaminedVolume(box, one[0], sealed=one[1], mark=mark, quick=quick, plugins=plugins)
            work.finish(one[0])
            return found

        with ThreadPoolExecutor(CHILDREN) as pool:
            volumes.update(zip(missing, pool.map(examine, missing), strict=True))
        # The daemon packs and removes volumes concurrently: retry then.
        again -= 1
        gone = [one for one in wanted if volumes[one].vanished]
        if not (box.live and gone and again):
            break
        for one in gone:
            del volumes[one]
    examined = [volumes[one] for one in wanted]
    findings = _Judgement(box, meta, examined).findings
    held = sum(volume.entries for volume in examined), sum(volume.batches for volume in examined)
    return CheckReport(box, findings, 1 + len(examined), held[1], held[0], len(meta.holdings.ledgers))


def _wanted(box: Box, meta: ExaminedMeta) -> list[tuple[str, bool]]:
    """Return the volumes to examine, and whether each is known to be immutable."""
    names = box.volumes()
    return [(name, number_of(name) >= PACKED or number_of(name) in meta.tables.contents) for name in names]


class _Work:
    """Sizes of volumes to examine, and the progress of their examination in several threads."""

    def __init__(self, box: Box, names: list[str], progress: Progress) -> None:
        self._sizes = {name: box.disk_size(name) for name in names}
        self._total = sum(self._sizes.values())
        self._done = 0
        self._progress = progress
        self._lock = Lock()
        if names:
            progress(names[0], 0, self._total)

    def finish(self, name: str) -> None:
        with self._lock:
            self._done += self._sizes[name]
            self._progress(name, self._done, self._total)


class _Judgement:
    def __init__(self, box: Box, meta: ExaminedMeta, volumes: list[ExaminedVolume]) -> None:
        self.box = box
        self.meta = meta
        self.tables = meta.tables
        self.volumes = {number_of(volume.name): volume for volume in volumes}
        self.findings: list[Finding] = list(meta.findings)
        for volume in volumes:
            if not (self._is_unknown(volume) and box.is_emptied(volume.name)):
                self.findings += volume.findings
        self.journal = [self.volumes[number] for number in sorted(self.volumes) if number < PACKED]
        self.checkpointed = set(meta.holdings.ledgers)
        if meta.whole:
            for volume in self.journal:
                self.findings += volume.apply_to(meta.holdings, self.tables.mark)
            self._contents()
            self._stretches()
            self._ledgers()
            self._cursors()
            self._producers()
            self._transactions()
        self._log()
        self._strangers()
        self._liveness()
        holdings = meta.holdings
        self.findings = [one._replace(topic=holdings.topic_of(one.ledger)) for one in self.findings]

    def _log(self) -> None:
        """Check that positions are consecutive from the mark on."""
        mark = self.tables.mark
        expected = 0
        filled = [volume for volume in self.journal if volume.last]
        for volume in filled:
            if self.box.is_member and volume.first >= expected:
                pass  # other directories have the batches between them
            elif expected and volume.first != expected and volume.first > mark + 1:
                what = f"its log begins at batch {volume.first}, but the previous volume ends at {expected - 1}"
                self.findings.append(damage(volume.name, f"{what}: batches are missing", RESTORE))
            elif expected and volume.first < expected:
                what = f"its log begins at batch {volume.first}, which is also in the previous volume"
                self.findings.append(damage(volume.name, what, RESTORE))
            elif not expected and volume.first > mark + 1 and self.meta.whole:
                what = f"the log begins at batch {volume.first}, but the checkpoint ends at {mark}"
                self.findings.append(damage(volume.name, f"{what}: batches are missing", RESTORE))
            expected = volume.last + 1
        may_end_earlier = self.box.is_member or any(not volume.whole for volume in self.journal)
        if not may_end_earlier and expected <= mark and self.journal and filled[-1:] == self.journal[-1:]:
            what = (
                f"the log ends at batch {expected - 1}, but the checkpoint covers {mark}: the end of the log is missing"
            )
            self.findings.append(damage(self.journal[-1].name, what, RESTORE))
        if not self.journal and mark and not self.box.is_member:
            self.findings.append(damage("volumes", f"no log, but the checkpoint covers batch {mark}", RESTORE))

    def _contents(self) -> None:
        """Check the table of contents against the volumes."""
        sums: dict[int, list[int]] = {}
        for stretch in self.tables.stretches:
            total = sums.setdefault(stretch.volume, [0, 0])
            total[0] += stretch.entries
            total[1] += stretch.bytes
        for number, content in self.tables.contents.items():
            name = name_of(number)
            entries, size = sums.pop(number, [0, 0])
            if (entries, size) != (content.entries, content.bytes):
                what = (
                    f"table contents lists {content.entries} live entries ({content.bytes} bytes), table volumes"
                    f" {entries} ({size} bytes): disk space is reclaimed too early or too late"
                )
                self.findings.append(damage(f"meta, contents of {name}", what, RESTORE))
            self._content(number, content)
        for number, (entries, _) in sums.items():
            what = f"table volumes lists {entries} entries in it, but it is not in table contents"
            self.findings.append(damage(f"meta, contents of {name_of(number)}", what, RESTORE))
        for volume in self.volumes.values():
            if self._is_unknown(volume) and not self.box.is_gone(volume.name):
                what = "the tables of meta do not list it: it is left over from packing and never read"
                self.findings.append(warning(volume.name, what, "nothing; the box removes it at its next start"))

    def _is_unknown(self, volume: ExaminedVolume) -> bool:
        """Return whether a volume is not listed in the tables of meta: it was being removed, or never finished."""
        number = number_of(volume.name)
        known = number in self.tables.contents or (self.tables.sealed < number < PACKED)
        return self.meta.whole and not known

    def _content(self, number: int, content: VolumeContent) -> None:
        volume = self.volumes.get(number)
        if volume is None:
            if content.entries:
                what = f"the directory is missing: {content.entries} entries of {content.bytes} bytes are lost"
                self.findings.append(damage(name_of(number), what, RESTORE))
            else:
                what = "table contents lists it, but it does not exist; it had no live entries"
                self.findings.append(warning(name_of(number), what, "nothing"))
        elif volume.whole and (volume.first, volume.last) != (content.first_position, content.last_position):
            said = f"but table contents lists {content.first_position} to {content.last_position}"
            what = f"its log has batches {volume.first} to {volume.last}, {said}"
            self.findings.append(damage(volume.name, what, RESTORE))

    def _stretches(self) -> None:
        """Check that each stretch is in its volume, and complete."""
        for stretch in self.tables.stretches:
            volume = self.volumes.get(stretch.volume)
            if volume is None or not volume.whole:
                known = stretch.volume in self.tables.contents
                if volume is None and not known:
                    what = f"entries from {stretch.ledger_id}:{stretch.first} on should be in it, but it does not exist"
                    self._one(name_of(stretch.volume), what, stretch)
                continue
            runs = volume.runs.get(stretch.ledger_id, [])
            found = [run for run in runs if run[0] == stretch.first]
            if not volume.bad and not _holds(runs, stretch, exact=not self.box.is_member):
                there = ", ".join(f"{run[1]} from {run[0]} on ({run[2]} bytes)" for run in found) or "none of them"
                what = (
                    f"table volumes lists {stretch.entries} entries of ledger {stretch.ledger_id} from"
                    f" {stretch.first} on ({stretch.bytes} bytes), but it holds {there}"
                )
                self._one(volume.name, what, stretch)

    def _one(self, where: str, what: str, stretch: VolumeRun) -> None:
        self.findings.append(damage(where, what, RESTORE, stretch.ledger_id, stretch.first))

    def _ledgers(self) -> None:
        """Check that the entries of each ledger are stored, from 0 on."""
        holdings = self.meta.holdings
        unread = any(not volume.whole for volume in self.volumes.values() if not volume.sealed)
        held = self._held()
        for ledger_id, ledger in holdings.ledgers.items():
            end = 0
            gap = False
            for first, after in sorted(held.get(ledger_id, [])):
                if first > end:
                    gap = True
                    self._gap(ledger_id, end, first - 1)
                end = max(end, after)
            wanted = 0 if ledger.replayed else ledger.entries
            if end < wanted and not unread:
                self._gap(ledger_id, end, wanted - 1)
            elif end > wanted and ledger.closed and not ledger.replayed and not gap and ledger.entries:
                what = f"its row lists {wanted} entries, but {end} are stored"
                self.findings.append(
                    warning(f"ledger {ledger_id}", what, "nothing; the others are not read")._replace(ledger=ledger_id)
                )
            if not holdings.name_of(ledger.topic_id) and ledger_id not in holdings.packages:
                what = f"it belongs to topic {ledger.topic_id}, which does not exist: it cannot be read"
                self.findings.append(warning(f"ledger {ledger_id}", what, "nothing; it only uses disk space"))
        # Ledgers that the log deletes after the checkpoint are reclaimed with the next one.
        nobodys = {stretch.ledger_id for stretch in self.tables.stretches if stretch.ledger_id not in self.checkpointed}
        nobodys -= self.tables.dropped
        for ledger_id in sorted(nobodys)[:_OFTEN]:
            what = "table volumes lists it, but it has no row"
            self.findings.append(warning(f"ledger {ledger_id}", what, "nothing; it only uses disk space"))

    def _gap(self, ledger_id: int, first: int, last: int) -> None:
        if self.box.is_member:
            return  # the auditor of the running box compares the directories
        where = f"ledger {ledger_id}, entries {first} to {last}"
        what = "they are in no volume: consumers stop there or skip them"
        self.findings.append(damage(where, what, RESTORE, ledger_id, first))

    def _held(self) -> dict[int, list[tuple[int, int]]]:
        """Return the entries by ledger, as first and end (exclusive). Entries of a reported damage count as present."""
        held: dict[int, list[tuple[int, int]]] = {}

        def hold(ledger_id: int, first: int, entries: int) -> None:
            held.setdefault(ledger_id, []).append((first, first + entries))

        speak = {stretch.volume for stretch in self.tables.stretches}
        for stretch in self.tables.stretches:
            # Damage of a stretch is already reported: its volume is missing, unreadable, or incomplete.
            hold(stretch.ledger_id, stretch.first, stretch.entries)
        for number, volume in self.volumes.items():
            if (number in self.tables.contents or number >= PACKED) and number in speak:
                continue
            if number <= self.tables.sealed:
                continue
            for ledger_id, runs in volume.runs.items():
                for first, entries, _ in runs:
                    hold(ledger_id, first, entries)
            for ledger_id, first, entries in volume.lost:
                hold(ledger_id, first, entries)
        return held

    def _cursors(self) -> None:
        holdings = self.meta.holdings
        for cursor_id, (topic_id, name) in holdings.cursors.items():
            if not holdings.name_of(topic_id):
                what = f"subscription {name} belongs to topic {topic_id}, which does not exist"
                self.findings.append(warning(f"cursor {cursor_id}", what, "nothing; it is never used"))
        for cursor_id in sorted(holdings.acks - set(holdings.cursors))[:_OFTEN]:
            if not any(volume.replay for volume in self.journal):  # the log may delete the cursor
                what = "it has acknowledgements, but no row"
                self.findings.append(warning(f"cursor {cursor_id}", what, "nothing; they are never used"))

    def _producers(self) -> None:
        for topic_id, number in self.meta.producers.items():
            # The log may delete the topic, and the next checkpoint its producers.
            if not self.meta.holdings.name_of(topic_id) and not any(volume.replay for volume in self.journal):
                what = f"it has sequence IDs of {number} producers, but does not exist"
                self.findings.append(warning(f"topic {topic_id}", what, "nothing; they are never used"))

    def _transactions(self) -> None:
        holdings = self.meta.holdings
        ends = {
            each: ledger.entries for each, ledger in holdings.ledgers.items() if ledger.closed and not ledger.replayed
        }
        flagged = [each for volume in self.volumes.values() if not self._is_unknown(volume) for each in volume.flagged]
        self.findings += transaction_findings(holdings, flagged, {each: end for each, end in ends.items() if end})

    def _strangers(self) -> None:
        for name, unfinished in self.box.strangers():
            if unfinished and self.box.live:
                continue  # under construction
            what = "it is incomplete" if unfinished else "it is not part of a data directory and is never read"
            advice = "nothing; the box removes it at its next start" if unfinished else "move it elsewhere"
            self.findings.append(warning(name, what, advice))
        for folder in _missing([META, "volumes"], self.box.path):
            if folder != META or self.meta.whole:
                self.findings.append(damage(folder, "the directory is missing", RESTORE))

    def _liveness(self) -> None:
        now = Box(self.box.path)
        if now.live and not self.box.live:
            what = "a box was started on the data directory during the check: the findings may be wrong"
            self.findings.append(warning(LOCK, what, "check again"))
        if self.box.live and not self.box.can_lock(META):
            what = "a running box was read without LMDB's lock, which this user cannot write: findings may be wrong"
            self.findings.append(warning(LOCK, what, "if damage is reported, check again as the box's user"))


def _holds(runs: list[tuple[int, int, int]], stretch: VolumeRun, *, exact: bool) -> bool:
    """Return whether a volume holds a stretch; the bytes of one that was cut are an estimate."""
    for first, entries, size in runs:
        if first == stretch.first and entries == stretch.entries:
            return size == stretch.bytes or not exact
        if first <= stretch.first and stretch.end <= first + entries:
            return True  # part of a longer run, so its bytes are unknown
    return False


def _missing(names: Iterable[str], path: Path) -> list[str]:
    return [name for name in names if not (path / name).is_dir()]

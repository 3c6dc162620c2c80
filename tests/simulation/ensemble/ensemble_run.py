"""The history of one seed: an ensemble of directories that fail, and the model that it is compared with."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

from pulsarbox.errors import PersistenceError, StoreFull, TooFewCopies
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.catalog import IDS, ledger_key
from pulsarbox.storage.engine import Checkpoint, ReadRequest
from pulsarbox.storage.ensemble.engine import EnsembleEngine, EnsembleLimits
from pulsarbox.storage.ensemble.keeping.maintenance import MaintenanceRates
from pulsarbox.storage.ensemble.keeping.memory_directories import MemoryDirectories
from pulsarbox.storage.ensemble.member import Member, MemberState
from pulsarbox.storage.ensemble.memory_member import MemberDisk
from pulsarbox.storage.ensemble.status import Fragment
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Entry, Meta, pack_entry, pack_meta
from tests.simulation.disk import PowerCut
from tests.simulation.ensemble.directories import Directory
from tests.simulation.ensemble.lmdb_directory import LmdbDirectory
from tests.simulation.ensemble.pledges import Mark, Pledge, Pledges, Quorums, Void
from tests.simulation.ensemble.replica import Replica
from tests.simulation.model.history import Violation
from tests.simulation.world import World

DEFAULT_STEPS = 400
LIVE_LEDGERS = 5
POLICIES = (Quorums(1, 1, 1), Quorums(2, 2, 1), Quorums(2, 2, 2), Quorums(3, 2, 2), Quorums(3, 3, 2), Quorums(3, 3, 3))
MAINTENANCE_MAX = 3000
STEP_SECONDS = 0.1
"""Time of a step of maintenance: short beside the period of audits, so that steps of lower priority have their turn."""
RATES = MaintenanceRates(repair_bytes_per_second=0, scrub_bytes_per_second=0, scrub_days=0.0001, audit_seconds=5.0)
TWO_AUDITS = 12_000
"""Milliseconds after which an audit has compared all entries, also of ledgers being written, of which it needs two."""
READABLE = (MemberState.ACTIVE, MemberState.FULL, MemberState.LEAVING)
MAGIC = b"\x0e\x01"


class Ledger:
    """A ledger that grows."""

    def __init__(self, ledger_id: int, quorums: Quorums) -> None:
        self.ledger_id = ledger_id
        self.quorums = quorums
        self.closed = False


class EnsembleRun:
    """The history of one seed."""

    def __init__(self, seed: int, folder: Path | None = None, *, replicas: bool = False) -> None:
        """The directories are LMDB directories in ``folder``, or in memory if it is omitted.

        With ``replicas``, the last of three or more is on another machine, in memory.
        """
        self.world = World(seed)
        self.random = random = self.world.random
        self.model = Pledges()
        self.counts: Counter[str] = Counter()
        count = random.choice((2, 3, 3, 3, 4, 5))
        devices = random.choice((count, count, 2))
        self.directories: dict[str, Directory] = {}
        for number in range(count):
            name, device = f"/disk-{number + 1}", number % devices + 1
            if replicas and number == count - 1 > 1:
                self.directories[name] = Replica(self.world, name, device)
            elif folder is None:
                self.directories[name] = Directory(self.world, name, device)
            else:
                self.directories[name] = LmdbDirectory(self.world, name, device, folder)
        self._faults = [each for each in FAULTS if folder is None or each is not EnsembleRun._lies]
        self._acts, self._weights = ACTS, WEIGHTS
        if replicas:
            self._faults += REPLICA_FAULTS
            self._acts = [*ACTS, EnsembleRun._deliver, EnsembleRun._drop]
            self._weights = [*WEIGHTS, WEIGHTS[-1] + 3, WEIGHTS[-1] + 6]
        disks = {name: each.disk for name, each in self.directories.items()}
        self._paths = MemoryDirectories(disks, self._opened_again)
        self._members: dict[str, Member] = {}
        self.policies = [policy for policy in POLICIES if policy.write <= count]
        if random.random() < 0.7:  # without a part that a single disk may lose, the rules are strictest
            self.policies = [policy for policy in self.policies if policy.ack > 1] or self.policies
        self.ledgers: dict[int, Ledger] = {}
        self.engine: EnsembleEngine
        self._next_ledger = 1
        self._nonce = 0
        self._running = False
        self._calm = False
        self._dropped: list[int] = []
        self._noted: dict[bytes, bytes | None] = {}
        self._severe = random.random() < 0.2
        """Whether faults may hit as many directories as the ack quorum."""
        self._most_away = max(0, min(policy.ack for policy in self.policies) - 1)

    # The run

    def run(self, steps: int = DEFAULT_STEPS) -> None:
        """Run the history. Raises Violation."""
        try:
            self._start()
            for _ in range(steps):
                self._step()
            self._settle()
        except Void as end:
            self.world.note("void:", end)
            self.counts["void"] += 1

    def close(self) -> None:
        """Close the directories."""
        self.engine.close()

    def _step(self) -> None:
        self.world.events += 1
        self.world.monotonic += self.random.choice((0.001, 0.01, 0.1, 1.0))
        act = self.random.choices(self._acts, cum_weights=self._weights)[0]
        try:
            act(self)
        except PowerCut:
            self._crash()

    def _settle(self) -> None:
        """End all faults, and check that the copies become complete."""
        self._calm = True
        self._mend_all()
        self._crash()
        self._make_whole()
        self._read_all()

    # Operations

    def _commit(self) -> None:
        batch, entries = self._batch()
        pledge = self.model.begin(batch, entries)
        self.counts["commits"] += 1
        self.engine.copied = lambda _, copies: self._copied(pledge, batch, copies)
        try:
            self.engine.commit(batch)
        except TooFewCopies as error:
            self.counts["too few copies"] += 1
            self._confirm(pledge, min(error.copies, batch.ack_quorum))
        except (StoreFull, PersistenceError) as error:
            self.counts["refused"] += 1
            self.world.note("refused", batch.position, error)
            self.model.refused(pledge)
        else:
            self._confirm(pledge, batch.ack_quorum)

    def _copied(self, pledge: Pledge, batch: Batch, copies: int) -> None:
        if copies >= batch.ack_quorum_min:
            self._confirm(pledge, copies)

    def _confirm(self, pledge: Pledge, ack: int) -> None:
        holders = [name for name, directory in self.directories.items() if directory.holds(pledge)]
        self.world.note("confirmed", pledge.position, "for", ack, *holders)
        self.model.confirm(pledge, ack, holders)
        self.counts["confirmed"] += 1
        self._check_generations()

    def _check_generations(self) -> None:
        """A directory that left must know an older generation than those that remain, before anything is confirmed."""
        states = {slot.name: slot.state for slot in self.engine.table.slots}
        if {*states.values()} == {MemberState.ACTIVE}:
            return
        known = {name: each.disk.membership for name, each in self.directories.items()}
        active = [slot for slot in self.engine.table.slots if slot.state == MemberState.ACTIVE]
        used = {
            membership.epoch
            for slot in active
            if (membership := known[slot.name]) is not None and slot.member.is_there()  # an old one is another one
        }
        for name, membership in known.items():
            gone = states.get(name) in ("lost", "late", "fenced")
            if gone and membership is not None and membership.epoch in used:
                text = f"{name} is {states.get(name)}, and still knows generation {membership.generation}"
                raise Violation("generation", text)

    def _batch(self) -> tuple[Batch, list[Entry]]:
        random = self.random
        self._nonce += 1
        batch = Batch(self.model.last + 1)
        batch.wall = 1_700_000_000_000 + self._nonce
        entries: list[Entry] = []
        while len(self.ledgers) < LIVE_LEDGERS:
            ledger = Ledger(self._next_ledger, random.choice(self.policies))
            self.ledgers[ledger.ledger_id] = ledger
            self.model.acks[ledger.ledger_id] = ledger.quorums.ack
            self._next_ledger += 1
        for ledger in random.sample([*self.ledgers.values()], random.randrange(3)):
            if not ledger.closed:
                entries += self._append(batch, ledger)
                batch.ask(*ledger.quorums)
        if not entries:
            batch.ask(*self.policies[-1])
        batch.add(pack_meta(Meta(b"row/%d" % random.randrange(20), b"%d" % self._nonce)))
        return batch, entries

    def _append(self, batch: Batch, ledger: Ledger) -> list[Entry]:
        stored = self.model.ledgers.get(ledger.ledger_id, ())
        first = stored[-1][1].entry_id + 1 if stored else 0
        entries = []
        for entry_id in range(first, first + self.random.randrange(1, 4)):
            text = b"%d:%d %d " % (ledger.ledger_id, entry_id, self._nonce)
            body = text.ljust(self.random.choice((20, 60, 300)), b".")
            entry = entry_of(ledger.ledger_id, entry_id, body)
            batch.add_entry(entry.ledger_id, entry.entry_id, pack_entry(entry), entry.body)
            entries.append(entry)
        return entries

    def _checkpoint(self) -> None:
        model, position = self.model, self.model.last
        if position == model.checkpoints[-1].position or not self._running:
            return  # the broker makes one with a batch, so the rows of a position are always the same
        self._close_and_drop(position)
        rows: dict[bytes, bytes | None] = self._ledger_rows()
        for _ in range(self.random.randrange(4)):
            value = None if self.random.random() < 0.2 else b"%d" % self._nonce
            rows[b"row/%d/" % self.random.randrange(30)] = value
        after = {key: value for key, value in {**model.checkpoints[-1].rows, **rows}.items() if value is not None}
        model.checkpoints.append(Mark(position, after))
        dropped = tuple(self._dropped)
        try:
            self.engine.checkpoint(Checkpoint(position, {**self._noted, **rows}, dropped))
        except PersistenceError as error:
            self.world.note("no checkpoint", error)
            self._noted.update(rows)
            return
        self._noted.clear()
        del model.checkpoints[:-1]
        self._dropped = self._dropped[len(dropped) :]
        model.drop(dropped)
        model.forget_before(position)
        self.counts["checkpoints"] += 1

    def _close_and_drop(self, position: int) -> None:
        for ledger in [*self.ledgers.values()]:
            stored = self.model.ledgers.get(ledger.ledger_id, [])
            if ledger.closed and self.random.random() < 0.2:
                del self.ledgers[ledger.ledger_id]
                self._dropped.append(ledger.ledger_id)
            elif len(stored) > 10:
                ledger.closed = True

    def _ledger_rows(self) -> dict[bytes, bytes | None]:
        rows: dict[bytes, bytes | None] = {ledger_key(1, ledger_id).encode(): None for ledger_id in self._dropped}
        for ledger_id, ledger in self.ledgers.items():
            count = len(self.model.ledgers.get(ledger_id, ()))
            rows[ledger_key(1, ledger_id).encode()] = json.dumps(
                {"entries": count if ledger.closed else None, "write": ledger.quorums.write}
            ).encode()
        return rows | {IDS.encode(): json.dumps({"next": self._next_ledger}).encode()}

    def _reclaim(self) -> None:
        try:
            self.engine.reclaim()
        except PersistenceError as error:
            self.world.note("nothing reclaimed", error)

    def _read(self) -> None:
        ledger_id = self.random.choice([*self.model.ledgers, 0])
        stored = self.model.ledgers.get(ledger_id)
        if stored:
            first = self.random.choice(stored)[1].entry_id
            self._read_from(ledger_id, first, stored[-1][1].entry_id)

    def _read_from(self, ledger_id: int, first: int, last: int) -> int:
        """Read, compare, and return the next entry."""
        self.counts["reads"] += 1
        try:
            entries = self.engine.read(ReadRequest(1, ledger_id, first, last, 1000))
        except PersistenceError as error:
            self.counts["failed reads"] += 1
            if not self._is_excused(ledger_id, first):
                self.model.unreadable(ledger_id, first, str(error))
            return first + 1
        if not entries:
            raise Violation("order", f"a read of {ledger_id}:{first} returns nothing")
        self.model.read(ledger_id, first, entries)
        return first + len(entries)

    def _is_excused(self, ledger_id: int, entry_id: int) -> bool:
        """Return whether each directory with an undamaged copy is away at present."""
        entry = next(entry for _, entry in self.model.ledgers[ledger_id] if entry.entry_id == entry_id)
        states = {each.name: each.state for each in self.engine.status().members}
        readable = [name for name, member in self._members.items() if states[name] in READABLE and member.is_there()]
        return not any(self.directories[name].reads(entry) for name in readable)

    def _read_all(self) -> None:
        for ledger_id, stored in self.model.ledgers.items():
            at, end = (stored[0][1].entry_id, stored[-1][1].entry_id) if stored else (0, -1)
            while at <= end:
                at = self._read_from(ledger_id, at, end)

    def _maintain(self) -> None:
        for _ in range(self.random.choice((1, 5, 30))):
            if not self._maintain_once():
                break

    def _maintain_once(self) -> bool:
        try:
            done = self.engine.maintain(self.world.now)
        except PersistenceError as error:
            self.world.note("no maintenance", error)
            return True
        if done is not None:
            self.counts[done.what] += 1
        return done is not None

    # Faults

    def _break(self) -> None:
        """Break a directory in one way."""
        directory = self.random.choice([*self.directories.values()])
        away = self.model.away | {each.name for each in self.directories.values() if not each.is_well}
        if not self._severe and directory.name not in away and len(away) >= self._most_away:
            return
        fault = self.random.choice(self._faults)
        if fault in REPLICA_FAULTS and not isinstance(directory, Replica):
            return
        self.world.note("fault:", directory.name, fault.__name__)
        self.counts[fault.__name__.strip("_")] += 1
        self.model.away.add(directory.name)
        fault(self, directory)

    def _fails(self, directory: Directory) -> None:
        directory.failing = self.random.choice((0.1, 1.0))

    def _fills(self, directory: Directory) -> None:
        directory.full = True

    def _lags(self, directory: Directory) -> None:
        directory.late = True

    def _lies(self, directory: Directory) -> None:
        directory.lying = True

    def _vanishes(self, directory: Directory) -> None:
        directory.disk.present = False

    def _is_wiped(self, directory: Directory) -> None:
        self._destroy(directory)
        directory.wipe()

    def _returns_old(self, directory: Directory) -> None:
        if directory.has_old:
            self._destroy(directory)
            directory.go_back()

    def _is_damaged(self, directory: Directory) -> None:
        stored = self.model.ledgers.get(self.random.choice([*self.model.ledgers, 0]))
        if not stored:
            return
        position, entry = self.random.choice(stored)
        if directory.damage(entry):
            self.model.destroy(directory.name, [position])

    def _disconnects(self, directory: Directory) -> None:
        assert isinstance(directory, Replica)
        directory.disconnect()

    def _restarts(self, directory: Directory) -> None:
        assert isinstance(directory, Replica)
        directory.restart()

    def _loses_answers(self, directory: Directory) -> None:
        assert isinstance(directory, Replica)
        directory.loses_answers = self.random.choice((0.1, 1.0))

    def _drop(self) -> None:
        """End the connection to a replica, which destroys nothing."""
        for directory in self.directories.values():
            if isinstance(directory, Replica):
                self.counts["dropped"] += 1
                directory.disconnect()

    def _deliver(self) -> None:
        for directory in self.directories.values():
            if isinstance(directory, Replica):
                directory.deliver()

    def _destroy(self, directory: Directory) -> None:
        """Note that all of a directory is destroyed, also what only the rows of its checkpoint have."""
        mark = self.model.checkpoints[-1].position
        pledges = self.model.by_position.values()
        self.model.destroy(
            directory.name, [each.position for each in pledges if each.position <= mark or directory.holds(each)]
        )

    def _remember(self) -> None:
        self.random.choice([*self.directories.values()]).remember()

    def _mend(self) -> None:
        directory = self.random.choice([*self.directories.values()])
        directory.mend()

    def _mend_all(self) -> None:
        for directory in self.directories.values():
            directory.mend()

    def _cut_soon(self) -> None:
        """Let the power go in one of the next writes of a directory."""
        directory = self.random.choice([*self.directories.values()])
        directory.steps_left = self.random.randrange(1, 8)

    # Crashes and starts

    def _crash(self) -> None:
        self.world.note("crash")
        self._running = False
        for directory in self.directories.values():
            lost = directory.lose_power()
            if lost:
                self.model.destroy(directory.name, lost)
        self.engine.close()
        self._start()

    def _start(self, accept: tuple[str, ...] = ()) -> None:
        self.counts["starts"] += 1
        while True:
            try:
                self._recover(accept)
            except PowerCut:
                for directory in self.directories.values():
                    self.model.destroy(directory.name, directory.lose_power())
            except PersistenceError as error:
                accept = self._refused(error)
            else:
                return

    def _recover(self, accept: tuple[str, ...]) -> None:
        self.engine = self._open(accept)
        recovery = self.engine.recover()
        values = list(recovery.batches)
        rows = {key: value for key, value in recovery.rows.items(b"") if not key.startswith(OWN_ROWS)}
        last = recovery.next_position - 1
        self.world.note(
            "started", last, len(values), *accept, *[f"{m.name}:{m.state}" for m in self.engine.status().members]
        )
        absent = {each.name for each in self.directories.values() if not each.disk.present or each.failing}
        self.model.started(last, last - len(values), values, rows, absent)
        self._running = True
        self._restore(rows)

    def _restore(self, rows: dict[bytes, bytes]) -> None:
        """Continue with the state of the recovered checkpoint, as the broker does after its start."""
        model = self.model
        self._noted.clear()
        self._dropped = [each for each in model.ledgers if each not in self.ledgers]

    def _refused(self, error: PersistenceError) -> tuple[str, ...]:
        """Check that a start may be refused, and change what it needs."""
        self.world.note("refused to start:", error)
        self.counts["refused starts"] += 1
        unwell = [each.name for each in self.directories.values() if not each.is_well]
        hit = self.model.away | set(unwell)
        local = [each for each in self.directories.values() if not isinstance(each, Replica)]
        if len(hit) < self.model.ack_min and any(each.is_well for each in local):
            text = f"the start is refused, but only {sorted(hit)} are hit: {error}"
            raise Violation("starts", text)
        if unwell:
            self._mend_all()
            return ()
        raise Void(str(error))

    def _open(self, accept: tuple[str, ...]) -> EnsembleEngine:
        self._members = {name: directory.member() for name, directory in self.directories.items()}
        clock = self.world
        engine = EnsembleEngine(
            [*self._members.values()],
            directories=self._paths,
            rates=RATES,
            limits=EnsembleLimits(segment_bytes=2000),
            accept_loss_of=accept,
            monotonic=lambda: clock.monotonic,
            wall=lambda: clock.now.wall,
            new_id=lambda: f"{self.random.getrandbits(64):016x}",
        )
        assert engine.keeper is not None
        engine.keeper.wanted = lambda _: self._copies_of
        return engine

    def _copies_of(self, ledger_id: int) -> int:
        ledger = self.ledgers.get(ledger_id)
        return 1 if ledger is None else ledger.quorums.write

    def _opened_again(self, disk: MemberDisk) -> Member:
        """Return a member for a directory that returns during a life."""
        self._members[disk.name] = self.directories[disk.name].member()
        return self._members[disk.name]

    # Completeness

    def _make_whole(self) -> None:
        """Let the ensemble complete its copies, and compare all directories with the model."""
        self._checkpoint()
        since = self.world.now.wall + TWO_AUDITS
        for step in range(MAINTENANCE_MAX):
            if step == 100:
                self._replace_unusable()
            self.world.monotonic += STEP_SECONDS
            self._maintain_once()
            if self._is_complete(since):
                break
        else:
            raise Violation("repaired", f"maintenance does not come to an end: {self.engine.status()}")
        self._compare_copies()
        self.model.whole()

    def _replace_unusable(self) -> None:
        """Empty and replace the directories that the ensemble does not use by itself, as an operator does."""
        for member in self.engine.status().members:
            if member.state == MemberState.LOST:
                self._destroy(self.directories[member.name])
                self.directories[member.name].wipe()
                self.engine.replace(member.name, member.name, force=True)
                self.counts["replaced"] += 1

    def _is_complete(self, since: int) -> bool:
        """Return whether all members are active, were scrubbed since then, and have all copies."""
        status = self.engine.status()
        scrubbed = all(member.state == "active" and member.scrub.finished > since for member in status.members)
        return scrubbed and status.audited > since and not any(map(self._can_be_copied, status.under_replicated))

    def _can_be_copied(self, fragment: Fragment) -> bool:
        """Return whether an undamaged copy is left of an entry."""
        stored = self.model.ledgers.get(fragment.ledger_id, ())
        entries = [entry for _, entry in stored if fragment.first <= entry.entry_id < fragment.end]
        return any(each.reads(entry) for each in self.directories.values() for entry in entries)

    def _compare_copies(self) -> None:
        """Check that each entry has its copies, and that all copies are good."""
        covered = self.model.checkpoints[-1].position
        for ledger_id, ledger in self.ledgers.items():
            for position, entry in self.model.ledgers.get(ledger_id, ()):
                having = [each for each in self.directories.values() if each.has(entry)]
                good = [each.name for each in having if each.reads(entry)]
                pledge = self.model.by_position.get(position)
                if len(good) < min(ledger.quorums.write, len(self.directories)) and position <= covered:
                    if pledge is not None and pledge.entries_survive(ledger.quorums.ack):
                        there = f"{good} of {[each.name for each in having]}"
                        text = f"entry {ledger_id}:{entry.entry_id} has {there}, not {ledger.quorums.write} copies"
                        raise Violation("repaired", text)


OWN_ROWS = b"ensemble/"
"""Prefix of the rows that the ensemble adds to a checkpoint."""

FAULTS = (
    EnsembleRun._fails, EnsembleRun._fills, EnsembleRun._lags, EnsembleRun._lies, EnsembleRun._vanishes,
    EnsembleRun._is_wiped, EnsembleRun._returns_old, EnsembleRun._is_damaged,
)  # fmt: skip

REPLICA_FAULTS = [EnsembleRun._disconnects, EnsembleRun._restarts, EnsembleRun._loses_answers]

_WEIGHTED: dict[Callable[[EnsembleRun], None], float] = {
    EnsembleRun._commit: 60,
    EnsembleRun._read: 12,
    EnsembleRun._checkpoint: 5,
    EnsembleRun._reclaim: 4,
    EnsembleRun._maintain: 8,
    EnsembleRun._break: 3,
    EnsembleRun._mend: 3,
    EnsembleRun._remember: 1,
    EnsembleRun._cut_soon: 1,
    EnsembleRun._crash: 2,
}
ACTS, WEIGHTS = list(_WEIGHTED), list(accumulate(_WEIGHTED.values()))


def entry_of(ledger_id: int, entry_id: int, text: bytes) -> Entry:
    """Return an entry with a body of its own."""
    body = MAGIC + crc32c(text).to_bytes(4, "big") + text
    flags: int = EntryFlag.CHECKSUM
    return Entry(ledger_id, entry_id, flags, 1, entry_id + 1, entry_id, 7, 1, 2, 0, crc32c(text), body)

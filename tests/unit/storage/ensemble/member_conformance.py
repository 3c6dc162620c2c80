"""Conformance suite of members. A test file subclasses ``MemberConformance`` and supplies a fixture that opens one."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.storage.engine import Checkpoint, Compressing, CompressionChoice, ReadRequest
from pulsarbox.storage.ensemble.member import Member, MemberContent, MemberState, PackedBatch, Piece
from pulsarbox.storage.ensemble.membership import MemberRecord, Membership
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Meta, pack_meta
from tests.tools.campaigns import examples
from tests.unit.storage.batches import batch_of, entry_of

ALL = 1 << 30
OF_A_SUITE = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow]
Runs = list[tuple[int, int, int]]
"""Ledger, first entry, number of entries."""


class MemberStore:
    """A member that can be reopened repeatedly."""

    member: Member | None = None

    def make(self) -> Member:
        """Create a member on the same data."""
        raise NotImplementedError

    def reopen(self) -> Member:
        """Close the member, and open it again."""
        self.close()
        self.member = self.make()
        self.content: MemberContent = self.member.open()
        return self.member

    def close(self) -> None:
        """Close the member."""
        if self.member is not None:
            self.member.close()
            self.member = None


class BoxLog:
    """The log of a box, of which a member has some batches."""

    def __init__(self) -> None:
        self.batches: dict[int, Runs] = {}
        self.next = {1: 0, 2: 0, 3: 0}

    def add(self, *counts: int) -> PackedBatch:
        """Add a batch with this many entries of ledgers 1, 2 and 3."""
        position = len(self.batches) + 1
        runs = [(ledger, self.next[ledger], count) for ledger, count in enumerate(counts, 1) if count]
        self.batches[position] = runs
        for ledger, _, count in runs:
            self.next[ledger] += count
        return packed(position, runs)

    def place(self, ledger_id: int, entry_id: int) -> int:
        """Return the position of an entry."""
        for position, runs in self.batches.items():
            for ledger, first, count in runs:
                if ledger == ledger_id and first <= entry_id < first + count:
                    return position
        raise AssertionError

    def pieces(self, ledger_id: int, entries: list[int]) -> list[Piece]:
        """Return copies of entries."""
        found: list[Piece] = []
        for entry_id in entries:
            position = self.place(ledger_id, entry_id)
            entry = entry_of(ledger_id, entry_id)
            if found and found[-1].position == position and found[-1].entries[-1].entry_id == entry_id - 1:
                found[-1] = Piece(position, [*found[-1].entries, entry])
            else:
                found.append(Piece(position, [entry]))
        return found


def packed(position: int, runs: Runs) -> PackedBatch:
    """A batch as members store it."""
    batch = batch_of(position, runs) if runs else Batch(position)
    if not runs:
        batch.add(pack_meta(Meta(b"key", b"%d" % position)))
    return PackedBatch(position, batch.value(), batch.runs)


def entries_of(member: Member, ledger_id: int) -> list[int]:
    """Return all entries of a ledger that a member lists, each read and verified."""
    found: list[int] = []
    for first, end in member.coverage([ledger_id]).get(ledger_id, ()):
        assert not found or found[-1] < first - 1
        at = first
        while at < end:
            entries = member.read(ReadRequest(1, ledger_id, at, end - 1, ALL))
            assert entries == [entry_of(ledger_id, at + each) for each in range(len(entries))]
            found += range(at, at + len(entries))
            at += len(entries)
    return found


def membership(box: str, generation: int = 1) -> Membership:
    """A membership of two."""
    members = tuple(MemberRecord(each, f"/{each}", MemberState.ACTIVE) for each in ("a", "b"))
    return Membership(box, "a", generation, "e1", members, 2)


def zlib_for_all() -> Compressing:
    """A request to compress everything."""
    return Compressing(lambda rows: lambda ledger_id: CompressionChoice(ledger_id, "zlib"), 100, 1)


def reclaim_all(member: Member, compressing: Compressing | None = None) -> None:
    """Reclaim space until nothing is left to reclaim."""
    for _ in range(500):
        if member.reclaim(compressing) is None:
            return
    raise AssertionError


class MemberConformance:
    """The suite; a subclass supplies the fixture ``store``."""

    @pytest.fixture
    def store(self) -> Iterator[MemberStore] | MemberStore:
        raise NotImplementedError

    def test_a_new_directory_belongs_to_the_box_that_takes_it(self, store: MemberStore) -> None:
        member = store.reopen()
        assert (store.content.membership, store.content.box) == (None, "")
        assert (store.content.mark, store.content.newest) == (0, 0)
        member.write_membership(membership("box"))
        member = store.reopen()
        assert (store.content.membership, store.content.box) == (membership("box"), "box")
        member.write_membership(membership("box", 2))
        store.reopen()
        assert store.content.membership == membership("box", 2)

    def test_batches_have_gaps(self, store: MemberStore) -> None:
        member = store.reopen()
        given_ = [packed(position, [(1, 2 * position, 2)]) for position in (3, 4, 9)] + [packed(20, [])]
        for batch in given_:
            member.commit(batch)
        for _ in range(2):
            assert list(member.batches(0)) == [(batch.position, batch.value) for batch in given_]
            assert [position for position, _ in member.batches(4)] == [9, 20]
            assert member.coverage([1, 5]) == {1: [(6, 10), (18, 20)]}
            assert entries_of(member, 1) == [6, 7, 8, 9, 18, 19]
            member = store.reopen()
            assert store.content.newest == 20

    def test_positions_increase(self, store: MemberStore) -> None:
        member = store.reopen()
        member.commit(packed(3, [(1, 0, 1)]))
        for position in (2, 3):
            with pytest.raises(ValueError, match="was committed after 3"):
                member.commit(packed(position, [(1, 0, 1)]))

    @pytest.mark.parametrize("position", range(1, 12))
    def test_the_end_of_the_log_is_erased_and_written_anew(self, store: MemberStore, position: int) -> None:
        member = store.reopen()
        for each in (1, 2, 3, 6, 7, 10):
            member.commit(packed(each, [(1, each, 1), (2, 2 * each, 2)]))
        member.erase_from(position)
        kept = [each for each in (1, 2, 3, 6, 7, 10) if each < position]
        for _ in range(2):
            assert [each for each, _ in member.batches(0)] == kept
            assert entries_of(member, 1) == kept
            assert entries_of(member, 2) == [entry for each in kept for entry in (2 * each, 2 * each + 1)]
            member = store.reopen()
        latest = kept[-1] if kept else 0
        member.commit(packed(position, [(2, 2 * latest + 2, 5), (1, latest + 1, 2)]))
        for _ in range(2):
            assert entries_of(member, 1) == [*kept, latest + 1, latest + 2]
            assert entries_of(member, 2)[-5:] == list(range(2 * latest + 2, 2 * latest + 7))
            member = store.reopen()
        assert [each for each, _ in member.batches(0)] == [*kept, position]

    def test_a_checkpoint_may_be_after_the_last_batch(self, store: MemberStore) -> None:
        member = store.reopen()
        member.commit(packed(2, [(1, 0, 1)]))
        member.checkpoint(Checkpoint(9, {b"a": b"1"}, ()))
        member = store.reopen()
        assert (store.content.mark, store.content.newest) == (9, 9)
        assert store.content.rows.get(b"a") == b"1"
        assert list(member.batches(9)) == []
        member.commit(packed(10, [(1, 5, 1)]))
        assert entries_of(store.reopen(), 1) == [0, 5]

    def test_rows_are_replaced(self, store: MemberStore) -> None:
        member = store.reopen()
        for position, ledger in enumerate((1, 2, 3, 40), 1):
            member.commit(packed(position, [(ledger, 0, 2)]))
        member.checkpoint(Checkpoint(2, {b"a": b"1", b"b": b"2", b"z" * 600: b"long"}, ()))
        key = f"ledger/{1:016x}/{2:016x}".encode()
        data = f"packagedata/{3:016x}".encode()
        rows = {b"b": b"3", b"c": b"4", b"y" * 700: b"long", b"ids": b'{"next": 30}', key: b"{}", data: b"{}"}
        member.replace_rows(iter(sorted(rows.items())), 4)
        for _ in range(2):
            assert dict(store.content.rows.items(b"")) == rows
            assert member.ledgers() == [2, 3, 40]
            assert list(member.coverage([1, 2, 3, 40])) == [2, 3, 40]
            assert entries_of(member, 2) == [0, 1]
            reclaim_all(member)
            member = store.reopen()
            assert store.content.mark == 4

    def test_rows_that_cannot_be_read_replace_nothing(self, store: MemberStore) -> None:
        member = store.reopen()
        member.commit(packed(1, [(1, 0, 2)]))
        member.checkpoint(Checkpoint(1, {b"a": b"1"}, ()))

        def broken() -> Iterator[tuple[bytes, bytes]]:
            yield b"b", b"2"
            raise PersistenceError("no more")

        with pytest.raises(PersistenceError, match="no more"):
            member.replace_rows(broken(), 7)
        for _ in range(2):
            assert dict(store.content.rows.items(b"")) == {b"a": b"1"}
            assert store.content.mark <= 1
            assert member.ledgers() == [1]
            member = store.reopen()

    def test_pieces_have_the_positions_of_their_batches(self, store: MemberStore) -> None:
        member = store.reopen()
        log = BoxLog()
        for counts in ((3, 1), (1,), (0, 2), (2,)):
            member.commit(log.add(*counts))
        whole = member.pieces(1, 1, 6, ALL)
        assert whole == log.pieces(1, [1, 2, 3, 4, 5])
        assert [each.entry_id for each in member.pieces(1, 1, 6, 0)[0].entries] == [1]
        with pytest.raises(PersistenceError, match="does not exist"):
            member.pieces(1, 6, 9, ALL)

    def test_a_damaged_entry_is_no_piece(self, store: MemberStore) -> None:
        member = store.reopen()
        batch = batch_of(1, [(1, 0, 3)])
        batch.parts[3] = batch.parts[3][:-1] + b"!"  # header, body, header, body
        member.commit(PackedBatch(1, batch.value(), batch.runs))
        assert [len(piece.entries) for piece in member.pieces(1, 0, 3, ALL)] == [1]
        with pytest.raises(EntryDamaged):
            member.pieces(1, 1, 3, ALL)
        member.forget(1, 1, 2)
        assert member.coverage([1]) == {1: [(0, 1), (2, 3)]}
        member.adopt([Piece(1, [entry_of(1, 1)])])
        assert entries_of(member, 1) == [0, 1, 2]
        assert entries_of(store.reopen(), 1) == [0, 1, 2]

    def test_what_a_member_has_is_not_adopted_again(self, store: MemberStore) -> None:
        member = store.reopen()
        log = BoxLog()
        member.commit(log.add(4))
        log.add(4)
        assert member.adopt(log.pieces(1, [2, 3])) == 0
        assert member.adopt(log.pieces(1, [2, 3, 4, 5])) > 0
        assert member.adopt(log.pieces(1, [4, 5])) == 0
        assert entries_of(member, 1) == [0, 1, 2, 3, 4, 5]

    def test_a_dropped_ledger_is_not_adopted(self, store: MemberStore) -> None:
        member = store.reopen()
        log = BoxLog()
        member.commit(log.add(1, 1))
        log.add(2, 2)
        member.checkpoint(Checkpoint(2, {}, (1,)))
        member.adopt(log.pieces(1, [1, 2]) + log.pieces(2, [1, 2]))
        assert member.ledgers() == [2]
        assert member.coverage([1, 2]) == {2: [(0, 3)]}

    def test_damaged_copies_are_refused(self, store: MemberStore) -> None:
        member = store.reopen()
        with pytest.raises(EntryDamaged):
            member.adopt([Piece(1, [entry_of(1, 0)._replace(body=b"\x0e\x01\0\0\0\0x")])])
        assert member.ledgers() == []

    @settings(max_examples=examples(40), suppress_health_check=OF_A_SUITE, deadline=None)
    @given(data=st.data())
    def test_any_history(self, make_store: Callable[[], MemberStore], data: st.DataObject) -> None:
        """Compare a member with a dict of the entries that it has."""
        store = make_store()
        member = store.reopen()
        log = BoxLog()
        has: dict[int, set[int]] = {1: set(), 2: set(), 3: set()}
        own: list[int] = []
        mark = 0
        for _ in range(data.draw(st.integers(1, 25))):
            act = data.draw(st.sampled_from(["commit"] * 4 + ["miss", "adopt", "forget", "mark", "reclaim", "reopen"]))
            if act in {"commit", "miss"}:
                batch = log.add(*data.draw(st.lists(st.integers(0, 3), min_size=3, max_size=3)))
                if act == "commit":
                    member.commit(batch)
                    own.append(batch.position)
                    for ledger, first, count in log.batches[batch.position]:
                        has[ledger].update(range(first, first + count))
            elif act in {"adopt", "forget"}:
                ledger = data.draw(st.integers(1, 3))
                first = data.draw(st.integers(0, log.next[ledger]))
                end = data.draw(st.integers(first, log.next[ledger]))
                if act == "adopt":
                    member.adopt(log.pieces(ledger, list(range(first, end))))
                    has[ledger].update(range(first, end))
                elif first < end:
                    member.forget(ledger, first, end)
                    has[ledger].difference_update(range(first, end))
            elif act == "mark":
                mark = len(log.batches)
                member.checkpoint(Checkpoint(mark, {}, ()))
            elif act == "reclaim":
                reclaim_all(member, data.draw(st.sampled_from([None, zlib_for_all()])))
            else:
                member = store.reopen()
            assert {ledger: entries_of(member, ledger) for ledger in has} == {
                ledger: sorted(entries) for ledger, entries in has.items()
            }
            assert [position for position, _ in member.batches(mark)] == [each for each in own if each > mark]
            for ledger in has:
                for first, end in member.coverage([ledger]).get(ledger, ()):
                    pieces = member.pieces(ledger, first, end, ALL)
                    entries = [entry.entry_id for piece in pieces for entry in piece.entries]
                    assert entries == list(range(first, first + len(entries)))
                    assert all(
                        piece.position == log.place(ledger, entry.entry_id)
                        for piece in pieces
                        for entry in piece.entries
                    )
        store.close()

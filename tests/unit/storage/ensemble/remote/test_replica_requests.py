"""Requests with fields and bodies that no box sends: errors, and nothing has changed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.memory_member import MemberDisk, MemoryMember
from pulsarbox.storage.ensemble.remote.frames import FrameError
from pulsarbox.storage.ensemble.remote.replica_requests import _OPERATIONS, UPLOADS, Lane, ReplicaRequests, lane_of
from pulsarbox.storage.ensemble.remote.wire_values import encode_entries, row_portions
from tests.unit.storage.batches import entry_of
from tests.unit.storage.ensemble.member_conformance import BoxLog
from tests.unit.storage.ensemble.remote.fake_link import MemoryNotes

NAMES = ("position", "runs", "dropped", "ledger", "ledgers", "first", "end", "last", "bytes", "leftOut", "note", "key")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 1 << 65) | st.text(max_size=3),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=3), each, max_size=2),
    max_leaves=5,
)
BODIES = st.binary(max_size=50) | st.sampled_from(
    [encode_entries([entry_of(1, 0)]), *row_portions([(b"key", b"value"), (b"gone", None)])]
)


def requests() -> tuple[MemberDisk, ReplicaRequests]:
    disk = MemberDisk("there")
    member = MemoryMember(disk)
    content = member.open()
    member.commit(BoxLog().add(3))
    return disk, ReplicaRequests(member, content.rows, MemoryNotes())


@given(
    operation=st.sampled_from(sorted(_OPERATIONS)),
    fields=st.dictionaries(st.sampled_from([*NAMES, "mark", "prefix", "after", "through", "membership"]), VALUES),
    body=BODIES,
)
def test_any_request_is_answered_or_refused(operation: str, fields: dict[str, Any], body: bytes) -> None:
    _, served = requests()
    try:
        served.answer(operation, fields, iter([(fields, body)]))
    except (PersistenceError, ValueError):
        pass


@pytest.mark.parametrize("operation", sorted(set(_OPERATIONS) - {"ledgers", "check_room", "statistics", "space"}))
def test_a_request_without_its_fields_is_refused(operation: str) -> None:
    disk, served = requests()
    before = dict(disk.log), dict(disk.rows), disk.membership
    with pytest.raises(FrameError):
        served.answer(operation, {}, iter([({}, b"\xff")]))
    assert (dict(disk.log), dict(disk.rows), disk.membership) == before


def test_commits_and_other_work_have_lanes_that_do_not_wait_for_each_other() -> None:
    assert {lane_of(each) for each in ("commit", "erase_from")} == {Lane.LOG}
    assert {lane_of(each) for each in UPLOADS} == {Lane.TABLES}
    assert lane_of("read") == Lane.READS
    assert lane_of("write_membership") == Lane.STATE
    with pytest.raises(FrameError, match="unknown operation 'drop'"):
        lane_of("drop")

"""Values of the replica protocol: round trips, and bytes that no encoder returns."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.errors import EntryDamaged, PersistenceError, StoreFull
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.ensemble.member import Piece
from pulsarbox.storage.ensemble.remote.frames import FrameError
from pulsarbox.storage.ensemble.remote.wire_values import (
    PART_BYTES,
    decode_batch,
    decode_entries,
    decode_error,
    decode_log,
    decode_pieces,
    decode_read,
    decode_rows,
    encode_batch,
    encode_entries,
    encode_error,
    encode_log,
    encode_pieces,
    encode_read,
    integer,
    integers,
    listed,
    portions,
    row_portions,
    stored_rows,
    text,
)
from pulsarbox.storage.entry_read import EntryMissing
from tests.unit.storage.batches import entry_of
from tests.unit.storage.ensemble.member_conformance import packed

ENTRIES = [entry_of(3, number) for number in range(5)]
BATCH = packed(9, [(3, 4, 5), (7, 0, 2)])


def test_entries_pieces_rows_and_batches_survive() -> None:
    assert decode_entries(encode_entries(ENTRIES)) == ENTRIES
    pieces = [Piece(4, ENTRIES[:2]), Piece(9, ENTRIES[2:])]
    assert decode_pieces(*_json(encode_pieces(pieces))) == pieces
    found = decode_batch(*_json(encode_batch(BATCH)))
    assert (found.position, found.value) == (9, BATCH.value)
    assert {key: (run.first_entry, run.offsets) for key, run in found.runs.items()} == {
        key: (run.first_entry, run.offsets) for key, run in BATCH.runs.items()
    }
    log = [(1, b"one"), (1 << 60, b"")]
    assert decode_log(encode_log(log)) == log
    request = ReadRequest(0, 1, 2, 9, 1000, ((4, 5),))
    assert decode_read(encode_read(request) | {"leftOut": [[4, 5]]}) == request


def _json(encoded: tuple[dict[str, Any], bytes]) -> tuple[dict[str, Any], bytes]:
    return encoded


@given(st.lists(st.tuples(st.binary(max_size=20), st.none() | st.binary(max_size=20)), max_size=5))
def test_rows_survive(rows: list[tuple[bytes, bytes | None]]) -> None:
    assert [row for part in row_portions(rows) for row in decode_rows(part)] == rows


def test_large_values_are_divided_into_portions() -> None:
    rows = [(b"%d" % number, bytes(PART_BYTES // 2)) for number in range(5)]
    assert [len(decode_rows(part)) for part in row_portions(rows)] == [2, 2, 1]
    large = entry_of(1, 0)._replace(body=bytes(PART_BYTES))
    assert [len(part) for part in portions([Piece(1, [large]), Piece(2, ENTRIES), Piece(3, ENTRIES)])] == [1, 2]


@pytest.mark.parametrize(
    "error",
    [
        StoreFull("full"),
        EntryMissing("missing"),
        ValueError("value"),
        PersistenceError("other"),
        EntryDamaged(1, 2, 3, "why", b"rest", (4, 5, 6, 7)),
        EntryDamaged(1, 2, 2, "why"),
    ],
)
def test_errors_survive(error: Exception) -> None:
    fields, body = encode_error(error)
    found = decode_error({**fields, "counts": list(fields["counts"])} if fields.get("counts") else fields, body)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)


def test_an_error_of_a_later_version_is_one_of_persistence() -> None:
    assert type(decode_error({"error": "new", "text": "x"}, b"")) is PersistenceError


@pytest.mark.parametrize("decode", [decode_entries, decode_rows, decode_log, stored_rows])
@given(data=st.binary(min_size=1, max_size=200))
def test_any_bytes_are_values_or_an_error(decode: Callable[[bytes], list[Any]], data: bytes) -> None:
    try:
        decode(data)
    except FrameError:
        pass


FIELDS = st.dictionaries(
    st.sampled_from(["position", "runs", "pieces", "ledger", "first", "last", "bytes", "leftOut"]),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3) | st.floats(), lambda each: st.lists(each, max_size=3)
    ),
)


@pytest.mark.parametrize("decode", [decode_batch, decode_pieces, lambda fields, body: decode_read(fields)])
@given(fields=FIELDS, body=st.binary(max_size=100))
def test_any_fields_are_values_or_an_error(
    decode: Callable[[dict[str, Any], bytes], Any], fields: dict[str, Any], body: bytes
) -> None:
    try:
        decode(fields, body)
    except FrameError:
        pass


@pytest.mark.parametrize(
    ("decode", "problem"),
    [
        (lambda: decode_batch({"position": 1, "runs": [[1, 0, 1 << 40]]}, bytes(8)), "cut off"),
        (lambda: decode_batch({"position": 1, "runs": [[1, 0, 1]]}, b"\xff\xff\xff\0rest"), "outside of its batch"),
        (lambda: decode_batch({"position": 1, "runs": [[1, 0, 0]]}, b"rest"), "outside of its batch"),
        (lambda: decode_batch({"position": -1, "runs": []}, b""), "expected 1 numbers"),
        (lambda: decode_pieces({"pieces": [[1, 9]]}, b""), "do not match"),
        (lambda: decode_pieces({"pieces": []}, encode_entries(ENTRIES)), "do not match"),
        (lambda: stored_rows(b"".join(row_portions([(b"a", None)]))), "has no value"),
        (lambda: integers([True, "x"], 2), "expected 2 numbers"),
        (lambda: integer({"a": 1 << 64}, "a"), "expected 1 numbers"),
        (lambda: listed({}, "a"), "the field a is not a list"),
        (lambda: text({"a": 1}, "a"), "the field a is not a string"),
    ],
)
def test_malformed_values_are_refused(decode: Callable[[], Any], problem: str) -> None:
    with pytest.raises(FrameError, match=problem):
        decode()

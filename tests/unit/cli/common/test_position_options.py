"""Message IDs, --from and --until."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.common.position_options import End, From, Until, message_id, parse_from, parse_until
from pulsarbox.client.places import EARLIEST, LATEST, MessageId, Start

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1:2", MessageId(1, 2, -1, -1)),
        ("1:2:3", MessageId(1, 2, -1, 3)),
        ("1:2:-1:4", MessageId(1, 2, 4, -1)),
        ("1:2:0:0", MessageId(1, 2, 0, 0)),
        ("1", None), ("1:2:", None), ("1:-2", None), ("a:b", None), ("1:2:-2", None), (f"{2**63}:1", None),
    ],
)  # fmt: skip
def test_message_ids(text: str, found: MessageId | None) -> None:
    assert message_id(text) == found


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1), st.integers(-1, 2**31), st.integers(-1, 2**31))
def test_an_id_that_is_printed_can_be_read(ledger: int, entry: int, index: int, partition: int) -> None:
    written = MessageId(ledger, entry, index, partition)
    assert message_id(str(written)) == written


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("earliest", From(Start(EARLIEST))),
        ("latest", From(Start(LATEST))),
        ("-10", From(Start(EARLIEST), 10)),
        ("@-1h", From(Start(EARLIEST, NOW - 3_600_000))),
        ("-1h", From(Start(EARLIEST, NOW - 3_600_000))),
        ("-1h30m", From(Start(EARLIEST, NOW - 5_400_000))),
        ("3:4", From(Start(MessageId(3, 4)))),
    ],
)
def test_from(text: str, found: From) -> None:
    assert parse_from(text, NOW) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("end", Until(End.END)),
        ("100", Until(End.COUNT, 100)),
        ("30s", Until(End.DURATION, 30_000)),
        ("@+1h", Until(End.TIME, NOW + 3_600_000)),
        ("3:4:-1:0", Until(End.ID, id=MessageId(3, 4, 0))),
    ],
)
def test_until(text: str, found: Until) -> None:
    assert parse_until(text, NOW) == found


@given(st.text(max_size=20))
def test_any_text_is_a_position_or_refused(text: str) -> None:
    for parse in (parse_from, parse_until):
        try:
            parse(text)
        except ValueError:
            pass

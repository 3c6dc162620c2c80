"""The description of a seek's effect, and the position as parameters of the request."""

from typing import Any

import pytest

from pulsarbox.cli.commands.seek_preview import contradiction, preview_words, query
from pulsarbox.cli.common.position_arguments import parse_place


def counts(before: int, after: int, redelivered: int, skipped: int) -> dict[str, int]:
    return {"before": before, "after": after, "redelivered": redelivered, "skipped": skipped}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (counts(12, 1345, 1333, 0), "changes the backlog from 12 to 1,345 messages: 1,333 delivered again"),
        (counts(5, 0, 0, 5), "changes the backlog from 5 to 0 messages: 5 skipped"),
        (counts(5, 6, 3, 2), "changes the backlog from 5 to 6 messages: 3 delivered again, 2 skipped"),
        (counts(5, 5, 0, 0), "changes the backlog from 5 to 5 messages: no change"),
    ],
)
def test_the_effect_is_told(found: dict[str, Any], words: str) -> None:
    assert preview_words(found, parse_place("earliest")) == f"a seek to earliest {words}"


def test_another_broker_has_no_preview() -> None:
    assert preview_words(None, parse_place("latest")) == "the broker has no preview of a seek"


def test_positions_are_parameters() -> None:
    assert query(parse_place("@1700000000000")) == {"timestamp": 1_700_000_000_000}
    assert query(parse_place("earliest")) == {"ledgerId": -1, "entryId": -1}
    assert query(parse_place("12:7:-1:3")) == {"ledgerId": 12, "entryId": 7, "batchIndex": 3}


def state(backlog: int, delivered: int, unit: str = "messages") -> dict[str, Any]:
    return {"backlog": backlog, "backlog_unit": unit, "delivered": delivered}


@pytest.mark.parametrize(
    ("after", "fails"),
    [
        (state(100, 0), False),
        (state(120, 0), False),  # producers publish
        (state(40, 60), False),  # consumers have received the difference
        (state(0, 0), True),
        (state(40, 59), True),
        (state(1, 0, "entries"), False),  # Apache Pulsar
    ],
)
def test_a_backlog_below_the_preview_that_was_not_delivered_is_a_failure(after: dict[str, Any], fails: bool) -> None:
    assert (contradiction({"before": 0, "after": 100}, state(0, 0), after) is not None) == fails


def test_without_a_preview_nothing_is_contradicted() -> None:
    assert contradiction(None, state(0, 0), state(0, 0)) is None
    assert contradiction({"before": 0, "after": 1}, state(0, 0), None) is None

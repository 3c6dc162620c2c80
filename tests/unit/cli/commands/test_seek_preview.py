"""The description of a seek's effect, and the position as parameters of the request."""

from typing import Any

import pytest

from pulsarbox.cli.commands.seek_preview import (
    amount_words,
    contradiction,
    messages_in,
    preview_words,
    query,
    skipped_by,
)
from pulsarbox.cli.common.position_arguments import parse_place
from pulsarbox.client.admin import Admin
from pulsarbox.names import TopicName, parse_topic


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


@pytest.mark.parametrize(
    ("found", "place", "skipped"),
    [
        (counts(5, 6, 3, 2), "@-1h", 2),
        (counts(5, 5, 0, 0), "latest", 0),
        (None, "latest", None),  # Apache Pulsar has no preview
        (None, "earliest", 0),
        (None, "@-1h", 0),
    ],
)
def test_skipped_messages_are_known_or_may_be_all(
    found: dict[str, Any] | None, place: str, skipped: int | None
) -> None:
    assert skipped_by(found, parse_place(place)) == skipped


class Previews(Admin):
    """A broker with a backlog of batches of 1,000 messages at 3:0, 3:1 and so on."""

    def __init__(self, entries: int) -> None:
        super().__init__([("nowhere", 1)])
        self.entries = entries

    def unacknowledged_entry(self, topic: TopicName, subscription: str, number: int) -> str | None:
        return f"3:{number - 1}" if number <= self.entries else None

    def own(self, path: str) -> dict[str, int]:
        assert path.startswith("/seek-preview/public/default/orders/billing?")
        skipped = next(
            (each for each in range(self.entries) if path.endswith(f"ledgerId=3&entryId={each}")), self.entries
        )
        return counts(0, 0, 0, 1000 * skipped)


@pytest.mark.parametrize(("entries", "messages"), [(5, 5000), (19, 19_000), (20, 20_000), (500, 20_000)])
def test_the_messages_of_entries_are_counted_up_to_the_next_entry(entries: int, messages: int) -> None:
    assert messages_in(Previews(20), parse_topic("orders"), "billing", entries) == messages


@pytest.mark.parametrize(
    ("entries", "messages", "words"),
    [
        (5, 5000, "5,000 messages in 5 entries"),
        (1, 10, "10 messages in 1 entry"),
        (5, 5, "5 messages"),
        (5, None, "5 entries"),
    ],
)
def test_entries_are_shown_with_their_messages(entries: int, messages: int | None, words: str) -> None:
    assert amount_words(entries, messages) == words


def test_a_time_without_its_sign_gets_a_hint() -> None:
    with pytest.raises(ValueError, match=r"^invalid position '1h'; did you mean -1h\?$"):
        parse_place("1h")
    with pytest.raises(ValueError, match="invalid position 'tomorrow'; expected earliest, latest"):
        parse_place("tomorrow")


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

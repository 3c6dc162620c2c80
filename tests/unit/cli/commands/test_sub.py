"""What a seek did to a backlog, in words."""

from typing import Any

import pytest

from pulsarbox.cli.commands.sub import redelivery_words, seek_words
from pulsarbox.names import parse_topic


def backlog(count: int, unit: str = "messages") -> dict[str, Any]:
    return {"backlog": count, "backlog_unit": unit, "backlog_entries": count}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (backlog(12), backlog(1345), "backlog 12 before, 1,345 now (messages): 1,333 are delivered again"),
        (backlog(5), backlog(0), "backlog 5 before, 0 now (messages): 5 are skipped"),
        (backlog(5, "entries"), backlog(5, "entries"), "backlog 5 before, 5 now (entries): no change"),
        (None, backlog(5), "the backlog is unknown"),
    ],
)
def test_a_seek_is_reported(before: dict[str, Any] | None, after: dict[str, Any], words: str) -> None:
    assert seek_words(before, after) == words


@pytest.mark.parametrize(
    ("counts", "total", "words"),
    [
        ([8], 1, "1 message redelivered up to 8 times: pulsarbox peek orders -s work --filter 'redelivery > 2'"),
        ([1, 1], 2, "2 messages redelivered once: pulsarbox peek orders -s work --filter 'redelivery > 0'"),
        ([3], 1500, "1,500 messages redelivered up to 3 times among the first 1: pulsarbox peek orders -s work"
                    " --filter 'redelivery > 0'"),
        ([], 0, ""),
    ],
)  # fmt: skip
def test_redeliveries_are_mentioned(counts: list[int], total: int, words: str) -> None:
    found = {"redelivered": [{"count": each} for each in counts], "redeliveredTotal": total}
    assert redelivery_words(parse_topic("orders"), "work", found) == words


def test_other_brokers_report_no_redeliveries() -> None:
    assert redelivery_words(parse_topic("orders"), "work", {}) == ""

"""Backlogs in messages or entries, and which unit a table shows."""

import pytest

from pulsarbox.cli.commands.stats_text import FIELDS
from pulsarbox.cli.commands.topic import _PARTITION_FIELDS, _STATS_FIELDS
from pulsarbox.cli.common.backlog_units import backlog_columns, backlog_fields


def test_a_box_counts_messages() -> None:
    found = backlog_fields([{"msgBacklog": 615, "backlogMessages": 11_303}, {"msgBacklog": 2, "backlogMessages": 2}])
    assert found == {"backlog": 11_305, "backlog_unit": "messages", "backlog_entries": 617}
    assert backlog_columns([found]) == (["backlog", "backlog_entries"], {"backlog_entries": "ENTRIES"})


def test_entries_have_a_column_only_where_they_differ() -> None:
    found = backlog_fields([{"msgBacklog": 3, "backlogMessages": 3}])
    assert backlog_columns([found, backlog_fields([])]) == (["backlog"], {})


def test_a_pulsar_counts_entries_and_the_column_says_so() -> None:
    found = backlog_fields([{"msgBacklog": 615}])
    assert found == {"backlog": 615, "backlog_unit": "entries", "backlog_entries": 615}
    assert backlog_columns([found]) == (["backlog"], {"backlog": "BACKLOG (ENTRIES)"})


@pytest.mark.parametrize("empty", [FIELDS, _STATS_FIELDS, _PARTITION_FIELDS])
@pytest.mark.parametrize("stats", [{"msgBacklog": 1}, {"msgBacklog": 1, "backlogMessages": 1}])
def test_rows_have_the_fields_in_the_order_of_an_empty_list(empty: tuple[str, ...], stats: dict[str, int]) -> None:
    found = list(backlog_fields([stats]))
    assert [name for name in empty if name in found] == found

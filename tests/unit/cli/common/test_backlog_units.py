"""Backlogs in messages or entries, and which unit a table shows."""

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

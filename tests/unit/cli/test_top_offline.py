"""A dead box answers as one that runs, of what lies on the disk; nothing can be changed."""

from pathlib import Path

import pytest

from pulsarbox.cli.top_offline import answers_of
from pulsarbox.storage.inspection.dead_box import DeadBox
from pulsarbox.tui.feed import Feed, Query, Trouble, real


def feed() -> Feed:
    rows = [{"topic": f"persistent://public/default/{name}", "backlog": at} for at, name in enumerate("ab\x1bc")]
    return Feed(answers_of(DeadBox(Path("box"), {"topics": rows}, {"topics": 4}, {}, 17, 4)))


def test_rows_are_filtered_sorted_and_paged() -> None:
    found = feed().view(Query("topics", "backlog", True, 1, 2, "backlog > 0"))
    assert (found.total, found.matching, [row["backlog"] for row in found.rows]) == (4, 3, [2, 1])
    assert found.read_only and found.totals == {"topics": 4}
    assert real(found.rows[0], "topic").endswith("\x1b") and "\x1b" not in found.rows[0]["topic"]
    assert feed().view(Query("overview", limit=1)).totals == {"topics": 4}


def test_what_only_a_box_that_runs_knows_is_said() -> None:
    with pytest.raises(Trouble, match="only while one does"):
        feed().view(Query("clients"))
    with pytest.raises(Trouble, match="nothing can be changed"):
        feed().ask("POST", "/admin/v2/anything")
    with pytest.raises(Trouble, match="filter"):
        feed().view(Query("topics", filter="backlog >"))

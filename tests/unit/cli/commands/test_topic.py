"""The list of topics with their statistics: a request for each, with progress."""

import io
import time
from types import SimpleNamespace
from typing import Any

import pytest

from pulsarbox.cli.commands.topic import _all_with_numbers, _row
from pulsarbox.cli.common import progress
from pulsarbox.client.admin import AdminRefused


class Statistics:
    """The statistics of topics, the second of which has been deleted."""

    def stats(self, name: Any, partitions: int) -> dict[str, Any]:
        if str(name).endswith("-2"):
            raise AdminRefused(404, "Topic not found", "GET")
        return {"msgRateIn": 1.0, "msgRateOut": 2.0, "storageSize": 3, "publishers": [], "subscriptions": {}}


def test_a_long_list_shows_how_many_topics_it_has_read(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    seconds = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))
    rows = [_row(f"persistent://public/default/t-{at}", 0) for at in range(1, 5)]
    found: Any = _all_with_numbers(Statistics(), rows)  # type: ignore[arg-type]
    assert [row["name"] for row in found] == ["t-1", "t-3", "t-4"]
    drawn = terminal.getvalue().split("\r\x1b[K")
    assert "reading:" in drawn[1] and "1 of 4 topics" in drawn[1] and "4 of 4 topics" in drawn[-2]
    assert drawn[-1] == "", "the line is cleared before the list"

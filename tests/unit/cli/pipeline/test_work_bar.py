"""Bars of offloads and Spark commands: on a terminal in place of lines, otherwise lines."""

import io
import time
from types import SimpleNamespace

import pytest

from pulsarbox.cli.common import progress
from pulsarbox.cli.pipeline import work_bar
from pulsarbox.cli.pipeline.work_bar import OffloadBar, SparkBar, tasks_text

TOPIC = "persistent://public/default/orders"


class Stderr(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    @property
    def drawn(self) -> list[str]:
        return [each for each in self.getvalue().split("\r\x1b[K") if each]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Diagnostic lines; a second passes with each look at the clock."""
    found: list[str] = []
    seconds = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))
    for module in (work_bar, progress):
        monkeypatch.setattr(module, "notify", found.append)
    return found


def stderr(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> Stderr:
    found = Stderr(is_terminal)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=found))
    monkeypatch.setattr(progress, "_columns", lambda: 200)
    return found


def offload(shown: OffloadBar) -> None:
    shown.topic(2, 5)
    shown.begin("offloading", TOPIC, 4 << 20)
    shown.add(1 << 20, 1000)
    shown.finished("ledger 3")
    shown.add(3 << 20, 3000)
    shown.end()


def test_an_offload_shows_its_bytes_messages_and_topic(monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    terminal = stderr(monkeypatch, is_terminal=True)
    offload(OffloadBar())
    assert terminal.drawn[0].startswith("offloading [") and "0 B of 4.0 MiB, orders (2 of 5)" in terminal.drawn[0]
    assert "1.0 MiB of 4.0 MiB" in terminal.drawn[1] and "left, 1,000 messages, orders" in terminal.drawn[1]
    assert "100 % 4.0 MiB of 4.0 MiB" in terminal.drawn[-1]
    assert lines == []


def test_without_a_terminal_it_prints_a_line_per_ledger(monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    pipe = stderr(monkeypatch, is_terminal=False)
    offload(OffloadBar())
    assert lines == ["ledger 3"] and pipe.getvalue() == ""


def test_lines_stay_beside_the_bar_of_an_offload_that_follows(
    monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    terminal = stderr(monkeypatch, is_terminal=True)
    offload(OffloadBar(keep_lines=True))
    assert lines == ["ledger 3"] and terminal.drawn


@pytest.mark.parametrize("is_terminal", [True, False])
def test_output_for_programs_has_neither_bar_nor_lines(
    monkeypatch: pytest.MonkeyPatch, lines: list[str], is_terminal: bool
) -> None:
    found = stderr(monkeypatch, is_terminal)
    offload(OffloadBar(is_wanted=False))
    spark = SparkBar("grouping", is_wanted=False)
    assert spark.tasks(1, 2)
    assert lines == [] and found.getvalue() == ""


def test_tasks_are_shown_until_rows_are_published(monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    terminal = stderr(monkeypatch, is_terminal=True)
    shown = SparkBar("staging")
    assert shown.tasks(3, 12) and shown.tasks(6, 12)
    shown.rows(100, 400)
    assert shown.tasks(1, 1)
    shown.rows(200, 400)
    shown.close()
    assert [each.partition(" ")[0] for each in terminal.drawn] == ["staging", "staging", "publishing", "publishing"]
    assert "6 of 12 tasks" in terminal.drawn[1] and "200 rows of 400 rows" in terminal.drawn[3]
    assert lines == []


def test_without_a_terminal_tasks_are_left_to_lines(monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    pipe = stderr(monkeypatch, is_terminal=False)
    shown = SparkBar("staging")
    assert not shown.tasks(3, 12)
    shown.rows(100, 400)
    assert lines == ["100 of 400 messages published"] and pipe.getvalue() == ""


def test_the_remaining_time_follows_from_completed_tasks() -> None:
    assert tasks_text("exporting", 3, 12, 6.0).endswith("25 % 3 of 12 tasks, 18 s left")
    assert tasks_text("exporting", 0, 12, 6.0).endswith("0 % 0 of 12 tasks")
    assert tasks_text("exporting", 12, 12, 6.0).endswith("100 % 12 of 12 tasks")

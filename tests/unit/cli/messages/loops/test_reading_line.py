"""Progress of reading beside messages on the same terminal, and beside a file."""

import io
import time
from types import SimpleNamespace

import pytest

from pulsarbox.cli.common import progress
from pulsarbox.cli.messages.loops.reading_line import ReadingLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: found.now)
    return found


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    found = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=found))
    return found


def test_the_line_is_shown_after_a_second_without_messages_and_cleared_before_the_next(
    terminal: Terminal, clock: Clock
) -> None:
    line = ReadingLine(True, shares_terminal=True, is_filtered=True)
    clock.now += 0.9
    line.add(1000, 0, 0)
    assert terminal.getvalue() == ""
    clock.now += 0.3
    line.add(1000, 0, 0)
    assert terminal.getvalue() == "\r\x1b[K2,000 messages read, 0 selected, 1,667/s"
    terminal.truncate(0)
    terminal.seek(0)
    line.before_output()
    assert terminal.getvalue() == "\r\x1b[K"
    line.add(1000, 1, 20)
    clock.now += 0.5
    line.add(1000, 0, 0)
    assert terminal.getvalue() == "\r\x1b[K"


def test_beside_a_file_the_line_stays(terminal: Terminal, clock: Clock) -> None:
    line = ReadingLine(True, shares_terminal=False, is_filtered=False)
    clock.now += 0.5
    line.add(1, 1, 2048)
    line.before_output()
    assert terminal.getvalue() == "\r\x1b[K1 message read, 2.0 KiB, 2/s"


def test_no_line_without_a_wish_for_it(terminal: Terminal, clock: Clock) -> None:
    line = ReadingLine(False, shares_terminal=True, is_filtered=True)
    clock.now += 5
    line.add(1, 0, 0)
    assert terminal.getvalue() == ""

"""Progress: silent without a terminal, otherwise one line that fits it and is cleared."""

import io
import sys
import time
from types import SimpleNamespace

import pytest

from pulsarbox.cli.common import progress
from pulsarbox.cli.common.progress import CountLine, LiveLine, ProgressBar, ProgressLine, bar, barred, sized, span


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def drawn(self) -> list[str]:
        """Everything drawn so far, without the last clearing."""
        return [each for each in self.getvalue().split("\r\x1b[K") if each]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 80 columns as stderr. Lines are always due, and a second passes with each look at the clock."""
    found = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=found))  # the runner replaces sys.stderr between phases
    seconds = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))
    return found


def test_without_a_terminal_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", found := io.StringIO())
    monkeypatch.setattr(progress, "_EVERY_SECONDS", 0)
    ProgressBar("restoring").update(1, 2)
    ProgressLine("stored", wanted=True).add(1, 1)
    CountLine("applying:", "requests").add()
    LiveLine().clear()
    assert found.getvalue() == ""


def test_a_line_that_is_not_wanted_is_not_drawn(terminal: Terminal) -> None:
    ProgressLine("stored", wanted=False).add(1, 1)
    assert terminal.getvalue() == ""


def test_lines_are_drawn_at_intervals(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_EVERY_SECONDS", 3)
    line = LiveLine()
    for number in range(7):
        line.draw(lambda number=number: f"at {number}")  # type: ignore[misc] # bound by the default
    assert terminal.drawn == ["at 2", "at 5"]


def test_a_line_that_ctrl_c_follows_is_cleared(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        monkeypatch.setattr(terminal, "flush", lambda: None)
        raise KeyboardInterrupt

    line = LiveLine()
    monkeypatch.setattr(terminal, "flush", interrupted)
    with pytest.raises(KeyboardInterrupt):
        line.draw(lambda: "at 1")
    line.clear()
    assert terminal.getvalue() == "\r\x1b[Kat 1\r\x1b[K"


def test_a_bar_has_amounts_rate_and_remaining_time(terminal: Terminal) -> None:
    shown = ProgressBar("restoring", sized)
    shown.update(0, 4 << 20)
    shown.update(1 << 20, 4 << 20, "volumes/1")
    first, second = terminal.drawn
    assert first == "restoring [                        ]   0 % 0 B of 4.0 MiB"
    assert second.startswith("restoring [████")
    assert " 25 % 1.0 MiB of 4.0 MiB, " in second
    assert " s left" in second
    assert len(second) == 79
    shown.clear()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_the_bar_is_shortened_before_the_remaining_time(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    for width, drawn in ((80, "[████▌             ]"), (60, " 25 % "), (300, f"[{'█' * 6:<24}]")):
        monkeypatch.setattr(progress, "_columns", lambda width=width: width)
        text = barred("reading", 0.25, "1,000 messages of 4,000, 12 s left, and more")
        assert (drawn in text, text.endswith("12 s left, and more"), len(text) < width) == (True, True, True), text


def test_a_line_fits_the_terminal_and_has_no_control_characters(terminal: Terminal) -> None:
    LiveLine().draw(lambda: "\x1b[2J" + "x" * 200)
    assert terminal.drawn == ["\\x1b[2J" + "x" * 72]


def test_messages_of_a_file_have_a_bar(terminal: Terminal) -> None:
    line = ProgressLine("stored", wanted=True, share=lambda: 0.5)
    line.add(1000, 0)
    assert terminal.drawn[0].startswith("[████████████            ]  50 % 1,000 messages stored, ")
    assert terminal.drawn[0].endswith(" s left")


def test_messages_of_a_pipe_have_a_count(terminal: Terminal) -> None:
    line = ProgressLine("read", wanted=True)
    line.add(3, 2048)
    assert terminal.drawn[0].startswith("3 messages read, 2.0 KiB, ")


def test_counts(terminal: Terminal) -> None:
    CountLine("applying:", "request").add()
    CountLine("checking:", "volume", 4).add()
    assert terminal.drawn == ["applying: 1 request", f"checking: {bar(0.25)} 1 of 4 volumes"]


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0, "[    ]   0 %"), (0.5, "[██  ]  50 %"), (0.29, "[█▏  ]  28 %"), (0.999, "[███▉]  99 %"), (1, "[████] 100 %"),
     (2, "[████] 100 %"), (-1, "[    ]   0 %")],
)  # fmt: skip
def test_a_bar_is_full_only_at_the_end(share: float, drawn: str) -> None:
    assert bar(share, 4) == drawn


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.9, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3600, "1 h 0 min"), (9e6, "2,500 h 0 min")]
)
def test_remaining_times(seconds: float, text: str) -> None:
    assert span(seconds) == text

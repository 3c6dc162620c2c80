"""The demonstration, short: all its sides agree; and its books notice where they do not."""

import subprocess
import sys
from pathlib import Path

import pytest

from examples.demo import __main__ as demo
from examples.demo.books import Books
from examples.demo.readings import Reading, made, read

ROOT = Path(__file__).parents[2]


def test_the_demo_ends_by_itself_and_its_numbers_agree() -> None:
    command = [sys.executable, "-m", "examples.demo", "--seconds", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all sides agree\n")
    assert "DIFFER" not in done.stdout and "NO " not in done.stdout
    assert done.stderr.count("kill -9") == 3


READINGS = [made(number, f"d{number % 2}", "x", number + 0.1) for number in range(6)]


def books(*readings: Reading) -> Books:
    kept = Books()
    for reading in readings:
        kept.add(reading)
    return kept


def test_books_agree_whatever_came_again_and_in_whatever_order() -> None:
    other = books(*reversed(READINGS), READINGS[3])
    assert books(*READINGS).agrees_with(other)
    assert (other.count, other.again, other.out_of_order) == (6, 1, 4)
    assert books(*READINGS).out_of_order == 0
    assert read(READINGS[1].body) == READINGS[1]


@pytest.mark.parametrize(
    "readings",
    [
        READINGS[:-1],
        [*READINGS, made(6, "d0", "x", 1.0)],
        [*READINGS[:-1], made(5, "d0", "x", 5.1)],
        [*READINGS[:-1], made(5, "d1", "x", 5.2)],
        [*READINGS[:-1], made(5, "d1", "y", 5.1)],
    ],
    ids=["one is missing", "one too many", "another device", "another value", "another text"],
)
def test_books_that_do_not_agree(readings: list[Reading]) -> None:
    assert not books(*READINGS).agrees_with(books(*readings))


def test_what_does_not_hold_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["demo"])
    monkeypatch.setattr(demo, "play", lambda *_: None)
    monkeypatch.setattr(demo, "show", lambda *_: None)
    for held, code, said in ((False, 1, "the sides DIFFER\n"), (True, 0, "all sides agree\n")):
        monkeypatch.setattr(demo, "verdicts", lambda _, held=held: {"this": True, "that": held})
        assert (demo.main(), capsys.readouterr().out) == (code, said)

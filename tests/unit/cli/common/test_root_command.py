"""Unusable output, names or streams end any command with a message instead of a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")


def pulsarbox(words: list[str], redirection: str = "", **environ: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command; ``redirection`` is shell syntax."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PULSARBOX_", "PYTHON"))}
    line = [f'"$@" {redirection}', "sh", sys.executable, "-m", "pulsarbox", *words]
    done = subprocess.run(
        ["/bin/sh", "-c", *line], capture_output=True, text=True, check=False, timeout=60, env=kept | environ
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["version"], ["--help"], ["config", "show"], ["completion", "bash"]], ids=" ".join)
def test_a_disk_that_is_full(words: list[str], unbuffered: str) -> None:
    code, _, said = pulsarbox(words, f">{FULL}", PYTHONUNBUFFERED=unbuffered)
    assert (code, said) == (1, "pulsarbox: cannot write the output: No space left on device\n")


@pytest.mark.parametrize("words", [["version"], ["config", "show"], ["config", "init", "-"], ["doctor"]], ids=" ".join)
def test_a_reader_that_ends_is_no_failure(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pulsarbox", *words], stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("words", [["topic", "create"], ["tenant", "show"], ["admin", "topics", "stats"]], ids=" ".join)
def test_a_name_that_is_no_text(words: list[str]) -> None:
    said = "pulsarbox: 't\\udcff' is not valid UTF-8; names must be UTF-8 text\n"
    asked = [*words, os.fsdecode(b"t\xff"), "--admin-url", "http://127.0.0.1:1"]
    assert pulsarbox(asked) == (2, "", said)


def test_a_terminal_that_does_not_know_a_letter_gets_an_escape(tmp_path: Path) -> None:
    configuration = tmp_path / "box.toml"
    configuration.write_text('[broker]\ndataDirectory = "Жx"\n', encoding="utf-8")
    asked = ["config", "show", "--config", str(configuration), "--origin"]
    assert "Жx" in pulsarbox(asked, PYTHONIOENCODING="utf-8")[1]
    code, out, said = pulsarbox(asked, PYTHONIOENCODING="latin-1")
    assert code == 0, said
    assert '"\\u0416x"' in out

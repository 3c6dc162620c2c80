"""Background starts whose process fails or hangs.

``tests/e2e/process/test_process.py`` has the rest.
"""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.main import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def start(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["start", "--detach", *arguments])


@pytest.fixture
def stands_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that replaces the Python interpreter; its last argument is the path for its startup result."""
    script = folder / "python"
    script.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    return script


@pytest.mark.parametrize(("ends", "code"), [("exit 9", 9), ("exit 0", 1), ("kill -9 $$", 1)])
def test_one_that_ends_without_a_word(stands_in: Path, ends: str, code: int) -> None:
    stands_in.write_text(f"#!/bin/sh\necho why >&2\n{ends}\n")
    result = start()
    assert (result.exit_code, result.stdout) == (code, "")
    assert "it exited with code" in result.stderr and "its log: data/pulsarbox.log" in result.stderr
    assert Path("data/pulsarbox.log").read_text() == "why\n"


def test_it_gets_the_options_of_the_command_line_and_its_words_are_passed_on(stands_in: Path) -> None:
    told = json.dumps({"failed": "there is no more room"})
    # bash is required: sh may support only single-digit descriptors.
    stands_in.write_text(f"#!/usr/bin/env bash\necho \"$@\" >&2\nfor last; do :; done\necho '{told}' >&$last\nexit 4\n")
    Path("x.toml").touch()
    result = start("--config", "x.toml", "--port", "0", "--host", "::1", "--log-file", "logs/it.log")
    assert result.exit_code == 4
    assert result.stderr == "pulsarbox: there is no more room\npulsarbox: its log: logs/it.log\n"
    given = Path("logs/it.log").read_text().split()
    assert given[:4] == ["-m", "pulsarbox", "start", "--config=x.toml"]
    assert sorted(given[4:6]) == ["--host=::1", "--port=0"]
    assert given[6:9] == ["--log-to", str(Path("logs/it.log").absolute()), "--report-to"]


def test_a_port_that_is_off_stays_off(stands_in: Path) -> None:
    stands_in.write_text('#!/bin/sh\necho "$@" >&2\nexit 4\n')
    tls = ("--web-tls-port", "0", "--tls-cert", "x.pem", "--tls-key", "x.pem")
    assert start("--web-port", "off", *tls, "--log-file", "it.log").exit_code == 4
    assert {"--web-port=off", "--web-tls-port=0"} <= set(Path("it.log").read_text().split())


def test_a_log_that_cannot_be_written(folder: Path) -> None:
    (folder / "file").touch()
    result = start("--log-file", "file/it.log")
    assert result.exit_code == 1
    assert "file/it.log cannot be written" in result.stderr and "--log-file" in result.stderr


@pytest.mark.parametrize("named", ["file", "file/below"])
def test_a_data_directory_that_is_none(folder: Path, named: str) -> None:
    (folder / "file").touch()
    result = start("--data-dir", named)
    assert result.exit_code == 1
    assert (
        result.stderr == f"pulsarbox: the data directory {named} is not a directory: choose another with --data-dir\n"
    )


def test_a_configuration_that_cannot_be_used_starts_nothing(folder: Path) -> None:
    result = start("--config", "none.toml")
    assert result.exit_code == 2
    assert list(folder.iterdir()) == []

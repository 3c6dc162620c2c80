"""docs/plugins.md, the first three plugins: every step in an empty directory."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pulsarbox.cli.main import main
from tests.e2e.clients import PATIENCE_SECONDS, until
from tests.newcomer.pages import Command, File, sections

ROOT = Path(__file__).parents[3]
STEPS = {each.title: each.steps for each in sections((ROOT / "docs" / "plugins.md").read_text("utf-8"))}
KINDS = {"hash-tag": "Keys that belong together", "weighted": "Work by weight", "xz": "Small on the disk"}

IN_PROCESSES = ("start", "produce", "consume")
"""Commands that need a process of their own; the others run faster without one."""


class Newcomer:
    """Empty directory, and the commands entered there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        python = Path(sys.executable).parent
        self._environment = {**os.environ, "PATH": f"{python}:{os.environ['PATH']}"}

    def type(self, line: str) -> str:
        """Run a command line, and return its stdout."""
        if line == "pulsarbox start --detach":
            line += " --port 0 --web-port 0"  # other users may run a box on this machine
        if line.startswith("pulsarbox plugins bench"):
            line += " --seconds 0.02"
        program, command, *words = shlex.split(line)
        if program == "pulsarbox" and command not in IN_PROCESSES:
            called = CliRunner().invoke(main, [command, *words])
            assert called.exit_code == 0, f"{line}: {called.output}"
            return called.stdout
        done = subprocess.run(
            ["bash", "-c", line],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    def save(self, file: File) -> None:
        """Save a block of the page under the preceding file name."""
        assert file.name
        text = file.text
        if "pulsar://localhost:6650" in text:
            url = json.loads(self.type("pulsarbox status -o json"))["brokerUrl"]
            text = text.replace("pulsar://localhost:6650", url)
        path = self.directory / file.name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")

    def follow(self, steps: Sequence[Command | File]) -> dict[str, str]:
        """Run the steps of a section; return the last output by command."""
        wrote: dict[str, str] = {}
        for step in steps:
            if isinstance(step, Command):
                wrote[step.text] = self.type(step.text)
            else:
                self.save(step)
        return wrote

    def used(self, name: str) -> dict[str, Any]:
        """Return the box's statistics of a plugin."""
        found: dict[str, Any]
        (found,) = json.loads(self.type(f"pulsarbox plugins info {name} -o json"))
        return found


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Newcomer]:
    if "E2E_URL" in os.environ:
        pytest.skip("starts boxes of its own")
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("PULSARBOX_"):
            monkeypatch.delenv(name)
    yield Newcomer(tmp_path)
    if (tmp_path / "data").exists():
        CliRunner().invoke(main, ["stop", "--data-dir", "data"])


def printed(wrote: str, word: str) -> list[str]:
    """Return the lines with a prefix, without output of the client library."""
    return [line for line in wrote.splitlines() if line.startswith(f"{word} ")]


def test_who_does_every_step_of_the_first_has_it_at_work(newcomer: Newcomer) -> None:
    wrote = _hash_tag(newcomer)
    _is_tested("hash-tag", wrote)


@pytest.mark.campaign
def test_who_does_every_step_has_each_plugin_at_work(newcomer: Newcomer) -> None:
    wrote = _hash_tag(newcomer) | _weighted(newcomer) | _xz(newcomer)
    for name in KINDS:
        _is_tested(name, wrote)


def _hash_tag(newcomer: Newcomer) -> dict[str, str]:
    wrote = newcomer.follow(STEPS[KINDS["hash-tag"]])
    partitions = printed(wrote["python send.py"], "partition")
    assert len(partitions) == 20
    assert len(set(partitions)) == 1
    assert wrote["pulsarbox consume orders -s billing --type key_shared --until end"] == "hello\n"
    assert "state         in use" in wrote["pulsarbox plugins info hash-tag"]
    assert newcomer.used("hash-tag")["calls"] > 0
    return wrote


def _weighted(newcomer: Newcomer) -> dict[str, str]:
    wrote = newcomer.follow(STEPS[KINDS["weighted"]])
    assert printed(wrote["python work.py"], "weight") == ["weight 1 has 10", "weight 3 has 30"]
    used = newcomer.used("weighted")
    assert (used["state"], used["errors"]) == ("in use", 0)
    assert used["calls"] >= 40
    return wrote


def _xz(newcomer: Newcomer) -> dict[str, str]:
    steps = STEPS[KINDS["xz"]]
    end = steps.index(Command("pulsarbox plugins info xz")) + 1  # the steps after this one do not need the box
    wrote = newcomer.follow(steps[:end])
    until(lambda: re.search(r"archive .* by xz, \d+\.\d\d times smaller", newcomer.type("pulsarbox storage stat data")))
    used = newcomer.used("xz")
    assert (used["state"], used["errors"]) == ("in use", 0)
    assert used["calls"] > 0
    wrote |= newcomer.follow(steps[end:])
    assert "no damage, 0 warnings" in newcomer.type("pulsarbox storage check data")
    of_packed = "--volume packed/00000001 --topic persistent://public/default/archive --limit 1"
    (dumped,) = newcomer.type(f"pulsarbox storage dump data {of_packed}").splitlines()
    assert json.loads(dumped)["compressed"]["codec"] == "xz"
    return wrote


def _is_tested(name: str, wrote: dict[str, str]) -> None:
    (test,) = (line for line in wrote if line.startswith("pulsarbox plugins test") and name.replace("-", "_") in line)
    assert wrote[test].count("ok  ") == len(wrote[test].splitlines()) >= 3
    assert name in wrote[test.replace(" test ", " bench ")]

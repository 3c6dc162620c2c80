"""The tasks of the page about the command line: its commands, unmodified but for the names of the topics."""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from pulsarbox.cli.main import main
from tests import forks
from tests.e2e.clients import until
from tests.e2e.conftest import Running

PAGE: Final = Path(__file__).parents[3] / "docs" / "cli.md"
_ROW: Final = re.compile(r"^\| ([a-z][^|]*) \| (`pulsarbox .*?`) \| \d", re.MULTILINE)
Tasks = dict[str, list[str]]
Do = Callable[[str], str]


def tasks() -> Tasks:
    """Return the commands of each task."""
    section = PAGE.read_text("utf-8").partition("## Ten tasks\n")[2].partition("\n## ")[0]
    return {name: re.findall(r"`(pulsarbox [^`]*)`", cell) for name, cell in _ROW.findall(section)}


TASKS: Final = tasks()


def test_there_are_ten() -> None:
    assert len(TASKS) == 10
    assert sum(len(commands) for commands in TASKS.values()) == 12


@pytest.fixture
def do(box: Running, topic: str, tmp_path: Path) -> Iterator[Do]:
    """Run a command of the page with its files in a directory, and return its output and diagnostics."""
    name = topic.rpartition("/")[2]
    env = {"PULSARBOX_ADMIN_URL": box.web_url, "PULSARBOX_SERVICE_URL": box.url, "HOME": str(tmp_path), "PATH": ""}

    def run(line: str) -> str:
        line = re.sub(r"\b(orders|copy)\b(?!\.)", rf"{name}-\1", line)
        words = shlex.split(line, posix=True)[1:]
        stdin, out = b"", None
        if "<" in words:
            stdin = (tmp_path / words.pop(words.index("<") + 1)).read_bytes()
            words.remove("<")
        if ">" in words:
            out = tmp_path / words.pop(words.index(">") + 1)
            words.remove(">")
        done = forks.run(*words, stdin=stdin, env=env, cwd=tmp_path)
        assert done.returncode == 0, (line, done.stderr)
        if out is not None:
            out.write_bytes(done.stdout)
        return (done.stdout + done.stderr).decode()

    yield run
    for each in ("orders", "copy"):
        forks.run("topic", "delete", f"{name}-{each}", "--force", "--yes", env=env)


@pytest.mark.usefixtures("ours")
def test_the_commands_do_what_the_page_says(do: Do, tmp_path: Path) -> None:
    (tmp_path / "orders.ndjson").write_text("".join(f'{{"n": {number}}}\n' for number in range(10_000)))

    def task(name: str) -> str:
        return "".join(do(line) for line in TASKS[name])

    assert "10,000 messages stored" in task("publish 10,000 lines of a file")
    assert "no consumer is connected" in task("find why a backlog grows")
    task("set a retention and a quota")
    until(lambda: "100 MiB" in task("see throttling"))  # the box looks at new topics once a second
    assert "to 10,000 messages: no change" in task("reset a cursor by an hour")
    assert "10,000 messages stored" in task("export and restore a topic")
    do("pulsarbox topic policy orders publish-rate 5/s")
    assert "5 messages a second" in task("explain a held producer")


def test_the_other_commands_have_these_options() -> None:
    """Dead letters and waiting need consumers: other tests run these commands."""
    for name in ("replay a dead letter with an edit", "find a poison message", "watch one key"):
        for line in TASKS[name]:
            words = shlex.split(line)[1:]
            context = main.make_context("pulsarbox", words, resilient_parsing=True)
            found, command, rest = main.resolve_command(context, words)
            while command is not None and hasattr(command, "resolve_command"):
                found, command, rest = command.resolve_command(context, rest)
            assert command is not None, name
            command.make_context(found, list(rest), parent=context)

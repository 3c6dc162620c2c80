"""Properties of every command: help with an example, suggestions, completion, and few imports."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner, Result

from pulsarbox import __version__
from pulsarbox.cli.common import terminal_text
from pulsarbox.cli.connect.target import TRUST_NAMES
from pulsarbox.cli.main import COMMANDS, main
from pulsarbox.cli.process.completion import SHELLS


def pulsarbox(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command, as its words on the command line."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def command_of(words: tuple[str, ...]) -> click.Command:
    command: click.Command | None = main
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    return command


ALL = sorted(commands())


@pytest.mark.parametrize("argument", ["version", "--version"])
def test_the_version(argument: str) -> None:
    result = pulsarbox(argument)
    assert (result.exit_code, result.output) == (0, f"pulsarbox {__version__}\n")


def test_the_version_as_json() -> None:
    document = json.loads(pulsarbox("version", "-o", "json").stdout)
    assert document["version"] == __version__
    assert set(document) == {"version", "format", "python"}


def test_force_has_its_short_spelling_everywhere() -> None:
    spelled = {
        words: {each for option in command_of(words).params for each in option.opts}
        for words in ALL
        if words[0] != "admin"  # has the exact vocabulary of pulsar-admin
    }
    forced = [words for words, options in spelled.items() if "--force" in options]
    assert ("topic", "delete") in forced and len(forced) >= 7
    assert [words for words in forced if "-f" not in spelled[words]] == []


def test_every_dry_run_names_the_command_of_the_real_run() -> None:
    """All commands take the option from one place, which reports at the end of a dry run."""
    dry = [
        (words, parameter)
        for words in ALL
        for parameter in command_of(words).params
        if words[0] != "admin" and "--dry-run" in parameter.opts
    ]
    assert len(dry) > 20
    for words, parameter in dry:
        assert isinstance(parameter, click.Option) and parameter.help == "Print the changes without making them.", words


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_listed(name: str) -> None:
    assert f"\n  {name}" in pulsarbox("--help").output


def test_the_commands_are_listed_by_section() -> None:
    output = pulsarbox("--help").output
    sections = ["Messages", "Topics", "Operations", "Development", "Data"]
    assert re.findall(r"^(\w+):$", output, re.MULTILINE) == ["Options", *sections]
    listed = re.findall(r"^  ([a-z]+)  ", output.partition("\nMessages:\n")[2], re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)


def test_connection_options_are_explained_once() -> None:
    for words in (["topic", "list"], ["produce"], ["consume"], ["top"]):
        output = " ".join(pulsarbox(*words, "--help").output.split())
        assert "--data-dir, --token-file and others: `pulsarbox context --help`." in output
        assert "Trusted CA certificates" not in output
    explained = pulsarbox("context", "--help").output
    for name in ("url", "admin_url", "data_dir", "config", *TRUST_NAMES):
        assert f"\n  --{name.replace('_', '-')}" in explained


@pytest.mark.parametrize("words", [(), *ALL], ids=" ".join)
def test_every_command_explains_itself_with_an_example(words: tuple[str, ...]) -> None:
    output = pulsarbox(*words, "--help").output
    assert f"Usage: {' '.join(('main', *words))}" in output
    _, _, examples = output.partition("Examples:")
    assert f"pulsarbox {' '.join(words)}".strip() in examples
    assert pulsarbox(*words, "-h").output == output


@pytest.mark.parametrize(
    "words", [(), *(words for words in ALL if words[0] != "admin" and isinstance(command_of(words), click.Group))]
)
def test_lists_of_commands_say_whole_sentences(words: tuple[str, ...]) -> None:
    _, _, listed = pulsarbox(*words, "--help").output.partition("\nCommands:\n" if words else "\nMessages:\n")
    assert listed
    assert "..." not in listed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["strat"], "no such command 'strat'; did you mean start?"),
        (["storage", "chekc", "data"], "no such command 'chekc'; did you mean check?"),
        (["qqqq"], "no such command 'qqqq'; `main --help` lists them"),
        (["qq\x1b[2J"], "no such command 'qq\\x1b[2J'"),
    ],
)
def test_an_unknown_command_is_exit_code_2_and_told_the_nearest_one(words: list[str], message: str) -> None:
    result = pulsarbox(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_is_given_its_script(shell: str) -> None:
    result = pulsarbox("completion", shell)
    assert result.exit_code == 0
    assert "_PULSARBOX_COMPLETE" in result.stdout


def test_what_the_script_asks_for_is_answered() -> None:
    code = "from pulsarbox.cli.main import main; main(prog_name='pulsarbox')"
    asked = {"_PULSARBOX_COMPLETE": "bash_complete", "COMP_WORDS": "pulsarbox sto", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, timeout=60, check=False
    )
    assert "plain,storage" in done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize(
    ("terminal", "no_color", "coloured"), [(True, "", True), (True, "1", False), (False, "", False)]
)
def test_colours_come_on_a_terminal_only_and_not_with_no_color(
    terminal: bool, no_color: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    assert ("\x1b" in terminal_text.coloured("ok", fg="green")) == coloured
    assert terminal_text.is_coloured("always") and not terminal_text.is_coloured("never")
    monkeypatch.setenv("TERM", "dumb")
    assert not terminal_text.is_coloured()

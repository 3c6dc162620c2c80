"""The commands that the documentation shows: each exists, and takes the options that are shown with it."""

import contextlib
import itertools
import re
import shlex
import textwrap
from pathlib import Path

import click
import pytest

from pulsarbox.cli.main import main
from pulsarbox.config.load import problems_of

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
SHOWN = re.compile(r"^ {4}(?:\$ )?(?P<line>pulsarbox .*)$|`(?P<inline>pulsarbox [^`]+)`", re.MULTILINE)
SETTINGS = re.compile(
    r"^```toml\n(?P<fenced>(?s:.*?))^```$|(?P<indented>^ {4}\[\w+\]\n(?:(?: {4}.*)?\n)+)", re.MULTILINE
)
"""Configuration; by a table in front it is known from a unit of systemd."""
NOT_A_CALL = re.compile(r"\w\|\w|\[|\.\.\.")
"""`a|b` and `[a]` describe calls, and are none."""


def calls() -> list[str]:
    found = {match["line"] or match["inline"] for page in PAGES for match in SHOWN.finditer(page.read_text("utf-8"))}
    return sorted(" ".join(call.split()) for call in found if not NOT_A_CALL.search(call))


def words(call: str) -> list[str]:
    """Up to what the shell takes for itself."""
    shell = shlex.shlex(call, posix=True, punctuation_chars=True)
    shell.whitespace_split = True
    return list(itertools.takewhile(lambda word: not set(word) <= set("();<>|&") or not word, shell))[1:]


def parse(command: click.Command, given: list[str], parent: click.Context | None = None) -> None:
    """Read a command line as far as it can be read without running anything."""
    with command.make_context(command.name, list(given), parent=parent) as context:
        if isinstance(command, click.Group):
            name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            assert found is not None, name
            parse(found, rest, context)


@pytest.mark.parametrize("call", calls())
def test_a_command_that_is_shown_exists_with_its_options(call: str) -> None:
    # --help and --version end so, and groups that are only named; mistakes are other exceptions
    with contextlib.suppress(click.exceptions.Exit, click.exceptions.NoArgsIsHelpError):
        parse(main, words(call))


CLI = (ROOT / "docs" / "cli.md").read_text("utf-8")


def test_every_command_has_its_place_in_the_page_of_commands() -> None:
    table = CLI.partition("\n## Every command\n")[2]
    named = re.findall("`([a-z]+)`", "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|")))
    assert sorted(named) == sorted(main.list_commands(click.Context(main)))
    for linked in re.findall(r"\]\(([a-z-]+\.md)", table):
        assert (ROOT / "docs" / linked).exists()


@pytest.mark.parametrize("name", ["pipeline", "epochs"])
def test_a_group_that_is_described_there_is_whole(name: str) -> None:
    section = CLI.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    group = main.get_command(click.Context(main), name)
    assert isinstance(group, click.Group)
    shown = re.findall(rf"^\| `pulsarbox {name} ([a-z-]+)", section, re.MULTILINE)
    assert sorted(shown) == sorted(group.list_commands(click.Context(group)))


def test_the_commands_of_the_process_are_shown() -> None:
    assert {words(call)[0] for call in calls() if words(call)} >= set(main.list_commands(click.Context(main)))


def configurations() -> list[str]:
    found = [match for page in PAGES for match in SETTINGS.finditer(page.read_text("utf-8"))]
    texts = [match["fenced"] or textwrap.dedent(match["indented"]) for match in found]
    return [text for text in texts if not text.startswith("[Service]")]


@pytest.mark.parametrize("text", configurations(), ids=lambda text: text.split("\n")[0])
def test_a_configuration_that_is_shown_can_be_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "pulsarbox.toml").write_text(text)
    assert problems_of(tmp_path / "pulsarbox.toml") == ((), ())


def anchors(page: Path) -> set[str]:
    """The anchors of a page: its headings as GitHub names them, and those that it sets."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings} | set(
        re.findall(r'<a id="([^"]+)">', text)
    )


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_links_lead_to_pages_and_headings_that_exist(page: Path) -> None:
    for path, anchor in LINK.findall(page.read_text("utf-8")):
        target = (page.parent / path) if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"

"""Hints for the words of other tools, and for arguments that are easily mistaken."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsarbox.cli.common.foreign_hints import COMMANDS, GROUPS
from pulsarbox.cli.main import main
from pulsarbox.cli.messages.produce import file_note


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("namespaces list", "use `main ns list`"),
        ("subscriptions list", "use `main sub list`"),
        ("namespaces", "use `main ns`"),
        ("sub reset-cursor orders s", "use `main sub seek`"),
        ("ns show acme/prod", "use `main ns policy`"),
        ("topic show orders", "use `main topic stats`"),
        ("topic peek orders", "use `main peek`"),
        ("policies orders", "use `main topic policy` or `main ns policy`"),
        ("retention orders", "use `main topic policy` or `main ns policy`"),
        ("seek orders s earliest", "use `main sub seek`"),
        ("replay orders-billing-DLQ", "use `main dlq replay`"),
        ("policy orders", "it is a command of: ns, topic"),
        ("topic delet orders", "did you mean delete?"),
        ("export orders", "pulsarbox consume orders --until end -o ndjson"),
        ("sub seek orders s 1h", "did you mean -1h?"),
    ],
)
def test_words_of_other_tools_name_the_command(words: str, hint: str) -> None:
    done = CliRunner().invoke(main, words.split())
    assert (done.exit_code, hint in done.output) == (2, True), done.output


def test_the_hints_name_commands() -> None:
    for words in {*COMMANDS.values(), *GROUPS.values()}:
        assert CliRunner().invoke(main, [*words.split(), "--help"]).exit_code == 0, words


def test_the_name_of_a_file_as_payload_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "m 1.txt"
    file.write_text("x")
    assert file_note("orders", str(file), template=False).endswith(f"pulsarbox produce orders < '{file}'")
    assert file_note("orders", f"@{file}", template=False).endswith(f"pulsarbox produce orders < '{file}'")
    for payload in (None, "-", "@", "@nobody", "hello", "a\0b", "x" * 100_000, str(tmp_path)):
        assert file_note("orders", payload, template=False) == ""

"""What `pulsarbox` offers on a terminal without arguments."""

import sys

import pytest
from click.testing import CliRunner

from pulsarbox.cli.common import root_command
from pulsarbox.cli.common.first_choice import OFFERS, is_offered
from pulsarbox.cli.main import COMMANDS, main


@pytest.fixture(autouse=True)
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pulsarbox"])
    monkeypatch.setattr(root_command, "is_offered", lambda: True)


def test_the_chosen_command_runs() -> None:
    with CliRunner().isolation("4\n") as (stdout, stderr, _), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert b"Messages:" in stdout.getvalue()
    for offer in OFFERS:
        assert f"pulsarbox {offer.command}".encode() in stderr.getvalue()


def test_end_of_input_is_no_choice() -> None:
    with CliRunner().isolation("") as (stdout, _, _), pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, stdout.getvalue()) == (130, b"")


def test_arguments_are_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pulsarbox", "version"])
    with CliRunner().isolation("") as (_, stderr, _), pytest.raises(SystemExit):
        main()
    assert b"Choose" not in stderr.getvalue()


def test_a_script_gets_help() -> None:
    assert not is_offered()
    assert CliRunner().invoke(main, []).output.startswith("Usage:")


def test_the_offers_are_commands() -> None:
    assert {offer.command.split()[0] for offer in OFFERS} - {"--help"} <= set(COMMANDS)

"""What `pulsarbox` offers on a terminal without arguments."""

import sys

import pytest
from click.testing import CliRunner

from pulsarbox.cli.common import first_choice, root_command
from pulsarbox.cli.common.first_choice import HELP, START, TOUR, WATCH, is_offered, offers
from pulsarbox.cli.main import COMMANDS, main


@pytest.fixture(autouse=True)
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pulsarbox"])
    monkeypatch.setattr(root_command, "is_offered", lambda: True)
    monkeypatch.setattr(first_choice, "box_runs", lambda: True)


def test_the_chosen_command_runs() -> None:
    with CliRunner().isolation("4\n") as (stdout, stderr, _), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert b"Messages:" in stdout.getvalue()
    for offer in offers(running=True):
        assert f"pulsarbox {offer.command}".encode() in stderr.getvalue()


@pytest.mark.parametrize("typed", ["q\n", "x\nQ\n"])
def test_q_quits(typed: str) -> None:
    with CliRunner().isolation(typed) as (stdout, stderr, _), pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, b"Usage" in stdout.getvalue()) == (0, False)
    assert b"  q  quit\n" in stderr.getvalue()


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
    assert {offer.command.split()[0] for offer in offers(running=True)} - {"--help"} <= set(COMMANDS)


@pytest.mark.parametrize("running", [True, False])
def test_a_box_is_watched_only_if_one_runs(monkeypatch: pytest.MonkeyPatch, *, running: bool) -> None:
    monkeypatch.setattr(first_choice, "box_runs", lambda: running)
    assert offers(running)[0] is (WATCH if running else TOUR)
    with CliRunner().isolation("\n") as (_, stderr, _):
        words = first_choice.chosen_words()
    assert words == [("top" if running else "tour")]
    shown = stderr.getvalue().decode()
    assert ("pulsarbox top" in shown, "No box is running" in shown) == (running, not running)
    assert max(map(len, shown.splitlines())) <= 60


def test_all_offers_are_explained() -> None:
    assert set(offers(running=True)) == {START, TOUR, WATCH, HELP}

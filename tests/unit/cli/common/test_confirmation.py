"""Confirmation of changes: the typed name on a terminal, and several objects at once."""

import io
import os
import pty
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from pulsarbox.cli.common.confirmation import agree, agree_to, carry_out, confirm, dry_run_option, matching, real_run
from pulsarbox.cli.common.exits import InTheWay, Misused, NotThere, Partly
from pulsarbox.client.admin import AdminRefused

ASK = (
    "import sys; from pulsarbox.cli.common.confirmation import confirm; from pulsarbox.cli.common.exits import Failed\n"
    "try: confirm('delete {}', {!r}, yes=False, dry_run=False)\n"
    "except Failed as error: error.show(); sys.exit(error.exit_code)\n"
    "print('went on')"
)


def on_a_terminal(code: str, typed: str) -> tuple[int, str]:
    """Run code with a terminal as stdin and stderr, and type a reply to its prompt."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen([sys.executable, "-c", code], stdin=theirs, stdout=theirs, stderr=theirs)
    finally:
        os.close(theirs)
    said = ""
    sent = False
    try:
        while True:
            try:
                part = os.read(ours, 4096).decode()
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
            if not sent and "to continue: " in said:
                sent = True
                os.write(ours, f"{typed}\n".encode())
    finally:
        code_of_end = process.wait(30)
        os.close(ours)
    return code_of_end, said


@pytest.mark.parametrize(
    ("names", "typed", "code"),
    [
        (["orders"], "orders", 0),
        (["orders"], "order", 4),
        (["orders"], "", 4),
        (["orders"], "y", 4),
        (["a", "b"], "2", 0),
        (["a", "b"], "a", 4),
    ],
)
def test_the_name_has_to_be_typed(names: list[str], typed: str, code: int) -> None:
    ended, said = on_a_terminal(ASK.format("it", names), typed)
    assert (ended, "went on" in said) == (code, code == 0)
    assert "This will delete it. It cannot be undone." in said
    assert ("nothing was changed" in said) == (code == 4)


def test_names_cannot_write_to_the_terminal() -> None:
    _, said = on_a_terminal(ASK.format("it", ["a\x1b[31m"]), "x")
    assert "\x1b" not in said


def test_without_a_terminal_yes_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(Misused, match="this would delete x: without a terminal to confirm on, specify --yes"):
        confirm("delete x", ["x"], yes=False, dry_run=False)
    confirm("delete x", ["x"], yes=True, dry_run=False)
    confirm("delete x", ["x"], yes=False, dry_run=True)


def refuse() -> None:
    raise AdminRefused(404, "no such thing", "DELETE")


def test_all_are_done_and_what_fails_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[str] = []
    things = [
        ("deleted topic", "a", lambda: done.append("a")),
        ("deleted topic", "b", refuse),
        ("deleted topic", "c", lambda: done.append("c")),
    ]
    with pytest.raises(Partly, match="1 of 3 could not be deleted"):
        carry_out(things, dry_run=False)
    printed = capsys.readouterr()
    assert (done, printed.out) == (["a", "c"], "deleted topic a\ndeleted topic c\n")
    assert printed.err == "pulsarbox: b: no such thing\n"


def test_the_only_one_that_fails_says_why_and_so_do_all_that_fail(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotThere, match="no such thing"):
        carry_out([("deleted", "b", refuse)], dry_run=False)
    with pytest.raises(NotThere, match="none of 2 could be deleted"):
        carry_out([("deleted", "a", refuse), ("deleted", "b", refuse)], dry_run=False)
    assert capsys.readouterr().out == ""


def test_a_dry_run_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    carry_out([("deleted topic", "a\x1b", refuse)], dry_run=True)
    assert capsys.readouterr().out == "would have deleted topic a\\x1b\n"


def test_a_dry_run_reports_what_the_real_run_would_miss(capsys: pytest.CaptureFixture[str]) -> None:
    def check(name: str) -> None:
        if name == "gone":
            raise NotThere("no such thing")

    with pytest.raises(Partly, match="1 of 2 could not be kicked"):
        carry_out([("kicked", "7", refuse), ("kicked", "gone", refuse)], dry_run=True, check=check)
    assert capsys.readouterr().out == "would have kicked 7\n"


def test_patterns() -> None:
    assert matching("a*", ["a1", "b", "a2"]) == ["a1", "a2"]
    with pytest.raises(NotThere, match=r"nothing matches 'x\*'"):
        matching("x*", ["a"])
    assert issubclass(NotThere, click.ClickException)


@pytest.mark.parametrize("typed", ["y\n", "Yes\n"])
def test_a_change_that_can_be_undone_needs_only_a_yes(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    agree("Set it?")


def test_a_loss_needs_a_yes_where_none_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))  # not a terminal
    with pytest.raises(Misused, match="this would skip 5 messages: without a terminal to confirm on, specify --yes"):
        agree_to("Move it", "skip 5 messages", yes=False, dry_run=False)
    agree_to("Move it", "", yes=False, dry_run=False)
    agree_to("Move it", "skip 5 messages", yes=True, dry_run=False)
    agree_to("Move it", "skip 5 messages", yes=False, dry_run=True)


@pytest.mark.parametrize("typed", ["", "\n", "n\n", "orders\n"])
def test_anything_but_a_yes_changes_nothing(
    typed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    with pytest.raises(InTheWay, match="nothing was changed"):
        agree("Set \x1b[2J it?")
    assert capsys.readouterr().err == "Set \\x1b[2J it? [y/N] "


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["/bin/pulsarbox", "sub", "clear", "a b", "--dry-run", "s"], "pulsarbox sub clear 'a b' s"),
        (["pulsarbox", "ns", "delete", "x", "--auth-params", "token:abc"], "pulsarbox ns delete x --auth-params ..."),
        (["pulsarbox", "ns", "delete", "x", "--auth-params=token:abc"], "pulsarbox ns delete x --auth-params=..."),
        (["pulsarbox"], "pulsarbox"),
    ],
)
def test_the_command_of_the_real_run(words: list[str], shown: str) -> None:
    assert real_run(words) == shown


@pytest.mark.parametrize(("words", "told"), [(["--dry-run"], True), ([], False)])
def test_a_dry_run_says_so_at_its_end(words: list[str], told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pulsarbox", "change", *words])

    @click.command()
    @dry_run_option
    def change(dry_run: bool) -> None:
        carry_out([("deleted", "it", lambda: None)], dry_run=dry_run)

    done = CliRunner().invoke(change, words)
    assert done.stdout == ("would have deleted it\n" if told else "deleted it\n")
    said = "pulsarbox: dry run: nothing was changed; for the real run: pulsarbox change\n"
    assert done.stderr == (said if told else "")

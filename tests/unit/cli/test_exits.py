"""What a command ends with, for everything that can end it early."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import click
import pytest
from click.testing import CliRunner

from pulsarbox import errors
from pulsarbox.cli import exits
from pulsarbox.client.admin import Refused


def ends_with(work: Callable[[], object]) -> tuple[int, str]:
    result = CliRunner().invoke(click.Command("x", callback=lambda: exits.run(work)))
    return result.exit_code, result.stderr


def raising(error: BaseException) -> Callable[[], object]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.PulsarBoxError("x"), 1),
        (errors.PersistenceError("x"), 1),
        (errors.NamingError("x"), 2),
        (errors.InvalidTopicName("x"), 2),
        (errors.TopicNotFound("x"), 3),
        (errors.NamespaceNotFound("x"), 3),
        (errors.SubscriptionNotFound("x"), 3),
        (errors.ConsumerBusy("x"), 4),
        (errors.ProducerBusy("x"), 4),
        (errors.ProducerFenced("x"), 4),
        (errors.TopicTerminated("x"), 4),
        (errors.ServiceNotReady("x"), 6),
    ],
)
def test_errors_of_a_broker(error: errors.PulsarBoxError, code: int) -> None:
    assert ends_with(raising(error)) == (code, "pulsarbox: x\n")


def test_who_is_asked_for_a_name_is_told_how_to_give_one() -> None:
    assert ends_with(raising(errors.AuthenticationError("x"))) == (5, f"pulsarbox: x: {exits.WHO}\n")


def test_an_error_without_a_text_is_named() -> None:
    assert ends_with(raising(errors.ConsumerBusy())) == (4, "pulsarbox: ConsumerBusy\n")


@pytest.mark.parametrize(
    ("status", "code"), [(400, 1), (401, 5), (403, 5), (404, 3), (409, 4), (412, 2), (500, 1), (503, 6)]
)
def test_answers_of_the_admin_api(status: int, code: int) -> None:
    assert exits.ending_of_status(status, "").exit_code == code
    advice = {401: f": {exits.WHO}"}.get(status, "")
    assert exits.ending_of_status(status, "").message == f"HTTP {status}{advice}"


@pytest.mark.parametrize(
    ("status", "method", "code"),
    [(400, "GET", 2), (406, "POST", 2), (422, "POST", 2), (403, "GET", 5), (412, "POST", 2), (412, "DELETE", 4)],
)
def test_refusals_of_the_admin_api_end_any_command_alike(status: int, method: str, code: int) -> None:
    assert ends_with(raising(Refused(status, "no", method)))[0] == code


def test_how_to_be_granted_something_is_said_once() -> None:
    text = "'ann' has no permission to consume on persistent://a/b/c"
    assert exits.ending_of_status(403, f"{text}: admins of the tenant can grant it").message == f"{text}: {exits.MAY}"


def test_who_may_not_is_told_who_can_help_and_of_superusers_nobody_can() -> None:
    text = "Client is not authorized to Produce"
    assert ends_with(raising(errors.AuthorizationError(text))) == (5, f"pulsarbox: {text}: {exits.MAY}\n")
    reason = "This operation requires super-user access: 'x' is none of superUserRoles"
    assert exits.ending_of_status(403, reason).message == reason


def test_what_a_broker_says_cannot_move_the_cursor() -> None:
    assert ends_with(raising(errors.NotFound("a\x1b[2Jb\n"))) == (3, "pulsarbox: a\\x1b[2Jb\\n\n")


def test_ctrl_c() -> None:
    assert ends_with(raising(KeyboardInterrupt())) == (130, "pulsarbox: interrupted\n")


def endings() -> Iterator[type[exits.Failed]]:
    return (each for each in vars(exits).values() if isinstance(each, type) and issubclass(each, exits.Failed))


def test_each_ending_has_a_code_of_its_own() -> None:
    assert sorted(each.exit_code for each in endings()) == [1, 2, 3, 4, 5, 6, 7, 8, 129, 130]


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    code = (
        "import sys, click\nfrom pulsarbox.cli import exits\n"
        "def work():\n    while True:\n        sys.stdout.buffer.write(b'x' * 4096)\n"
        "click.Command('x', callback=lambda: exits.run(work))()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("text", "helps"),
    [
        ("'ann' has no permission to produce on persistent://public/default/t", True),
        ("Unauthorized to validateTopicOperation for operation [PRODUCE]", True),
        ("'ann' may not use the subscription s: it is kept for other roles", True),
        ("'ann' has no permission: that is for superUserRoles", False),
        ("Cluster [elsewhere] is not in the list of allowed clusters list for tenant [t]", False),
    ],
)
def test_what_nobody_can_grant_is_not_advised(text: str, helps: bool) -> None:
    assert exits.ending_of_status(403, text).message == (f"{text}: {exits.MAY}" if helps else text)

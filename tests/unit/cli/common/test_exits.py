"""Exit codes of commands, for every way to end early."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import click
import pytest
from click.testing import CliRunner

from pulsarbox import errors
from pulsarbox.cli.common import exits
from pulsarbox.client.admin import AdminRefused


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
        (errors.PulsarBoxError, 1),
        (errors.MetadataError, 1),
        (errors.PersistenceError, 1),
        (errors.StoreFull, 1),
        (errors.NotEnoughBookies, 1),
        (errors.TooFewCopies, 1),
        (errors.SubscriptionFenced, 1),
        (errors.EntryDamaged, 1),
        (errors.ChecksumError, 1),
        (errors.UnsupportedVersion, 1),
        (errors.TooManyRequests, 1),
        (errors.NotAllowed, 1),
        (errors.NotSupported, 1),
        (errors.TransactionsDisabled, 1),
        (errors.TransactionTimeoutTooLong, 1),
        (errors.NamingError, 2),
        (errors.InvalidTopicName, 2),
        (errors.InvalidSchema, 2),
        (errors.PreconditionFailed, 2),
        (errors.BadRequest, 2),
        (errors.NotAcceptable, 2),
        (errors.PayloadTooLarge, 1),
        (errors.Unprocessable, 2),
        (errors.TopicNotFound, 3),
        (errors.NamespaceNotFound, 3),
        (errors.SubscriptionNotFound, 3),
        (errors.ConsumerNotFound, 3),
        (errors.TransactionCoordinatorNotFound, 3),
        (errors.TransactionNotFound, 3),
        (errors.NotFound, 3),
        (errors.SinkUnused, 3),
        (errors.ConsumerBusy, 4),
        (errors.ProducerBusy, 4),
        (errors.ProducerFenced, 4),
        (errors.ProducerHeld, 4),
        (errors.ProducerQuotaExceeded, 4),
        (errors.TopicTerminated, 4),
        (errors.IncompatibleSchema, 4),
        (errors.ConsumerAssignError, 4),
        (errors.InvalidTxnStatus, 4),
        (errors.TransactionConflict, 4),
        (errors.Conflict, 4),
        (errors.EpochBehind, 4),
        (errors.SinkOfAnotherWriter, 4),
        (errors.SinkTakenOver, 4),
        (errors.RunReplaced, 4),
        (errors.AuthenticationError, 5),
        (errors.AuthorizationError, 5),
        (errors.ServiceNotReady, 6),
        (errors.UnknownListener, 6),
    ],
)
def test_every_error_of_the_table_has_one_exit_code_on_both_ports(
    error: type[errors.PulsarBoxError], code: int
) -> None:
    counted = {errors.EntryDamaged: (1, 0, 0, "x"), errors.TooFewCopies: (1, "x")}
    made = error(*counted.get(error, ("x",)))
    assert ends_with(raising(made))[0] == code
    if error not in (errors.ChecksumError, errors.UnsupportedVersion):  # never returned by the Admin API
        for method in ("GET", "POST", "DELETE"):
            assert ends_with(raising(AdminRefused(error.http_status, "x", method)))[0] == code
            assert exits.ending_of_status(error.http_status, "x", method).exit_code == code


def test_the_list_above_has_every_error_of_the_table() -> None:
    marks = getattr(test_every_error_of_the_table_has_one_exit_code_on_both_ports, "pytestmark", [])
    listed = {case[0] for mark in marks for case in mark.args[1]}
    assert listed == {
        each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.PulsarBoxError)
    }


@pytest.mark.parametrize(
    ("reason", "code", "forced"),
    [
        ("Topic has active producers/subscriptions", 4, True),
        ("Topic has subscriptions", 4, True),
        ("Topic has 1 client connected Including 1 consumers, 0 producers, and 0 replicators.", 4, True),
        ("Topic persistent://a/b/c has 1 connected producers/consumers: 1 consumers, 0 producers", 4, True),
        ("Subscription has active connected consumers", 4, True),
        ("Subscription s has active connected consumers", 4, True),
        ("Failed for Subscription Busy: the cursor is being reset", 4, False),
        ("ResourceGroup is in use", 4, False),
        ("Cluster not empty", 4, False),
        ("ResourceGroup does not exist", 3, False),
        ("Peer cluster [x] not exists.", 3, False),
        ("Topic does not exist and cannot be auto-created", 3, False),
        ("Invalid value for message TTL", 2, False),
        ("Tenant name is not valid", 2, False),
        ("Can't update non-dynamic configuration", 2, False),
    ],
)
def test_what_pulsar_calls_a_precondition(reason: str, code: int, forced: bool) -> None:
    for method in ("POST", "DELETE"):
        ended = exits.ending(AdminRefused(412, reason, method))
        assert ended.exit_code == code
        assert exits.ending_of_status(412, reason, method).exit_code == code
        assert ("use --force to delete it anyway" in ended.message) == (forced and method == "DELETE")


def test_who_is_asked_for_a_name_is_told_how_to_give_one() -> None:
    assert ends_with(raising(errors.AuthenticationError("x"))) == (5, f"pulsarbox: x: {exits.WHO}\n")


def test_an_error_without_a_text_is_named() -> None:
    assert ends_with(raising(errors.ConsumerBusy())) == (4, "pulsarbox: ConsumerBusy\n")


@pytest.mark.parametrize(
    ("status", "code"), [(400, 2), (401, 5), (403, 5), (404, 3), (409, 4), (412, 2), (500, 1), (503, 6)]
)
def test_answers_of_the_admin_api(status: int, code: int) -> None:
    assert exits.ending_of_status(status, "").exit_code == code
    advice = {401: f": {exits.WHO}"}.get(status, "")
    assert exits.ending_of_status(status, "").message == f"HTTP {status}{advice}"


@pytest.mark.parametrize(
    ("status", "method", "code"),
    [(400, "GET", 2), (406, "POST", 2), (422, "POST", 2), (403, "GET", 5), (412, "POST", 2), (409, "DELETE", 4)],
)
def test_refusals_of_the_admin_api_end_any_command_alike(status: int, method: str, code: int) -> None:
    assert ends_with(raising(AdminRefused(status, "no", method)))[0] == code


def test_how_to_be_granted_something_is_said_once() -> None:
    text = "'ann' has no permission to consume on persistent://a/b/c"
    assert exits.ending_of_status(403, f"{text}: admins of the tenant can grant it").message == f"{text}: {exits.MAY}"


def test_who_may_not_is_told_who_can_help_and_of_superusers_nobody_can() -> None:
    text = "Client is not authorized to Produce"
    assert ends_with(raising(errors.AuthorizationError(text))) == (5, f"pulsarbox: {text}: {exits.MAY}\n")
    reason = "This operation requires super-user access: 'x' is not in superUserRoles"
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
        "import sys, click\nfrom pulsarbox.cli.common import exits\n"
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

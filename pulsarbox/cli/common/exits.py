"""How a command ends: one exception for each exit code, and which of them an error of a broker becomes.

``docs/operations.md`` has the table. Raise one of these from anywhere in a command; click
prints it and ends the process.
"""

import os
import re
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Final, TextIO, TypeVar

import click

from pulsarbox import errors
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.client.errors import NoAnswer, NotConnected

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_NOT_FOUND: Final = 3
EXIT_CONFLICT: Final = 4
EXIT_DENIED: Final = 5
EXIT_UNREACHABLE: Final = 6
EXIT_TIMEOUT: Final = 7
EXIT_PARTIAL: Final = 8
EXIT_HUNG_UP: Final = 129
"""As a shell reports a process that SIGHUP has ended."""
EXIT_INTERRUPTED: Final = 130


class Failed(click.ClickException):
    """It failed, for a reason that none of the others names. The message says what to do as well."""

    exit_code: ClassVar[int] = EXIT_FAILED

    def show(self, file: TextIO | None = None) -> None:  # type: ignore[override] # click: IO[Any]
        """One line on stderr, in the voice of ``say``; the message may quote a broker, so it is cleaned."""
        click.echo(f"pulsarbox: {clean(self.message)}", file=file or sys.stderr)


class Misused(Failed):
    """Options that do not go together, or a value that cannot be used."""

    exit_code = EXIT_USAGE


class NotThere(Failed):
    """What the command is about does not exist."""

    exit_code = EXIT_NOT_FOUND


class InTheWay(Failed):
    """It exists already, is in use, or is in a state that forbids the request."""

    exit_code = EXIT_CONFLICT


class Denied(Failed):
    """Who asked did not prove who it is, or may not do this."""

    exit_code = EXIT_DENIED


class Unreachable(Failed):
    """Nobody answers where the broker should be."""

    exit_code = EXIT_UNREACHABLE


class TimedOut(Failed):
    """No answer in time, or ``--until`` was not reached."""

    exit_code = EXIT_TIMEOUT


class Partly(Failed):
    """Some of it was done, some was not."""

    exit_code = EXIT_PARTIAL


class Interrupted(Failed):
    """Ctrl-C."""

    exit_code = EXIT_INTERRUPTED


class HungUp(Failed):
    """The terminal that a command writes to was closed."""

    exit_code = EXIT_HUNG_UP

    def __init__(self) -> None:
        super().__init__("the terminal was closed")


WHO: Final = "say who you are with --token-file, PULSARBOX_TOKEN, --auth-plugin or a context (docs/security.md)"
MAY: Final = (
    "an admin of the tenant grants it with `pulsarbox admin namespaces grant-permission` (docs/authorization.md)"
)

_GRANT: Final = ": admins of the tenant can grant it"
"""What a box says itself, for clients that have nobody to say it better."""
_HELP: Final = {401: WHO, 403: MAY}
"""What to do, behind what the broker says."""
_OF_ROLES: Final = "permission|authorized|kept for other roles"
"""How brokers say that a role may not, this one and Pulsar's."""

_BY_STATUS: Final = {
    400: Misused,
    401: Denied,
    403: Denied,
    404: NotThere,
    406: Misused,
    408: TimedOut,
    409: InTheWay,
    412: Misused,
    422: Misused,
    503: Unreachable,
    504: TimedOut,
}
"""By HTTP status, which the error table has for each error of the Pulsar protocol too."""
_CONNECTED: Final = r"\bhas (\d+ )?(active|clients?|connected|subscriptions)\b"
_PRECONDITIONS: Final = (
    (re.compile(rf"{_CONNECTED}|\bin use\b|\bbusy\b|\bnot empty\b", re.IGNORECASE), InTheWay),
    (re.compile(r"\b(does not|not) exists?\b", re.IGNORECASE), NotThere),
)
"""Brokers answer 412 to wrong values, and with these words to requests that something is in the way of."""
_OF_CLIENTS: Final = (errors.ChecksumError, errors.UnsupportedVersion)
"""Their status is that of a wrong request, which no command makes: something is wrong with the program."""


def ending(error: errors.PulsarBoxError) -> Failed:
    """Return the ending of a command that met this error of a broker, on either of its ports."""
    status = getattr(error, "status", None)
    if status is not None:
        return ending_of_status(status, str(error), getattr(error, "method", ""))
    text = str(error) or type(error).__name__
    if isinstance(error, NotConnected):
        return Unreachable(text)
    if isinstance(error, NoAnswer):
        return TimedOut(text)
    if isinstance(error, _OF_CLIENTS):
        return Failed(text)
    return ending_of_status(error.http_status, text)


def ending_of_status(status: int, message: str, method: str = "") -> Failed:
    """Return the ending of a command that was answered this HTTP status (400 and up) by the Admin API."""
    kind: type[Failed] = _BY_STATUS.get(status, Failed)
    if status == 412:
        kind = next((kind for words, kind in _PRECONDITIONS if words.search(message)), kind)
    if kind is InTheWay and method == "DELETE" and re.search(_CONNECTED, message, re.IGNORECASE):
        message += ": --force deletes it nevertheless"
    return kind(_with_help(message or f"HTTP {status}", status))


def _with_help(text: str, status: int) -> str:
    # Much is forbidden (403) that nobody can grant: what is for superusers, and what is not about roles at all.
    can_be_granted = re.search(_OF_ROLES, text, re.IGNORECASE) and "superUserRoles" not in text
    if status not in _HELP or (status == 403 and not can_be_granted):
        return text
    return f"{text.removesuffix(_GRANT)}: {_HELP[status]}"


_T = TypeVar("_T")


def run(work: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
    """Do the work of a command; whatever ends it early becomes one of the endings above.

    Ctrl-C is 130, an error of the broker what the table says, a reader of stdout that has seen enough (``| head``) is
    no failure: exit code 0, nothing is said.
    """
    try:
        return work(*args, **kwargs)
    except errors.PulsarBoxError as error:
        raise ending(error) from error
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    except BrokenPipeError:
        abandon_stdout()
        raise click.exceptions.Exit(EXIT_OK) from None


def abandon_stdout() -> None:
    """Whoever read stdout is gone: what is still buffered goes nowhere, so the end of the process says nothing."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)

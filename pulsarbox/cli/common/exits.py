"""Exit codes: one exception per code, and the mapping of broker errors to them.

``docs/operations.md`` has the table. Any part of a command may raise one of these; click prints it and exits.
"""

import functools
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
"""128 + SIGHUP, as a shell reports it."""
EXIT_INTERRUPTED: Final = 130
EXIT_TERMINATED: Final = 143
"""Exit code of a command that SIGTERM has stopped."""


class Failed(click.ClickException):
    """General failure, covered by no other class. The message includes what to do."""

    exit_code: ClassVar[int] = EXIT_FAILED

    def show(self, file: TextIO | None = None) -> None:  # type: ignore[override] # click: IO[Any]
        """Print one line on stderr, formatted like ``say``. Sanitized, because the message may quote a broker."""
        click.echo(f"pulsarbox: {clean(self.message)}", file=file or sys.stderr)


class Misused(Failed):
    """Conflicting options, or an invalid value."""

    exit_code = EXIT_USAGE


class NotThere(Failed):
    """The named object does not exist."""

    exit_code = EXIT_NOT_FOUND


class InTheWay(Failed):
    """The object already exists, is in use, or is in a state that forbids the request."""

    exit_code = EXIT_CONFLICT


class Denied(Failed):
    """The client is not authenticated or not authorized."""

    exit_code = EXIT_DENIED


class Unreachable(Failed):
    """The broker does not answer at its address."""

    exit_code = EXIT_UNREACHABLE


class TimedOut(Failed):
    """No response in time, or ``--until`` was not reached."""

    exit_code = EXIT_TIMEOUT


class Partly(Failed):
    """Some of the changes succeeded and some failed."""

    exit_code = EXIT_PARTIAL


class Interrupted(Failed):
    """Ctrl-C."""

    exit_code = EXIT_INTERRUPTED


class HungUp(Failed):
    """The terminal of the command was closed."""

    exit_code = EXIT_HUNG_UP

    def __init__(self) -> None:
        super().__init__("the terminal was closed")


WHO: Final = "authenticate with --token-file, PULSARBOX_TOKEN, --auth-plugin or a context (docs/security.md)"
MAY: Final = "a tenant admin can grant it with `pulsarbox admin namespaces grant-permission` (docs/authorization.md)"

_HELP: Final = {401: WHO, 403: MAY}
"""Advice to append to the broker's message, by HTTP status."""
_OF_ROLES: Final = "permission|authorized|kept for other roles"
"""Words in authorization errors of pulsarbox and of Apache Pulsar."""

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
"""Exit by HTTP status. The error table assigns a status to errors of the binary protocol, too."""
_CONNECTED: Final = r"\bhas (\d+ )?(active|clients?|connected|subscriptions)\b"
_PRECONDITIONS: Final = (
    (re.compile(rf"{_CONNECTED}|\bin use\b|\bbusy\b|\bnot empty\b", re.IGNORECASE), InTheWay),
    (re.compile(r"\b(does not|not) exists?\b", re.IGNORECASE), NotThere),
)
"""Brokers answer 412 to invalid values, and, with these words, to conflicting requests."""
_OF_CLIENTS: Final = (errors.ChecksumError, errors.UnsupportedVersion)
"""Errors with a client-error status that no command can cause: these are failures of the program."""


def ending(error: errors.PulsarBoxError) -> Failed:
    """Return the exit for a broker error, from the binary protocol or the Admin API."""
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
    """Return the exit for an HTTP error status (400 and up) of the Admin API."""
    kind: type[Failed] = _BY_STATUS.get(status, Failed)
    if status == 412:
        kind = next((kind for words, kind in _PRECONDITIONS if words.search(message)), kind)
    if kind is InTheWay and method == "DELETE" and re.search(_CONNECTED, message, re.IGNORECASE):
        message += ": use --force to delete it anyway"
    return kind(_with_help(message or f"HTTP {status}", status))


def _with_help(text: str, status: int) -> str:
    # Not every 403 can be granted: some requests need a superuser, and some have nothing to do with roles.
    can_be_granted = re.search(_OF_ROLES, text, re.IGNORECASE) and "superUserRoles" not in text
    if status not in _HELP or (status == 403 and not can_be_granted):
        return text
    return f"{text.removesuffix(errors.GRANT_HINT)}: {_HELP[status]}"


_T = TypeVar("_T")


def run(work: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
    """Run the body of a command and map its exceptions to the exits above.

    Ctrl-C exits with 130. A closed pipe on stdout (``| head``) is no failure: exit silently with 0.
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


def ended_by_reader(command: Callable[..., _T]) -> Callable[..., _T]:
    """Wrap a command that prints much or may be piped, so that a closed pipe is no failure: see ``run``."""

    @functools.wraps(command)
    def called(*args: Any, **kwargs: Any) -> _T:
        return run(command, *args, **kwargs)

    return called


def abandon_stdout() -> None:
    """Redirect stdout to /dev/null, so that flushing its buffer at exit raises no error after the reader is gone."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)

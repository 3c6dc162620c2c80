"""Root command: setup and error handling shared by all commands."""

import contextlib
import errno
import sys
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import EXIT_INTERRUPTED, EXIT_OK, Failed, HungUp, Misused, abandon_stdout
from pulsarbox.cli.common.first_choice import chosen_words, is_offered
from pulsarbox.cli.common.lazy_group import LazyGroup

_UTF8: Final = "utf-8"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing to a stdout that can take no more data."""


class Root(LazyGroup):
    """Group of all commands. Turns errors of stdout and of argument encoding into messages instead of tracebacks."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        _never_fail_for_a_letter()
        if not args and "args" not in kwargs and len(sys.argv) == 1 and is_offered():
            kwargs["args"] = _chosen()
        try:
            return super().main(*args, **kwargs)
        except UnicodeEncodeError as error:
            if error.encoding != _UTF8:
                raise
            _end(Misused(f"'{error.object}' is not valid UTF-8; names must be UTF-8 text"))
        except OSError as error:
            if error.errno not in _FULL or error.filename is not None:
                raise
            from pulsarbox.cli.common.terminal import is_closed

            if error.errno == errno.EIO and (is_closed(1) or is_closed(2)):
                _end(HungUp())
            _end(Failed(f"cannot write the output: {error.strerror}"))


def _chosen() -> list[str]:
    try:
        words = chosen_words()
    except click.Abort:
        click.echo("", err=True)
        sys.exit(EXIT_INTERRUPTED)
    if words is None:
        sys.exit(EXIT_OK)
    return words


def _never_fail_for_a_letter() -> None:
    """Escape characters that the encoding of stdout or stderr cannot represent, instead of raising."""
    streams: tuple[Any, Any] = (sys.stdout, sys.stderr)
    for stream in streams:
        encoding = getattr(stream, "encoding", None)
        if encoding is not None and encoding.lower() != _UTF8:
            with contextlib.suppress(AttributeError, ValueError):  # not a text stream of the io module
                stream.reconfigure(errors="backslashreplace")


def _end(failure: Failed) -> None:
    abandon_stdout()
    with contextlib.suppress(OSError):
        failure.show()
    sys.exit(failure.exit_code)

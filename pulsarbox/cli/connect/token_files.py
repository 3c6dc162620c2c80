"""Files of tokens and keys, readable only by their owner."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from pulsarbox.cli.common.exits import Misused

_F = TypeVar("_F", bound=Callable[..., Any])


def token_options(command: _F) -> _F:
    """Add the options of ``read_token`` to a command.

    A token argument is visible in the process list; a file, stdin or a variable is not.
    """
    command = click.option("-f", "--token-file", metavar="FILE", help="Read the token from a file.")(command)
    command = click.option("-i", "--stdin", "from_stdin", is_flag=True, help="Read the token from stdin.")(command)
    return click.argument("token", required=False)(command)


def read_token(token: str | None, from_stdin: bool, file: str | None, variable: str) -> str:
    """Return the token from the argument, the first line of stdin, a file, or a variable. Raises Misused."""
    if token is not None:
        return token
    if from_stdin:
        return sys.stdin.readline()
    if file is not None:
        try:
            return Path(file).expanduser().read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Misused(f"{file}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    found = os.environ.get(variable)
    if found is None:
        raise Misused(f"no token: specify one as an argument, with --stdin or --token-file, or in ${variable}")
    return found


def write(file: str | Path, data: bytes, mode: int = 0o600, *, replace: bool = True) -> None:
    """Write a file with this mode. Raises Misused, or FileExistsError for an existing file without ``replace``."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if replace else os.O_EXCL)
    try:
        with os.fdopen(os.open(file, flags, mode), "wb") as out:
            out.write(data)
    except FileExistsError:
        raise
    except OSError as error:
        raise Misused(f"{file}: {error.strerror}") from None

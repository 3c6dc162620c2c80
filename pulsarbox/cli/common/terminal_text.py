"""Text for a terminal."""

import contextlib
import os
import sys
import time
from typing import Any, Final

import click

from pulsarbox.cleaning import clean

__all__ = ["OUTPUT", "ago", "clean", "coloured", "diagnose", "megabytes", "say"]

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))

OUTPUT: Final = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Text for the eye, or JSON with names that stay.",
)
"""The option of commands that print data."""


def say(text: str) -> None:
    """Print one line of diagnostics on stderr, in the name of the program."""
    diagnose(f"pulsarbox: {clean(text)}")


def diagnose(text: str) -> None:
    """Print diagnostics on stderr. Without anybody to read them, as on a closed terminal, the work goes on."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


def coloured(text: str, **style: Any) -> str:
    """In a colour, where stdout is a terminal and NO_COLOR is not set. Colour says nothing that the text does not."""
    return click.style(text, **style) if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else text


def megabytes(size: int) -> str:
    """Bytes for the eye."""
    if size < 1 << 10:
        return f"{size} B"
    for unit, bits in (("KiB", 10), ("MiB", 20)):
        if size < 1 << (bits + 10):
            return f"{size / (1 << bits):.1f} {unit}"
    return f"{size / (1 << 30):,.2f} GiB"


def ago(millis: int) -> str:
    """How long ago a time was, in its largest unit."""
    seconds = max(0, int(time.time() - millis / 1000))
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return "now"

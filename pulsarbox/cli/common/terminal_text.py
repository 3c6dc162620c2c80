"""Text output on a terminal: diagnostics, colours, sizes and ages."""

import contextlib
import json
import os
import sys
import time
from typing import Any, Final

import click

from pulsarbox.cleaning import clean

__all__ = ["OUTPUT", "ago", "clean", "coloured", "diagnose", "megabytes", "notify"]

_WHOLE_FROM: Final = 99.95
"""Number from which a size has no decimals."""
_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


class _DocumentForm(click.Choice[str]):
    """Output format of one document. ``text`` is the former word for ``table``."""

    def __init__(self) -> None:
        super().__init__(("table", "json", "yaml"))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the format."""
        return super().convert("table" if value == "text" else value, param, ctx)


OUTPUT: Final = click.option(
    "-o",
    "--output",
    type=_DocumentForm(),
    default="table",
    show_default=True,
    help="Output format. Field names of JSON and YAML are stable.",
)
"""The -o option of commands that print one document."""


def print_document(document: Any, output: str) -> None:
    """Print a document as ``json`` or ``yaml``."""
    if output == "yaml":
        from pulsarbox.cli.common.yaml_text import to_yaml

        click.echo(f"---\n{to_yaml(document)}", nl=False)
    else:
        click.echo(json.dumps(document, indent=2))


def notify(text: str) -> None:
    """Print one diagnostic line on stderr, prefixed with the program name."""
    diagnose(f"pulsarbox: {clean(text)}")


def diagnose(text: str) -> None:
    """Print diagnostics on stderr. Ignore errors, such as those of a closed terminal."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


def coloured(text: str, **style: Any) -> str:
    """Style a text if stdout is a terminal and NO_COLOR is unset. Colour must carry no information of its own."""
    return click.style(text, **style) if is_coloured() else text


def is_coloured(choice: str = "auto") -> bool:
    """Return whether to use colours: ``always``, ``never``, or ``auto`` for terminals, unless NO_COLOR is set."""
    if choice != "auto":
        return choice == "always"
    if sys.stdout is None or not sys.stdout.isatty():  # None: the process was started with stdout closed
        return False
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number with its noun: ``1 backup``, ``1,000 entries``. ``several`` is the plural unless it adds an s."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def megabytes(size: int) -> str:
    """Format a size in bytes in its largest fitting unit: ``12 B``, ``1.5 GiB``, ``100 KiB``."""
    if size < 1 << 10:
        return f"{size} B"
    unit, bits = next((each for each in (("KiB", 10), ("MiB", 20)) if size < 1 << (each[1] + 10)), ("GiB", 30))
    number = size / (1 << bits)
    return f"{number:,.1f} {unit}" if number < _WHOLE_FROM else f"{number:,.0f} {unit}"


def ago(millis: int) -> str:
    """Format the time since an instant (ms since 1970) in its largest unit."""
    seconds = max(0, int(time.time() - millis / 1000))
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return "now"

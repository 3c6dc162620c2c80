"""What the parts of the storage benchmark share: what they are told, and the lines that they find."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table


class Line(NamedTuple):
    """One number that was measured."""

    title: str
    figure: str
    value: float
    unit: str


@dataclass(frozen=True)
class Options:
    """What a part is told."""

    scale: float
    backlog_gib: float
    rest_seconds: float
    disk: Path | None
    """Where data directories are made; the system's place for temporary files where it is not said."""
    command: tuple[str, ...]
    """The program that measures a row of the other benchmark: it fills boxes."""


def say(text: str) -> None:
    print(f"bench-storage: {text}", file=sys.stderr, flush=True)


@contextmanager
def folder(options: Options) -> Iterator[Path]:
    """A directory that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="pulsarbox-bench-", dir=options.disk) as path:
        yield Path(path)


def text_of(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:,.3g}"


def show(lines: list[Line], scale: float) -> None:
    table = Table(title=f"storage, scale {scale:g}")
    for column in ("measure", "figure"):
        table.add_column(column)
    table.add_column("value", justify="right")
    table.add_column("unit")
    before = ""
    for line in lines:
        table.add_row("" if line.title == before else line.title, line.figure, text_of(line.value), line.unit)
        before = line.title
    Console().print(table)

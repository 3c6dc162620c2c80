"""Options and result lines shared by the parts of the storage benchmark."""

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
    """One measured figure."""

    title: str
    figure: str
    value: float
    unit: str


@dataclass(frozen=True)
class Options:
    """Options of a part."""

    scale: float
    backlog_gib: float
    rest_seconds: float
    disk: Path | None
    """Parent of the data directories; None for the system's temporary directory."""
    command: tuple[str, ...]
    """Driver of the main benchmark, which fills boxes."""


def say(text: str) -> None:
    print(f"bench-storage: {text}", file=sys.stderr, flush=True)


@contextmanager
def folder(options: Options) -> Iterator[Path]:
    """Provide a temporary directory."""
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

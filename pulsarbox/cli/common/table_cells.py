"""Cells of tables for people: sizes, times and names of topics in place of the values of other formats."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from pulsarbox.cli.common.output import Row
from pulsarbox.cli.common.terminal_text import megabytes


def readable(
    *, sizes: Sequence[str] = (), times: Sequence[str] = (), topics: Sequence[str] = ()
) -> Callable[[Row], Row]:
    """Return a converter of rows for ``TableOutput.shown``, of the named fields.

    ``sizes`` are in bytes, ``times`` in ms since 1970 (0: never), ``topics`` full names or lists of them.
    """

    def shown(row: Row) -> Row:
        row = row | {name: _size(row.get(name)) for name in sizes} | {name: _time(row.get(name)) for name in times}
        return row | {name: _topic(row.get(name)) for name in topics}

    return shown


def local_time(millis: int) -> str:
    """Return a time (ms since 1970) in the local time zone."""
    return datetime.fromtimestamp(millis / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _size(value: Any) -> Any:
    return megabytes(int(value)) if isinstance(value, int | float) else value


def _time(value: Any) -> Any:
    return local_time(int(value)) if isinstance(value, int | float) and value > 0 else None


def _topic(value: Any) -> Any:
    from pulsarbox.cli.connect.admin_client import short

    if isinstance(value, list):
        return [short(each) for each in value]
    return short(value) if value else value

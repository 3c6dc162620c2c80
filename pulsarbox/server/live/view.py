"""A live view: items of one kind, and the columns of their rows.

A column can compute its value, and may have the last sampled value (``kept``), which sorts and filters many items
cheaply without building rows.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pulsarbox.broker.broker import Broker
from pulsarbox.clock import Now

Row = dict[str, Any]
Make = Callable[[Any, Now], Any]


class ViewColumn(NamedTuple):
    """One column of a view."""

    make: Make
    """Computes the current value."""
    kept: Callable[[Any], Any] | None = None
    """Returns the last sampled value cheaply; None if the value must be computed for each item."""
    named: bool = False
    """Included only if requested by name."""


def kept(value: Callable[[Any], Any]) -> ViewColumn:
    """Return a column whose value is sampled or constant."""
    return ViewColumn(lambda thing, now: value(thing), value)


class ViewScope(NamedTuple):
    """The part of the box that a request covers."""

    prefix: str = ""
    """Prefix of the namespaces in scope: ``tenant/``, ``tenant/namespace/``; empty for the whole box."""

    @property
    def tenant(self) -> str:
        """The tenant of the scope; empty for the whole box."""
        return self.prefix.partition("/")[0]

    def holds(self, namespace: str) -> bool:
        """Return whether a namespace is in scope."""
        return f"{namespace}/".startswith(self.prefix)


class LiveView(NamedTuple):
    """One view."""

    name: str
    columns: Mapping[str, ViewColumn]
    things: Callable[[Broker, ViewScope, Now], Iterable[Any]]
    """Iterates over the items; yields None for skipped ones, to keep each step cheap."""
    sort: str
    """The default sort column, in descending order."""
    searched: Callable[[Any], Iterable[str]]
    """Returns the texts of an item that ``/pattern`` searches."""
    refresh: Callable[[Any, Now], object] = lambda thing, now: None
    """Samples an item again before its row is built."""

    def row(self, thing: Any, now: Now, columns: Iterable[str] = ()) -> Row:
        """Build the row of an item, with only the given columns if any."""
        self.refresh(thing, now)
        every = self.columns
        if columns:
            return {name: every[name].make(thing, now) for name in columns}
        return {name: column.make(thing, now) for name, column in every.items() if not column.named}

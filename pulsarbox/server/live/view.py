"""A live view: things of one kind, and the columns that rows are made of.

A column knows how its value is made, and where looks from time to time keep it (``kept``), by which many things can be
ordered and filtered without a row being made of any.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pulsarbox.broker.broker import Broker
from pulsarbox.clock import Now

Row = dict[str, Any]
Make = Callable[[Any, Now], Any]


class Column(NamedTuple):
    """One column of a view."""

    make: Make
    """The value as it is now, of what stands in the row."""
    kept: Callable[[Any], Any] | None = None
    """The same as it was seen last, which costs next to nothing; None where ordering by it makes each thing's value."""
    named: bool = False
    """Only in rows where it is named."""


def kept(value: Callable[[Any], Any]) -> Column:
    """A column that looks keep, or that never changes."""
    return Column(lambda thing, now: value(thing), value)


class Scope(NamedTuple):
    """What of the box somebody is shown."""

    prefix: str = ""
    """What the namespace of a topic begins with: ``tenant/``, ``tenant/namespace/``; empty for the whole box."""

    @property
    def tenant(self) -> str:
        """The tenant it is within; empty for the whole box."""
        return self.prefix.partition("/")[0]

    def holds(self, namespace: str) -> bool:
        """Whether the topics of a namespace are shown."""
        return f"{namespace}/".startswith(self.prefix)


class View(NamedTuple):
    """One view."""

    name: str
    columns: Mapping[str, Column]
    things: Callable[[Broker, Scope, Now], Iterable[Any]]
    """What there is to be shown; an iterator that is cheap to go on with, so that None comes for what is left out."""
    sort: str
    """The column by which rows are ordered unless something else is asked for, the highest first."""
    searched: Callable[[Any], Iterable[str]]
    """The texts of a thing in which ``/pattern`` is looked for."""
    refresh: Callable[[Any, Now], object] = lambda thing, now: None
    """Looks at a thing once more before its row is made."""

    def row(self, thing: Any, now: Now, columns: Iterable[str] = ()) -> Row:
        """The row of a thing; of these columns alone where any are named."""
        self.refresh(thing, now)
        every = self.columns
        if columns:
            return {name: every[name].make(thing, now) for name in columns}
        return {name: column.make(thing, now) for name, column in every.items() if not column.named}

"""Who may write a sink's next epoch: one writer, and of its starts the last one that came.

A writer is what goes on over restarts (a streaming query, by its checkpoint; a job), a run is one start of it. A driver
that was believed dead and goes on is an earlier run: it is refused as soon as the next one has said a word. Another
writer would count its epochs from elsewhere, and each would take what the other has committed for its own: it is
refused until it says that it takes the sink over, and then the one before never comes back.
"""

from typing import Final, NamedTuple

from pulsarbox.errors import Conflict
from pulsarbox.storage.catalog import Row

NOTHING: Final = -1
"""The last epoch of a sink that has committed none."""
FORMER_MAX: Final = 100
"""So many writers and runs that were replaced are remembered."""


class Writer(NamedTuple):
    """Who writes."""

    name: str = ""
    """Empty: it says nothing about itself, and nobody is kept off."""
    run: str = ""
    takes_over: bool = False
    """Whether it may replace another writer, or go on at an epoch that is behind."""


def admitted(sink: str, row: Row | None, writer: Writer, epoch: int, owner: str | None) -> Row:
    """The sink's row with this writer as its own; ``row`` itself where it is already. Raises Conflict."""
    if row is None:
        row = {"epoch": NOTHING, "committed": 0, "owner": owner}
    former, known = row.get("former", []), row.get("writer")
    if writer.name in former:
        raise Conflict(f"Sink {sink} was taken over by {known}: {writer.name} cannot go on with it")
    if writer.run in former:
        raise Conflict(f"Run {writer.run} of sink {sink} is over: run {row.get('run')} has begun since")
    if known in (None, writer.name):
        if known is not None and row["run"] == writer.run:
            return row
        goes_back = writer.takes_over and epoch < row["epoch"]
        return _with(row, writer, epoch - 1 if goes_back else row["epoch"], [row.get("run")])
    if not writer.takes_over:
        raise Conflict(f"Sink {sink} is that of writer {known}, at epoch {row['epoch']}: {writer.name} is another")
    return _with(row, writer, NOTHING, [known, row["run"]])


def _with(row: Row, writer: Writer, epoch: int, replaced: list[str | None]) -> Row:
    former = [*row.get("former", []), *filter(None, replaced)][-FORMER_MAX:]
    return row | {"epoch": epoch, "writer": writer.name, "run": writer.run, "former": former}

"""Admission of writers to a sink: one writer at a time, and only its latest run.

A writer persists across restarts (a streaming query, by its checkpoint; a job); a run is one start of it. A driver that
was presumed dead but continues is an earlier run, and is refused as soon as the next run has sent a request. Another
writer numbers its epochs differently, so that each would mistake the other's commits for its own. It is refused until
it explicitly takes over the sink; then the previous writer is refused for good.
"""

from typing import Final, NamedTuple

from pulsarbox.errors import RunReplaced, SinkOfAnotherWriter, SinkTakenOver
from pulsarbox.storage.catalog import Row

NOTHING: Final = -1
"""The last epoch of a sink that has committed none."""
FORMER_MAX: Final = 100
"""Replaced writers and runs to remember."""


class SinkWriter(NamedTuple):
    """A writer, as a request identifies it."""

    name: str = ""
    """Empty for an anonymous writer, which excludes no other."""
    run: str = ""
    takes_over: bool = False
    """Whether it may replace another writer, or resume at an older epoch."""


def admitted(sink: str, row: Row | None, writer: SinkWriter, epoch: int, owner: str | None) -> Row:
    """Return the sink's row with this writer as its own; ``row`` itself if unchanged. Raises Conflict."""
    if row is None:
        row = {"epoch": NOTHING, "committed": 0, "owner": owner}
    former, known = row.get("former", []), row.get("writer")
    if writer.name in former:
        raise SinkTakenOver(f"Sink {sink} was taken over by {known}: {writer.name} can no longer write to it")
    if writer.run in former:
        raise RunReplaced(f"Run {writer.run} of sink {sink} has ended: run {row.get('run')} has begun since")
    if known in (None, writer.name):
        if known is not None and row["run"] == writer.run:
            return row
        goes_back = writer.takes_over and epoch < row["epoch"]
        return _with(row, writer, epoch - 1 if goes_back else row["epoch"], [row.get("run")])
    if not writer.takes_over:
        raise SinkOfAnotherWriter(
            f"Sink {sink} belongs to writer {known}, at epoch {row['epoch']}: {writer.name} is another"
        )
    return _with(row, writer, NOTHING, [known, row["run"]])


def _with(row: Row, writer: SinkWriter, epoch: int, replaced: list[str | None]) -> Row:
    former = [*row.get("former", []), *filter(None, replaced)][-FORMER_MAX:]
    return row | {"epoch": epoch, "writer": writer.name, "run": writer.run, "former": former}

"""Snapshot of the offloaded history of topics: files by their columns, and the positions after them. Pure.

The manifest is read once. A reader of the topic in the box continues at these positions, so that each message is read
once, even while the topic is offloaded.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pulsarbox.spark.offload.layout import folder_of
from pulsarbox.spark.offload.manifest import OffloadManifest
from pulsarbox.spark.source.offsets import Mark

if TYPE_CHECKING:
    from pulsarbox.spark.offload.object_path import ObjectPath


class OffloadedHistory(NamedTuple):
    """Snapshot of the offloaded history of some topics."""

    files: dict[str, list[Any]]
    """Paths, or ObjectPaths if the root is one, by column set ID."""
    schemas: dict[str, dict[str, Any]]
    """Columns in Spark's JSON form, by column set ID."""
    marks: dict[str, Mark]
    """Position after the history, by topic or partition."""
    instances: dict[str, str]
    """ID of the data directory of each topic's ledgers."""
    newest: str = ""
    """ID of the column set that was written last."""


def history_of(root: "Path | ObjectPath", topics: Sequence[str], named: Sequence[str] = ()) -> OffloadedHistory:
    """Return the offloaded history of some topics, limited to the ``named`` partitions and the partitions of named
    topics, if any are named. Raises OffloadError."""
    found = OffloadedHistory({}, {}, {}, {})
    newest, at = "", -1
    for topic in topics:
        manifest = OffloadManifest(folder_of(root, topic))
        for history in manifest.histories.values():
            if named and history.topic not in named and topic not in named:
                continue
            found.marks[history.topic], found.instances[history.topic] = history.next, history.instance
            for each in history.ledgers:
                found.schemas[each.schema] = manifest.schemas[each.schema]
                if each.at > at:
                    newest, at = each.schema, each.at
            for file in history.files:
                found.files.setdefault(file.schema, []).append(manifest.folder / file.file)
    return found._replace(newest=newest)

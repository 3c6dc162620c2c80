"""Commit of an epoch to an Iceberg table, once: the snapshot's properties name the writer and the epoch.

The names are those of Spark's own Iceberg sink, so either can continue a query of the other. A commit succeeds only
if the table has the snapshot that was searched for the epoch; otherwise it is repeated with the newest snapshot.
pyiceberg would repeat it without the search, which could add an epoch twice, so its retries are off.
"""

import random
import time
import uuid
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.spark.lakehouse.data_files import WriterEpoch, delete, delete_others
from pulsarbox.spark.lakehouse.table_place import TableError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

WRITER: Final = "spark.sql.streaming.queryId"
EPOCH: Final = "spark.sql.streaming.epochId"
"""Properties of a snapshot: the ID of the query, and the number of its micro-batch."""
COMMIT: Final = "pulsarbox.commit-id"
"""Property of a snapshot that identifies one commit."""
LAST: Final = "pulsarbox.last-epoch."
"""Property of the table: the last epoch of a writer, whose ID follows. Used if its snapshot has expired."""
COMMIT_SECONDS: Final = 120.0
_PAUSE_SECONDS: Final = 0.1


class EpochOrderError(TableError):
    """A writer committed a later epoch before: its checkpoint is an older copy."""


def commit(
    catalog: "Catalog", name: str, of: WriterEpoch, files: "Sequence[DataFile]", more: Mapping[str, str] | None = None
) -> bool:
    """Add the files of an epoch to a table; return false if the table already has the epoch, and delete them then.

    ``name``: ``namespace.table``. ``more``: properties of the snapshot. Raises EpochOrderError, TableError, and errors
    of catalog and storage; the outcome of the latter is unknown, and the next commit of this epoch finds it out.
    """
    identity = uuid.uuid4().hex
    deadline = time.monotonic() + COMMIT_SECONDS
    while True:
        table = catalog.load_table(name)
        last = last_epoch(table, of.writer)
        if last is not None and last.epoch >= of.epoch:
            return _known(table, of, last, identity, files)
        if not files:
            return True
        if _added(table, of, identity, files, more or {}):
            delete_others(table, of, [each.file_path for each in files])
            return True
        if time.monotonic() > deadline:
            raise TableError(
                f"table {name}: other writers commit so often that none succeeded for {COMMIT_SECONDS:g} s"
            )
        time.sleep(_PAUSE_SECONDS * (1 + random.random()))


def _known(table: "Table", of: WriterEpoch, last: "LastEpoch", identity: str, files: "Sequence[DataFile]") -> bool:
    if last.identity == identity:
        return True
    if last.epoch > of.epoch:
        raise EpochOrderError(
            f"table {'.'.join(table.name())} has epoch {last.epoch} of {of.writer}, and epoch {of.epoch} was to be "
            "added: is the checkpoint older than the table? Roll the table back to the snapshot of the checkpoint, or "
            "start a query with a new checkpoint, which writes its rows again"
        )
    delete(table, [each.file_path for each in files])
    return False


class LastEpoch(NamedTuple):
    """Last epoch of a writer in a table."""

    epoch: int
    identity: str = ""
    """Identity of its commit; empty if it is from another program, or unknown."""
    told: Mapping[str, str] = MappingProxyType({})
    """Properties of its snapshot; empty if it has expired."""


def last_epoch(table: "Table", writer: str, at: "Snapshot | None" = None) -> LastEpoch | None:
    """Return the last epoch that a table has of a writer; None for none. ``at``: a snapshot; None for the current."""
    snapshot = table.current_snapshot() if at is None else at
    while snapshot is not None:
        told = _properties(snapshot)
        if told.get(WRITER) == writer:
            return LastEpoch(int(told[EPOCH]), told.get(COMMIT, ""), told)
        parent = snapshot.parent_snapshot_id
        before = None if parent is None else table.snapshot_by_id(parent)
        if before is None and (snapshot.sequence_number or 0) > 1:  # earlier ones have expired
            noted = table.properties.get(LAST + writer)
            return LastEpoch(int(noted)) if noted is not None else None
        snapshot = before
    return None


def _kept(of: WriterEpoch, more: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of the table that replace those of an expired snapshot."""
    return {kept_as(of.writer, name): value for name, value in more.items()}


def kept_as(writer: str, name: str) -> str:
    """Return the property of the table with the last value of a property of a writer's snapshots."""
    return f"{name}.{writer}"


def _properties(snapshot: "Snapshot") -> dict[str, str]:
    return snapshot.summary.additional_properties if snapshot.summary is not None else {}


def _added(
    table: "Table", of: WriterEpoch, identity: str, files: "Sequence[DataFile]", more: Mapping[str, str]
) -> bool:
    """Add files in one snapshot; return false if another writer was faster."""
    from pyiceberg.exceptions import CommitFailedException

    merges = table.properties.get("commit.manifest-merge.enabled", "false").lower() == "true"
    once = {**table.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": once})
    told = {WRITER: of.writer, EPOCH: str(of.epoch), COMMIT: identity, **more}
    try:
        with table.transaction() as transaction:
            transaction.set_properties({LAST + of.writer: str(of.epoch), **_kept(of, more)})
            update = transaction.update_snapshot(told)
            with update.merge_append() if merges else update.fast_append() as snapshot:
                for each in files:
                    snapshot.append_data_file(each)
    except CommitFailedException:
        return False
    return True

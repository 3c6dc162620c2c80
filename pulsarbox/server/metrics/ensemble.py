"""Metrics of several data directories, under the names of bookies where these fit.

Names: https://pulsar.apache.org/docs/4.2.x/reference-metrics/#bookkeeper. Every line has the directory as the label
``bookie``, so that boards that count or sum over bookies are right.
"""

from collections.abc import Callable, Iterator
from typing import Final

from pulsarbox.server.metrics.exposition import Metric, Rows, labels
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.status import EnsembleStatus, MemberStatus
from pulsarbox.storage.ensemble.watch import CopyProgress, lacking

_READ_ONLY: Final = frozenset({MemberState.FULL, MemberState.LEAVING})
_GONE: Final = -1


def server_status(member: MemberStatus) -> int:
    """Return 1 if the member is written, 0 if it is only read, -1 if neither."""
    return 1 if member.state == MemberState.ACTIVE else 0 if member.state in _READ_ONLY else _GONE


MEMBER: Final = (
    Metric("bookie_SERVER_STATUS", "1 if the directory is written, 0 if it is only read, -1 otherwise", server_status),
    Metric("bookie_ledgers_count", "Ledgers with entries in the directory", lambda each: each.ledgers),
    Metric("bookie_entries_count", "Entries in the directory", lambda each: each.entries),
    Metric("bookie_journal_JOURNAL_QUEUE_SIZE", "Batches that wait to be written", lambda each: each.queue),
    Metric(
        "bookkeeper_server_ADD_ENTRY_count",
        "Batches written",
        lambda each: each.commits,
        "counter",
        'success="true"',
        "bookkeeper_server_ADD_ENTRY_count",
    ),
    Metric(
        "bookkeeper_server_ADD_ENTRY_count",
        "Batches written",
        lambda each: each.commit_errors,
        "counter",
        'success="false"',
        "bookkeeper_server_ADD_ENTRY_count",
    ),
    Metric(
        "bookkeeper_server_READ_ENTRY_count",
        "Reads that failed, and were repeated from another directory",
        lambda each: each.read_errors,
        "counter",
        'success="false"',
    ),
    Metric("pulsarbox_directory_used_bytes", "Bytes that the directory uses", lambda each: each.bytes_used),
    Metric("pulsarbox_directory_free_bytes", "Free bytes on its disk", lambda each: each.bytes_free),
    Metric(
        "pulsarbox_directory_oldest_write_seconds",
        "Age of the oldest unfinished write",
        lambda each: each.oldest_write_seconds,
    ),
    Metric(
        "pulsarbox_directory_shares_device",
        "1 if another data directory is on its device",
        lambda each: int(bool(each.shares_device_with)),
    ),
    Metric("pulsarbox_scrub_done_bytes", "Bytes verified by the current scrub", lambda each: each.scrub.done_bytes),
    Metric("pulsarbox_scrub_total_bytes", "Bytes to verify by the current scrub", lambda each: each.scrub.total_bytes),
    Metric(
        "pulsarbox_scrub_finished_seconds",
        "End of the last complete scrub in seconds since 1970; 0 if none",
        lambda each: each.scrub.finished / 1000,
    ),
    Metric(
        "pulsarbox_scrub_damaged_entries_total",
        "Damaged entries that scrubs found since startup",
        lambda each: each.scrub.found,
        "counter",
    ),
)
"""Metrics of each directory."""


Whole = tuple[EnsembleStatus, CopyProgress]


def _whole(name: str, meaning: str, value: Callable[[Whole], float], kind: str = "gauge") -> Metric:
    return Metric(name, meaning, value, kind)


WHOLE: Final = (
    _whole("bookie_ledger_num_dirs", "Data directories of the box", lambda of: len(of[0].members)),
    _whole(
        "bookie_ledger_writable_dirs",
        "Data directories that are written",
        lambda of: sum(server_status(each) == 1 for each in of[0].members),
    ),
    _whole(
        "auditor_NUM_UNDER_REPLICATED_LEDGERS",
        "Ledgers with entries that lack copies; a gauge, of at most 1000 fragments",
        lambda of: len({each.ledger_id for each in of[0].under_replicated}),
    ),
    _whole(
        "pulsarbox_under_replicated_entries",
        "Entries that lack copies",
        lambda of: lacking(of[0]) if of[0].under_replicated_count else 0,
    ),
    _whole(
        "replication_worker_NUM_BYTES_WRITTEN",
        "Bytes of copies restored since startup",
        lambda of: of[0].repair.bytes_done,
        "counter",
    ),
    _whole("pulsarbox_repair_fragments", "Fragments that lack copies", lambda of: of[0].under_replicated_count),
    _whole(
        "pulsarbox_entries_without_copy",
        "Entries of which no intact copy is left; of at most 1000 fragments",
        lambda of: sum(each.end - each.first for each in of[0].under_replicated if not each.have),
    ),
    _whole(
        "pulsarbox_under_replicated_since_seconds",
        "Time since which entries lack copies, in seconds since 1970; 0 if none does",
        lambda of: of[1].since / 1000,
    ),
    _whole("pulsarbox_ensemble_generation", "Number of changes of the directories in use", lambda of: of[0].generation),
)
"""Metrics of the ensemble."""


def ensemble(status: EnsembleStatus, progress: CopyProgress, cluster: str) -> Iterator[tuple[Metric, Rows]]:
    """Yield the metrics of all directories, then those of the ensemble."""
    members = [(f"{cluster},{labels(bookie=each.name)}", each) for each in status.members]
    for metric in MEMBER:
        yield metric, members
    states = [(f"{of},{labels(state=each.state)}", 1) for of, each in members]
    yield Metric("pulsarbox_directory_state", "1 for the current state of the directory", lambda one: one), states
    for metric in WHOLE:
        yield metric, [(cluster, (status, progress))]

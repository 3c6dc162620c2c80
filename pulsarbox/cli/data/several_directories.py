"""``pulsarbox storage stat`` and ``check`` over all data directories of a box."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pulsarbox.cli.process.directory_options import box_directories
from pulsarbox.errors import PersistenceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarbox.storage.inspection.check import CheckReport
    from pulsarbox.storage.inspection.copies import DirectoryRuns


class Inspected(NamedTuple):
    """The data directories to inspect."""

    paths: tuple[Path, ...]
    missing: tuple[str, ...]
    """Those that belong to the box too, and are not in use or cannot be read."""
    are_several: bool


def inspected(directory: Path | None, config_file: Path | None, data_dir: str | None) -> Inspected:
    """Return the directory named, or else all of the box that the options name. Raises PersistenceError."""
    from pulsarbox.storage.format import ENSEMBLE

    if directory is not None:
        return Inspected((directory,), (), are_several=False)
    given = box_directories(config_file, data_dir)
    if not any((path / ENSEMBLE).exists() for path in given):
        return Inspected((given[0],), (), are_several=False)
    from pulsarbox.storage.backup.box_directories import box_directories as of_box

    found = of_box(given)
    return Inspected(found.paths, tuple(each.name for each in found.missing), are_several=True)


def statistics_of(found: Inspected, topics: int) -> dict[str, Any]:
    """Return the statistics of each directory, and of all together. Raises PersistenceError."""
    from pulsarbox.storage.inspection.copies import logical_size
    from pulsarbox.storage.inspection.statistics import statistics_with_runs

    documents: list[dict[str, Any]] = []
    runs: list[DirectoryRuns] = []
    unreadable = dict.fromkeys(found.missing, "it is not in use or cannot be read")
    for path in found.paths:
        try:
            document, held = statistics_with_runs(path, topics)
        except PersistenceError as error:
            unreadable[str(path)] = str(error)
        else:
            documents.append(document)
            runs.append(held)
    size = logical_size(runs)
    return {
        "directories": documents,
        "unreadable": [{"directory": name, "reason": reason} for name, reason in unreadable.items()],
        "total": {
            "entries": size.entries,
            "bytes": size.bytes,
            "copies": {str(count): entries for count, entries in size.copies.items()},
            "stored_entries": sum(each["totals"]["entries"] for each in documents),
            "stored_bytes": sum(each["totals"]["bytes"] for each in documents),
            "disk_used": sum(each["disk"]["used"] for each in documents),
        },
    }


def check_of(found: Inspected, examine: "Callable[[Path], CheckReport]") -> dict[str, Any]:
    """Return the findings of each directory, of all together if the box is stopped, and a summary.

    A running box compares the directories itself. Raises PersistenceError.
    """
    from pulsarbox.storage.inspection.copies import lost_entries
    from pulsarbox.storage.inspection.statistics import statistics_with_runs

    reports = [examine(path) for path in found.paths]
    is_live = any(report.box.live for report in reports)
    lost = [] if is_live else lost_entries([statistics_with_runs(path, 0)[1] for path in found.paths])
    documents = [report.document() for report in reports]
    names = ("damage", "warnings", "environments", "batches", "entries")
    summary = {name: sum(each["summary"][name] for each in documents) for name in names}
    summary["damage"] += len(lost)
    return {
        "directories": documents,
        "missing": list(found.missing),
        "findings": [finding.document() for finding in lost],
        "summary": summary | {"ledgers": max((each["summary"]["ledgers"] for each in documents), default=0)},
    }

"""Services that the hosting process provides to the broker."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pulsarbox.broker.persistence.replication import Beside, Bookies
from pulsarbox.storage.engine import LedgerVolumes

if TYPE_CHECKING:
    from pulsarbox.storage.ensemble.watch import WatchedEnsemble


def run_synchronously(name: str, work: Callable[[], Any], done: Callable[[Any, Exception | None], None]) -> None:
    """Run work synchronously: the default without a shell that has threads."""
    try:
        result = work()
    except Exception as error:
        done(None, error)
    else:
        done(result, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The surroundings of one broker. The defaults are those of a broker without a shell."""

    folder: str | None = None
    """Path of the data directory; None without one."""
    store_statistics: Callable[[], dict[str, Any]] | None = None
    """Returns the store's disk usage and volumes; called through ``run_in_thread``. None for an in-memory store."""
    ledger_volumes: Callable[[Sequence[int]], LedgerVolumes] | None = None
    """Returns the volumes that hold given ledgers; called through ``run_in_thread``. None for an in-memory store."""
    bookies: Bookies | None = None
    """The data directories, if there are several; None with one, or in memory."""
    ensemble: "WatchedEnsemble | None" = None
    """The data directories if there are several; None with one or none."""
    on_shutdown: Callable[[str], None] | None = None
    """Shuts the process down in order and logs the given reason; None if the box does not own its process."""
    run_in_thread: Beside = run_synchronously
    """Runs slow work outside the turn, such as reading files or decompressing client data."""

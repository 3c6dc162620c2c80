"""Maintenance of an ensemble in bounded steps: rejoining members, audit, repair, removal, scrub.

The caller's thread runs one step after the other; nothing here sleeps. With the same clock and the same members, the
same steps follow.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.keeping.auditor import Auditor
from pulsarbox.storage.ensemble.keeping.repair import Repairer
from pulsarbox.storage.ensemble.keeping.scrub import Scrubber
from pulsarbox.storage.ensemble.keeping.trimming import Trimmer
from pulsarbox.storage.ensemble.keeping.upkeep import Ensemble, Maintained
from pulsarbox.storage.ensemble.status import RepairStatus

AUDIT_SECONDS: Final = 600.0
"""Period of the auditor while the members stay the same."""


class MaintenanceRates(NamedTuple):
    """Limits of maintenance."""

    repair_bytes_per_second: int = 32 << 20
    """0 for no limit."""
    scrub_bytes_per_second: int = 8 << 20
    scrub_days: float = 7
    """Days from the end of a scrub to the next one; 0 for none."""
    audit_seconds: float = AUDIT_SECONDS


class Maintenance:
    """The parts of maintenance, in the order of their priority."""

    def __init__(self, ensemble: Ensemble, rates: MaintenanceRates, clock: Callable[[], float]) -> None:
        """``clock`` is monotonic, in seconds: it ends steps that take long."""
        self._ensemble = ensemble
        self.auditor = Auditor(ensemble, rates.audit_seconds)
        self.repairer = Repairer(ensemble, self.auditor, rates.repair_bytes_per_second, clock)
        self.scrubber = Scrubber(ensemble, self.repairer.damaged, rates.scrub_bytes_per_second, rates.scrub_days)
        self.trimmer = Trimmer(ensemble, self.auditor)
        self.forced: Collection[str] = ()
        """Leaving members that may leave entries with fewer copies than wanted."""
        self.last_error = ""
        """The error of the last step that failed; empty once a step succeeds."""

    def step(self, monotonic: float, wall: int) -> Maintained | None:
        """Run one step; None if nothing is due. An error of a step leaves the next turn to the others."""
        for part in self._parts(monotonic, wall):
            try:
                done = part()
            except PersistenceError as error:
                self.last_error = str(error)
                continue
            if done is not None:
                self.last_error = ""
                return done
        return None

    def _parts(self, monotonic: float, wall: int) -> Iterator[Callable[[], Maintained | None]]:
        yield lambda: self._ensemble.advance(monotonic, wall)
        yield lambda: self.auditor.step(monotonic, wall)
        yield lambda: self.repairer.step(monotonic)
        yield self.trimmer.step
        yield self._remove
        yield lambda: self.scrubber.step(monotonic, wall)

    def _remove(self) -> Maintained | None:
        """Release a leaving member once all that it has is elsewhere."""
        for name in self.auditor.released(self.forced):
            if self._ensemble.release(name):
                self.auditor.request()
                return Maintained("removed", f"{name} is released: all its entries have enough copies elsewhere", 0)
        return None

    def wait(self, monotonic: float) -> float:
        """Return the seconds until a step that was held back by a rate may be due; at least 0."""
        dues = [pace.due for pace in (self.repairer.pace, self.scrubber.pace) if pace.due > monotonic]
        return min(dues, default=monotonic + 1.0) - monotonic

    @property
    def status(self) -> RepairStatus:
        """The progress of the repair, with the last error of any part."""
        status = self.repairer.status
        return status if status.last_error else status._replace(last_error=self.last_error)

    def close(self) -> None:
        """Store the progress of scrubs, as far as possible."""
        try:
            self.scrubber.save()
        except PersistenceError as error:
            self.last_error = str(error)

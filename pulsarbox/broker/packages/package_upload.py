"""The upload of one package: stores its content as it arrives, and its name at the end."""

from collections.abc import Callable
from typing import Any, Protocol

from pulsarbox.broker.current_settings import CurrentSettings
from pulsarbox.broker.packages.package_name import PackageName
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.clock import Now
from pulsarbox.errors import PayloadTooLarge, PulsarBoxError, StoreFull
from pulsarbox.storage.catalog import package_data_key
from pulsarbox.storage.package_content import content_entry

Told = Callable[[Exception | None, Now], None]
"""Called once bytes are durable, or with the reason why they are not."""


class UploadOwner(Protocol):
    """The registry of packages."""

    @property
    def total(self) -> int:
        """Bytes of all packages."""

    def finished(self, upload: "PackageUpload", metadata: dict[str, Any], now: Now) -> None:
        """Write the rows of the package."""

    def cancelled(self, upload: "PackageUpload", now: Now) -> None:
        """Drop what was stored."""


class PackageUpload:
    """An upload in progress. The caller writes one piece after another, and waits for each."""

    def __init__(self, commits: GroupCommit, settings: CurrentSettings, name: PackageName, owner: UploadOwner) -> None:
        self._commits = commits
        self._settings = settings
        self._owner = owner
        self.name = name
        self.ledger_id = 0
        """The ledger of the content; 0 before the first bytes."""
        self.entries = self.size = 0
        """Entries and bytes written so far."""
        self.over = False
        """Whether it was finished or cancelled."""

    @property
    def size_max(self) -> int:
        """Maximum bytes of a package."""
        return self._settings.current.maxPackageSizeMbytes << 20

    def write(self, pieces: list[bytes], told: Told, now: Now) -> None:
        """Store the next bytes; each piece becomes an entry. Raises PayloadTooLarge, StoreFull."""
        self._check(sum(map(len, pieces)))
        self._begin()
        entries = []
        for piece in pieces:
            entries.append(content_entry(self.ledger_id, self.entries, self.size, piece, now.wall))
            self.entries += 1
            self.size += len(piece)
        self._commits.copy(entries, lambda when: told(None, when), told)

    def finish(self, metadata: dict[str, Any], now: Now) -> None:
        """Make the package visible, durable with the next commit. Raises NamespaceNotFound."""
        assert not self.over
        self._begin()
        self._owner.finished(self, metadata, now)
        self.over = True

    def cancel(self, now: Now) -> None:
        """Drop what was uploaded, unless the upload is over."""
        if not self.over:
            self.over = True
            self._owner.cancelled(self, now)

    def _begin(self) -> None:
        if not self.ledger_id:
            self.ledger_id = self._commits.new_id()
            self._commits.put_row(package_data_key(self.ledger_id), {"package": str(self.name)})

    def _check(self, more: int) -> None:
        """Raise PulsarBoxError unless there is room for ``more`` bytes."""
        most, all_most = self.size_max, self._settings.current.maxPackagesTotalMbytes << 20
        if self.size + more > most:
            raise too_large(most)
        if self._owner.total + more > all_most:
            raise PayloadTooLarge(
                f"All packages together may have {all_most:,} bytes (maxPackagesTotalMbytes): delete some packages"
            )
        reason = self._commits.refusal
        if reason is not None:
            raise StoreFull(f"The package cannot be stored: {reason}")


def too_large(most: int) -> PulsarBoxError:
    """Return the error for a package of more than ``most`` bytes."""
    return PayloadTooLarge(f"The package is larger than {most:,} bytes (maxPackageSizeMbytes)")

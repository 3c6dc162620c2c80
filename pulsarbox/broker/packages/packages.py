"""All packages of a box: their rows, and the uploads in progress.

The content of a package is a ledger of its own. Its name becomes visible with the batch that ends the upload, so a
package is stored as a whole or not at all.
"""

from collections.abc import Iterator
from typing import Any, Final

from pulsarbox.broker.current_settings import CurrentSettings
from pulsarbox.broker.packages.package_name import PackageName
from pulsarbox.broker.packages.package_reader import PackageReader
from pulsarbox.broker.packages.package_upload import PackageUpload
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.persistence.read_queue import ReadQueue
from pulsarbox.broker.tenants import Tenants
from pulsarbox.clock import Now
from pulsarbox.errors import Conflict, NotFound, ServiceNotReady
from pulsarbox.storage.catalog import PACKAGE_DATA, PACKAGES, Catalog, Row, package_data_key, package_key

UPLOADS_MAX: Final = 16
"""Uploads in progress, each of which has up to 0.5 MiB in memory."""
PACKAGES_MAX: Final = 100_000
_PAGE: Final = 500


class Packages:
    """The packages of all namespaces."""

    def __init__(
        self, catalog: Catalog, commits: GroupCommit, reads: ReadQueue, settings: CurrentSettings, tenants: Tenants
    ) -> None:
        self._catalog = catalog
        self._commits = commits
        self._reads = reads
        self._settings = settings
        self._tenants = tenants
        self._uploads: dict[str, PackageUpload] = {}
        """Uploads in progress, by the key of the package."""

    # Reads

    def check_enabled(self) -> None:
        """Raise ServiceNotReady if packages are disabled."""
        if not self._settings.current.enablePackagesManagement:
            raise ServiceNotReady(
                "Package Management Service is not enabled in the broker: set enablePackagesManagement=true"
            )

    def names(self, namespace: str, kind: str) -> Iterator[str]:
        """Yield the names of packages of a type in a namespace, once per version, in order."""
        for rest in self._keys(package_key(namespace, kind)):
            yield rest.partition("/")[0]

    def versions(self, name: PackageName) -> Iterator[str]:
        """Yield the versions of a package, in order."""
        return self._keys(package_key(name.namespace, name.kind, name.name))

    def metadata(self, name: PackageName) -> Row:
        """Return the metadata of a package. Raises NotFound."""
        row = self._catalog.get(name.key)
        if row is None:
            raise NotFound(f"Package '{name}' metadata does not exist")
        metadata: Row = row["metadata"]
        return metadata

    def reader(self, name: PackageName) -> PackageReader:
        """Return a reader of the content of a package. Raises NotFound."""
        row = self._row(name)
        return PackageReader(self._reads, row["ledger"], row["entries"], row["size"])

    def keys_of(self, namespace: str) -> Iterator[str]:
        """Yield the keys of all packages of a namespace, in order."""
        prefix = package_key(namespace)
        return (prefix + rest for rest in self._keys(prefix))

    @property
    def total(self) -> int:
        """Bytes of all packages, stored and being uploaded."""
        stored: int = self._totals()["bytes"]
        return stored + sum(upload.size for upload in self._uploads.values())

    def _keys(self, prefix: str) -> Iterator[str]:
        after: str | None = ""
        while after is not None:
            keys, after = self._catalog.page(prefix, after, _PAGE)
            yield from (key[len(prefix) :] for key in keys)

    def _row(self, name: PackageName) -> Row:
        row = self._catalog.get(name.key)
        if row is None:
            raise NotFound(f"Package '{name}' does not exist")
        return row

    def _totals(self) -> Row:
        return self._catalog.get(PACKAGES) or {"count": 0, "bytes": 0}

    # Changes

    def set_metadata(self, name: PackageName, metadata: Row, now: Now) -> None:
        """Replace the metadata of a package, but not its creation time. Raises NotFound."""
        created = self.metadata(name)["createTime"]
        times = {"createTime": created, "modificationTime": now.wall}
        self._commits.put_row(name.key, self._row(name) | {"metadata": metadata | times})

    def delete(self, name: PackageName, now: Now) -> None:
        """Delete a package. Raises NotFound."""
        self._row(name)
        self.delete_key(name.key, now)

    def delete_key(self, key: str, now: Now) -> None:
        """Delete the package with this key, if it still exists."""
        row = self._catalog.get(key)
        if row is None:
            return
        self._commits.put_row(key, None)
        self._drop(row["ledger"], now)
        self._count(-1, -row["size"])

    def _drop(self, ledger_id: int, now: Now) -> None:
        self._commits.put_row(package_data_key(ledger_id), None)
        self._commits.housekeeping.ledger_dropped(ledger_id, now)

    def _count(self, packages: int, size: int) -> None:
        totals = self._totals()
        self._commits.put_row(PACKAGES, {"count": totals["count"] + packages, "bytes": totals["bytes"] + size})

    def drop_leftovers(self, now: Now) -> None:
        """At the start, drop the content of uploads that the last stop interrupted."""
        for key, value in list(self._catalog.items(PACKAGE_DATA)):
            if b'"entries"' not in value:
                self._drop(int(key.removeprefix(PACKAGE_DATA), 16), now)

    # Uploads

    def begin_upload(self, name: PackageName) -> PackageUpload:
        """Begin the upload of a package, which ends with ``finish`` or ``cancel``.

        Raises NamespaceNotFound, Conflict if the package exists or is being uploaded, ServiceNotReady if there are too
        many packages or uploads.
        """
        self._tenants.require(name.namespace)
        if name.key in self._catalog:
            raise Conflict(f"Package '{name}' metadata already exists")
        if name.key in self._uploads:
            raise Conflict(f"Package '{name}' is being uploaded")
        if len(self._uploads) >= UPLOADS_MAX:
            raise ServiceNotReady(f"{len(self._uploads)} packages are being uploaded; try again later")
        if self._totals()["count"] >= PACKAGES_MAX:
            raise ServiceNotReady(f"This box has {PACKAGES_MAX:,} packages, the maximum: delete some")
        upload = PackageUpload(self._commits, self._settings, name, self)
        self._uploads[name.key] = upload
        return upload

    def finished(self, upload: PackageUpload, metadata: dict[str, Any], now: Now) -> None:
        """Write the rows of an uploaded package. Raises NamespaceNotFound if its namespace was deleted meanwhile."""
        name = upload.name
        self._tenants.require(name.namespace)
        times = {"createTime": now.wall, "modificationTime": now.wall}
        row = {"ledger": upload.ledger_id, "entries": upload.entries, "size": upload.size, "metadata": metadata | times}
        self._commits.put_row(package_data_key(upload.ledger_id), {"package": str(name), "entries": upload.entries})
        self._commits.put_row(name.key, row)
        self._count(1, upload.size)
        del self._uploads[name.key]

    def cancelled(self, upload: PackageUpload, now: Now) -> None:
        """Drop what was stored of an upload."""
        del self._uploads[upload.name.key]
        if upload.ledger_id:
            self._drop(upload.ledger_id, now)

"""The form of a package upload: its part ``metadata`` with JSON, and its part ``file`` with the content."""

import json
from typing import Any, Final

from pulsarbox.broker.packages.package_upload import PackageUpload, too_large
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, PayloadTooLarge, PulsarBoxError
from pulsarbox.server.http.framework.multipart import FormPart
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer
from pulsarbox.server.http.resources.package_metadata import METADATA_BYTES_MAX, NO_METADATA, parse_metadata
from pulsarbox.storage.package_content import ENTRY_BYTES

_AROUND_BYTES: Final = 4 * METADATA_BYTES_MAX
"""Bytes of a body besides the file."""


class PackageForm:
    """Receives one form. Parts of other names are ignored, as in Pulsar."""

    def __init__(self, upload: PackageUpload) -> None:
        self._upload = upload
        self._metadata: bytearray | None = None
        self._file: FormPart | None = None
        self._pending = bytearray()
        """Bytes of the file that are not stored yet."""

    @property
    def body_max(self) -> int:
        """Maximum bytes of the body."""
        return self._upload.size_max + _AROUND_BYTES

    @property
    def too_large(self) -> PulsarBoxError:
        """The error for a larger body."""
        return too_large(self._upload.size_max)

    def receive(self, part: FormPart, data: bytes, now: Now) -> DeferredAnswer | None:
        """Receive the next bytes of a part; see ``Upload``."""
        if part.name == "metadata":
            self._add_metadata(data)
        elif part.name == "file":
            return self._add(part, data, now)
        return None

    def _add_metadata(self, data: bytes) -> None:
        if self._metadata is None:
            self._metadata = bytearray()
        self._metadata += data
        if len(self._metadata) > METADATA_BYTES_MAX:
            raise PayloadTooLarge(f"The metadata of a package is larger than {METADATA_BYTES_MAX:,} bytes")

    def _add(self, part: FormPart, data: bytes, now: Now) -> DeferredAnswer | None:
        if self._file is None:
            self._file = part
        elif self._file != part:
            raise BadRequest("The form has more than one part with the name file")
        self._pending += data
        if len(self._pending) < ENTRY_BYTES:
            return None
        cut = len(self._pending) - len(self._pending) % ENTRY_BYTES
        whole = bytes(memoryview(self._pending)[:cut])
        del self._pending[:cut]
        later = DeferredAnswer()
        self._store(whole, later, now)
        return later

    def _store(self, data: bytes, later: DeferredAnswer, now: Now) -> None:
        """Store bytes; ``later`` is given once they are durable. Raises PulsarBoxError."""
        pieces = [data[at : at + ENTRY_BYTES] for at in range(0, len(data), ENTRY_BYTES)]

        def told(error: Exception | None, when: Now) -> None:
            if error is None:
                later.done(when)
            else:
                later.failed(error)

        self._upload.write(pieces, told, now)

    def complete(self, now: Now) -> DeferredAnswer:
        """Store the rest of the file and make the package visible; see ``Upload``."""
        metadata = self._parsed_metadata()
        if self._file is None:
            raise BadRequest("The form has no part with the name file")
        later = DeferredAnswer()

        def finish(error: Exception | None, when: Now) -> None:
            if error is not None:
                later.failed(error)
            elif not self._upload.over:  # else it took too long, and the request was answered
                self._finish(metadata, later, when)

        if self._pending:
            self._upload.write([bytes(self._pending)], finish, now)
        else:
            finish(None, now)
        return later

    def _finish(self, metadata: dict[str, Any], later: DeferredAnswer, now: Now) -> None:
        try:
            self._upload.finish(metadata, now)
        except PulsarBoxError as error:
            later.failed(error)
        else:
            later.complete(DONE)

    def cancel(self, now: Now) -> None:
        """Drop what was received, unless the upload is complete."""
        self._upload.cancel(now)

    def _parsed_metadata(self) -> dict[str, Any]:
        try:
            value = json.loads(self._metadata or b"null")
        except (ValueError, RecursionError):
            raise BadRequest("The part metadata of the form is not JSON") from None
        if value is None:
            raise BadRequest(NO_METADATA)
        return parse_metadata(value)

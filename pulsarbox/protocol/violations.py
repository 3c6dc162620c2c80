"""Protocol violations by a peer. Each error names the invalid value and what was expected.

::

        ProtocolError                   the peer violated the protocol: reply if possible, then close
        ├── MalformedFrame              size fields that contradict each other
        ├── FrameTooLarge               a frame above the agreed limit
        ├── MalformedCommand            bytes that are not a command, or a command without its own message
        ├── MalformedMetadata           a payload whose metadata or batch cannot be parsed
        └── ChecksumMismatch            a payload whose crc32c does not match (wire code ChecksumError)
"""

from __future__ import annotations

from pulsarbox.errors import ChecksumError, PulsarBoxError


class ProtocolError(PulsarBoxError):
    """The peer violated the protocol. Abstract: only subclasses are raised."""

    http_status = 400


class MalformedFrame(ProtocolError):
    """The size fields of a frame contradict each other."""


class FrameTooLarge(ProtocolError):
    """A frame announces more bytes than the limit; it is not buffered."""


class MalformedCommand(ProtocolError):
    """The command bytes of a frame are not a valid command."""


class MalformedMetadata(ProtocolError):
    """The metadata of an entry, or of a message in its batch, cannot be parsed."""


class ChecksumMismatch(ProtocolError, ChecksumError):
    """The crc32c sent with a payload does not match its bytes."""

"""What a peer can get wrong on the wire. Every error says which number was wrong and what it had to be.

::

    ProtocolError                   the peer broke the protocol: answer if there is something to answer, then close
    ├── MalformedFrame              sizes that contradict each other
    ├── FrameTooLarge               a frame above the limit both sides agreed on
    ├── MalformedCommand            bytes that are no command, or a command without its own part
    ├── MalformedMetadata           a payload whose metadata or batch cannot be read
    └── ChecksumMismatch            a payload whose crc32c is another (wire code ChecksumError)
"""

from __future__ import annotations

from pulsarbox.errors import ChecksumError, PulsarBoxError


class ProtocolError(PulsarBoxError):
    """The peer broke the protocol. Abstract: what is raised is one of its subclasses."""

    http_status = 400


class MalformedFrame(ProtocolError):
    """The size fields of a frame contradict each other."""


class FrameTooLarge(ProtocolError):
    """A frame announces more bytes than the limit. Nothing of it has been buffered."""


class MalformedCommand(ProtocolError):
    """The command bytes of a frame are no command of the protocol."""


class MalformedMetadata(ProtocolError):
    """The metadata before a message's body, or inside its batch, cannot be read."""


class ChecksumMismatch(ProtocolError, ChecksumError):
    """The crc32c sent with a payload is not the crc32c of its bytes."""

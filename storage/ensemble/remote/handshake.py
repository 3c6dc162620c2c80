"""The handshake of the replica protocol: versions, and proofs that both sides know the secret. Pure.

The box sends HELLO, the replica CHALLENGE, the box PROOF, the replica WELCOME. Each proof is an HMAC-SHA256 over both
nonces and a label of its side, so it is valid for one connection and one direction only. The secret is never sent.
"""

import hmac
from collections.abc import Mapping
from typing import Any, Final

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.remote.frames import PROTOCOL, FrameKind, WireFrame
from pulsarbox.storage.format import BATCH_VERSION, FORMAT

SECRET_MIN: Final = 16
"""Bytes of a secret."""
NONCE_BYTES: Final = 32
_BOX: Final = b"pulsarbox replica: box"
_REPLICA: Final = b"pulsarbox replica: replica"
_PROTOCOLS: Final = (PROTOCOL, PROTOCOL)
"""The lowest and the highest protocol version that this version supports."""
_STORED: Final = f"{FORMAT}.{BATCH_VERSION}"
"""The format of directories and batches, which the replica stores as the box has written them."""


class HandshakeError(PersistenceError):
    """The two sides cannot work together: another version, a wrong secret, or no replica at all."""


def checked_secret(content: bytes, source: str) -> bytes:
    """Return the secret in the content of a file, without white space around it. Raises ValueError."""
    secret = content.strip()
    if len(secret) < SECRET_MIN:
        raise ValueError(f"{source} has a secret of {len(secret)} bytes: at least {SECRET_MIN} are required")
    return secret


def hello(nonce: bytes, version: str) -> WireFrame:
    """Return the first frame of the box. ``version`` is that of the program, for messages."""
    return WireFrame(FrameKind.HELLO, 0, _versions(nonce, version))


def challenge(nonce: bytes, version: str) -> WireFrame:
    """Return the answer of the replica."""
    return WireFrame(FrameKind.CHALLENGE, 0, _versions(nonce, version))


def _versions(nonce: bytes, version: str) -> dict[str, Any]:
    return {"protocols": _PROTOCOLS, "stored": _STORED, "version": version, "nonce": nonce.hex()}


def refused(reason: str) -> WireFrame:
    """Return the frame with which the replica ends a connection."""
    return WireFrame(FrameKind.REFUSED, 0, {"reason": reason})


def peer_nonce(frame: WireFrame, kind: int, version: str) -> bytes:
    """Return the nonce of the first frame of the other side, if both support a common version.

    Raises HandshakeError, for the log or the refusal.
    """
    if frame.kind == FrameKind.REFUSED:
        raise HandshakeError(_text(frame.fields, "reason") or "the connection was refused")
    if frame.kind != kind:
        raise HandshakeError(f"the other side does not speak the replica protocol: frame of kind {frame.kind}")
    fields = frame.fields
    low, high = _range(fields.get("protocols"))
    if high < _PROTOCOLS[0] or low > _PROTOCOLS[1] or fields.get("stored") != _STORED:
        theirs, ours = _text(fields, "version") or "unknown", version
        raise HandshakeError(
            f"the versions of box and replica do not match: {theirs} and {ours}; run the same version of pulsarbox on"
            " both machines"
        )
    try:
        nonce = bytes.fromhex(_text(fields, "nonce"))
    except ValueError:
        nonce = b""
    if len(nonce) != NONCE_BYTES:
        raise HandshakeError("the other side does not speak the replica protocol: no nonce")
    return nonce


def _range(value: Any) -> tuple[int, int]:
    match value:
        case [int(low), int(high)]:
            return low, high
    return 0, 0


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value[:200] if isinstance(value, str) else ""


def box_proof(secret: bytes, box_nonce: bytes, replica_nonce: bytes) -> str:
    """Return the proof of the box."""
    return _proof(secret, _BOX, box_nonce, replica_nonce)


def replica_proof(secret: bytes, box_nonce: bytes, replica_nonce: bytes) -> str:
    """Return the proof of the replica."""
    return _proof(secret, _REPLICA, box_nonce, replica_nonce)


def _proof(secret: bytes, label: bytes, *nonces: bytes) -> str:
    return hmac.new(secret, b"\0".join([label, *(nonce.hex().encode() for nonce in nonces)]), "sha256").hexdigest()


def proves(frame: WireFrame, kind: int, expected: str) -> bool:
    """Return whether a frame has the expected proof, in constant time."""
    found = frame.fields.get("proof")
    is_equal = hmac.compare_digest(expected.encode(), (found if isinstance(found, str) else "").encode())
    return frame.kind == kind and is_equal

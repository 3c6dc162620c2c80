"""The handshake: proofs of one connection and direction, and clear refusals."""

import pytest

from pulsarbox.storage.ensemble.remote.frames import FrameKind, WireFrame
from pulsarbox.storage.ensemble.remote.handshake import (
    NONCE_BYTES,
    HandshakeError,
    box_proof,
    challenge,
    checked_secret,
    hello,
    peer_nonce,
    proves,
    refused,
    replica_proof,
)

SECRET, BOX, REPLICA = b"s" * 16, b"b" * NONCE_BYTES, b"r" * NONCE_BYTES


def proof(text: object) -> WireFrame:
    return WireFrame(FrameKind.PROOF, 0, {"proof": text})


def test_the_nonces_are_exchanged() -> None:
    assert peer_nonce(hello(BOX, "1"), FrameKind.HELLO, "1") == BOX
    assert peer_nonce(challenge(REPLICA, "1"), FrameKind.CHALLENGE, "1") == REPLICA


def test_a_proof_is_of_the_secret_the_nonces_and_the_side() -> None:
    expected = box_proof(SECRET, BOX, REPLICA)
    assert proves(proof(expected), FrameKind.PROOF, expected)
    others = [
        box_proof(b"t" * 16, BOX, REPLICA),
        box_proof(SECRET, REPLICA, BOX),
        box_proof(SECRET, BOX, BOX),
        replica_proof(SECRET, BOX, REPLICA),
        "",
        None,
        7,
        "\u00e9",
    ]
    assert not any(proves(proof(each), FrameKind.PROOF, expected) for each in others)
    assert not proves(WireFrame(FrameKind.WELCOME, 0, {"proof": expected}), FrameKind.PROOF, expected)
    assert not proves(WireFrame(FrameKind.PROOF, 0, {}), FrameKind.PROOF, expected)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"protocols": [9, 9], "version": "9.0"}, "versions of box and replica do not match: 9.0 and 1.2"),
        ({"protocols": "no"}, "versions of box and replica do not match: unknown and 1.2"),
        ({"protocols": [1, 1], "stored": "99.9"}, "do not match"),
        ({}, "do not match"),
        ({**hello(BOX, "1").fields, "nonce": "zz"}, "no nonce"),
        ({**hello(BOX, "1").fields, "nonce": BOX.hex()[:8]}, "no nonce"),
        ({**hello(BOX, "1").fields, "nonce": 5}, "no nonce"),
    ],
)
def test_another_version_or_program_is_refused(fields: dict[str, object], problem: str) -> None:
    with pytest.raises(HandshakeError, match=problem):
        peer_nonce(WireFrame(FrameKind.HELLO, 0, fields), FrameKind.HELLO, "1.2")


def test_other_frames_are_refused() -> None:
    with pytest.raises(HandshakeError, match="too many boxes"):
        peer_nonce(refused("too many boxes"), FrameKind.CHALLENGE, "1")
    with pytest.raises(HandshakeError, match="the connection was refused"):
        peer_nonce(WireFrame(FrameKind.REFUSED, 0, {"reason": 5}), FrameKind.CHALLENGE, "1")
    with pytest.raises(HandshakeError, match="does not speak the replica protocol"):
        peer_nonce(hello(BOX, "1"), FrameKind.CHALLENGE, "1")


def test_a_secret_has_a_minimal_size() -> None:
    assert checked_secret(b"  0123456789abcdef\n", "file") == b"0123456789abcdef"
    with pytest.raises(ValueError, match="file has a secret of 2 bytes: at least 16"):
        checked_secret(b"ab\n", "file")

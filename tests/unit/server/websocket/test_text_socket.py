"""The decoding of messages in pieces."""

import asyncio

import pytest

from pulsarbox.server.websocket.text_socket import DECODED_AT_ONCE, decode_text


@pytest.mark.parametrize("letter", ["a", "é", "漢", "😀"])
@pytest.mark.parametrize("more", ["", "x", "xy"])
async def test_pieces_may_end_within_a_letter(letter: str, more: str) -> None:
    text = more + letter * DECODED_AT_ONCE
    assert await decode_text(text.encode()) == text


@pytest.mark.parametrize("data", [b"\xff", b"a" * DECODED_AT_ONCE * 2 + b"\xc3", b"\xff" * DECODED_AT_ONCE * 2])
async def test_text_must_be_utf_8(data: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        await decode_text(data)


async def test_other_clients_are_served_while_a_large_message_is_decoded() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        for _ in range(30):
            turns += 1
            await asyncio.sleep(0)

    async def decode() -> int:
        await decode_text(b"a" * DECODED_AT_ONCE * 20)
        return turns

    _, during = await asyncio.gather(others(), decode())
    assert during >= 20

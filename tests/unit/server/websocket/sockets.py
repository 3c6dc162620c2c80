"""Clients of the WebSocket API in tests."""

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.unit.server.http.harness import HttpBox

TOPIC = "persistent/public/default/orders"


class Client:
    """One open socket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def send(self, value: Any) -> None:
        """Send a value as JSON; text is sent unchanged."""
        await self.socket.send_str(value if isinstance(value, str) else json.dumps(value))

    async def received(self) -> Any:
        """Return the next message, parsed."""
        async with asyncio.timeout(60):
            message = await self.socket.receive()
        assert message.type is aiohttp.WSMsgType.TEXT, message
        return json.loads(message.data)

    async def closed(self) -> tuple[int, str]:
        """Return the code and reason with which the box closes the socket."""
        async with asyncio.timeout(60):
            message = await self.socket.receive()
        assert message.type is aiohttp.WSMsgType.CLOSE, message
        return message.data, message.extra or ""

    async def is_quiet(self) -> bool:
        """Return whether no message is received before the answer to a ping of the API."""
        await self.send({"type": "isEndOfTopic"})
        return "endOfTopic" in await self.received()

    async def publish(self, payload: bytes | str = b"x", **fields: Any) -> Any:
        """Publish a message; return the result."""
        data = payload.encode() if isinstance(payload, str) else payload
        await self.send({"payload": b64encode(data).decode(), **fields})
        return await self.received()

    async def payloads(self, count: int) -> list[str]:
        """Return the payloads of the next messages."""
        return [b64decode((await self.received())["payload"]).decode() for _ in range(count)]

    async def acknowledge(self, message: Any, **more: Any) -> None:
        """Acknowledge a received message."""
        await self.send({"messageId": message["messageId"], **more})


@asynccontextmanager
async def opened(box: HttpBox, path: str, **more: Any) -> AsyncIterator[Client]:
    """Open a socket below /ws."""
    async with box.connect(f"/ws/{path}", **more) as socket:
        yield Client(socket)


async def status_of(box: HttpBox, path: str, **headers: str) -> tuple[int, str]:
    """Return the status and reason with which an upgrade is refused."""
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": b64encode(bytes(16)).decode(),
    }
    found = await box.ask("GET", f"/ws/{path}", headers=upgrade | headers)
    return found.status, found.reason

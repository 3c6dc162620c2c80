"""The child process of a box with ``process=True``: ``python -m pulsarbox.embed.child FD``.

Requests arrive as lines of JSON over the socket FD and are answered in order. When the socket closes, the parent
program is gone, and the box stops.
"""

import asyncio
import json
import signal
import socket
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pulsarbox.config import Settings
from pulsarbox.embed.errors import BoxError
from pulsarbox.embed.hosted import HostedBox
from pulsarbox.server.daemon import own_process, settle_memory
from pulsarbox.server.serving import new_loop
from pulsarbox.server.tasks import spawn


def main(descriptor: int) -> int:
    """Serve until stopped; return the exit code."""
    control = socket.socket(fileno=descriptor)
    given = json.loads(_first_line(control))
    settings = Settings(**given["settings"])
    scarce = own_process(settings)
    if scarce:
        control.sendall(_line({"failed": f"the box cannot start: {scarce}"}))
        return 1
    try:
        loop = new_loop(settings)
    except OSError as error:
        control.sendall(_line({"failed": f"the box cannot start: {error}"}))
        return 1
    return loop.run_until_complete(_serve(HostedBox(settings, memory=given["memory"], embedded=False), control))


def _first_line(control: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n") and (part := control.recv(1 << 16)):
        line += part
    return line


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode() + b"\n"


async def _serve(box: HostedBox, control: socket.socket) -> int:
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    reader, writer = await asyncio.open_connection(sock=control)
    try:
        running = await box.open()
    except BoxError as error:
        writer.write(_line({"failed": str(error)}))
        await writer.drain()
        return 1
    writer.write(_line({"done": asdict(running)}))
    spawn("settle", _settle(box))
    orders = spawn("orders", _take_orders(box, reader, writer))
    signalled = spawn("signals", asked.wait())
    await asyncio.wait((orders, signalled), return_when=asyncio.FIRST_COMPLETED)
    await box.close()
    orders.cancel()
    signalled.cancel()
    writer.close()
    return 0


async def _settle(box: HostedBox) -> None:
    await box.wait_for_http()
    settle_memory()


async def _take_orders(box: HostedBox, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        order = json.loads(line)
        if order["do"] == "stop":
            return
        try:
            done = await _carry_out(box, order)
        except Exception as error:
            writer.write(_line({"failed": str(error) or repr(error)}))
        else:
            writer.write(_line({"done": done}))
        await writer.drain()


async def _carry_out(box: HostedBox, order: dict[str, Any]) -> dict[str, Any] | float | None:
    if order["do"] == "tell-shutdown-seconds":
        return box.shutdown_seconds
    if order["do"] == "snapshot":
        await box.snapshot(Path(order["to"]))
        return None
    if order["do"] == "restore":
        return asdict(await box.restore(Path(order["source"])))
    assert order["do"] == "restart", order
    return asdict(await box.restart())


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

"""Listening sockets for every address of a host on one port, with readable errors."""

import asyncio
import errno
import socket
from typing import Any

from pulsarbox.server.process.port_owner import described, listener


class PortTaken(OSError):
    """Another process listens on the port."""


async def listen(host: str, port: int, option: str) -> list[socket.socket]:
    """Listen on every address of ``host``, all on one port (0: any free one).

    Connections wait in the backlog until they are served. Raises OSError, whose message names the port and the command
    line ``option`` that chooses another; PortTaken also names the process that holds it.
    """
    sockets: list[socket.socket] = []
    try:
        found = await _addresses(host or None, port)
        for family, address in dict.fromkeys((info[0], str(info[4][0])) for info in found):
            try:
                sockets.append(_listening(family, address, port))
            except OSError as error:
                if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) and len(found) > 1:
                    continue  # the name resolves to an address family that this machine does not have
                raise
            port = sockets[0].getsockname()[1]
        if not sockets:
            raise OSError(errno.EADDRNOTAVAIL, "the host has no address on this machine")
    except OSError as error:
        for each in sockets:
            each.close()
        why, kind = error.strerror or str(error), OSError
        advice = advice_on(error, option)
        if error.errno == errno.EADDRINUSE:
            kind = PortTaken
            why += f" by {described(listener(port))}"
        raise kind(f"cannot listen on port {port} of {host} ({why}): {advice}") from None
    return sockets


async def _addresses(host: str | None, port: int) -> list[Any]:
    """Return the addresses of a host as of ``getaddrinfo``. Only a name is looked up, in a thread."""
    try:
        flags = socket.AI_PASSIVE | socket.AI_NUMERICHOST
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except socket.gaierror:  # not a numeric address
        loop = asyncio.get_running_loop()
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)


def advice_on(error: OSError, option: str) -> str:
    """Return the advice for a port that cannot be bound; ``option`` chooses it."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return "name an address of this machine with --host (bindAddress)"
    if error.errno == errno.EACCES:
        return f"ports below 1024 require root or CAP_NET_BIND_SERVICE: choose another with {option}"
    return f"stop the process that uses it, or choose another port with {option}"


def _listening(family: int, address: str, port: int) -> socket.socket:
    # Only with the explicit protocol does asyncio disable Nagle's algorithm for accepted sockets.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.setblocking(False)
        listening.bind((address, port))
        listening.listen(1024)
    except OSError:
        listening.close()
        raise
    return listening

"""``pulsarbox.server.network.listeners``."""

import asyncio
import socket

import pytest

from pulsarbox.server.network.listeners import listen


def test_a_port_that_is_taken_says_so_and_how_to_choose_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on port {port} of 127.0.0.1 .* --web-port"):
            asyncio.run(listen("127.0.0.1", port, "--web-port"))


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(OSError, match=r"of 203\.0\.113\.1 .* with --host"):
        asyncio.run(listen("203.0.113.1", 0, "--port"))


def test_all_addresses_of_a_host_get_the_same_port_and_take_connections_before_anybody_serves() -> None:
    sockets = asyncio.run(listen("localhost", 0, "--port"))
    assert len({each.getsockname()[1] for each in sockets}) == 1
    for each in sockets:
        with socket.create_connection(each.getsockname()[:2], timeout=5):
            pass
        each.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", ""])
def test_an_address_needs_no_lookup(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", None)
    for each in asyncio.run(listen(host, 0, "--port")):
        each.close()


class Accepted(asyncio.Protocol):
    """Reports whether its connection has TCP_NODELAY set."""

    def __init__(self, told: asyncio.Future[int]) -> None:
        self._told = told

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        connection = transport.get_extra_info("socket")
        self._told.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        transport.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_what_is_accepted_sends_small_packets_at_once(host: str) -> None:
    """Use asyncio's own loop, as without uvloop. Without TCP_NODELAY, a response may be delayed by 40 ms."""

    async def accepted() -> int:
        loop = asyncio.get_running_loop()
        told: asyncio.Future[int] = loop.create_future()
        (listening,) = await listen(host, 0, "--port")
        server = await loop.create_server(lambda: Accepted(told), sock=listening)
        _, writer = await asyncio.open_connection(*listening.getsockname()[:2])
        found = await told
        writer.close()
        server.close()
        return found

    if host == "::1" and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        assert runner.run(accepted()) != 0

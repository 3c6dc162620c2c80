"""``pulsarbox.server.listening``."""

import asyncio
import socket

import pytest

from pulsarbox.server.listening import listen


def test_a_port_that_is_taken_says_so_and_how_to_choose_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} on 127.0.0.1 cannot be listened on .* --web-port"):
            asyncio.run(listen("127.0.0.1", port, "--web-port"))


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(OSError, match=r"203\.0\.113\.1 cannot be listened on"):
        asyncio.run(listen("203.0.113.1", 0, "--port"))


def test_all_addresses_of_a_host_get_the_same_port_and_take_connections_before_anybody_serves() -> None:
    sockets = asyncio.run(listen("localhost", 0, "--port"))
    assert len({each.getsockname()[1] for each in sockets}) == 1
    for each in sockets:
        with socket.create_connection(each.getsockname()[:2], timeout=5):
            pass
        each.close()

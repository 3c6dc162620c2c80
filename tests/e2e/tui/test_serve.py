"""The dashboard in a browser: the page and its websocket, with a browser's protocol, and rejected requests."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import forks
from tests.e2e.clients import PATIENCE_SECONDS
from tests.e2e.conftest import Running
from tests.e2e.terminal import pulsarbox
from tests.tools.box import free_ports

aiohttp: Any = pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")


@pytest.fixture
def served(box: Running, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the process and return it with its printed address."""
    port = free_ports(1)[0]
    process = subprocess.Popen(
        pulsarbox("top", "subscriptions", "--serve", f"--serve-port={port}", "--admin-url", box.web_url),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
    )
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(rf"http://127\.0\.0\.1:{port}/\?key=\S+", said)
        assert found, said + process.stderr.read()
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[tuple[Any, Any, str]]:
    """Open the page as a browser does: return the session, its websocket, and the page's text."""
    jar = aiohttp.CookieJar(unsafe=True)  # accepts cookies from an IP address, as browsers do
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        async with session.get(address) as answer:
            assert answer.status == 200
            text = await answer.text()
        found = re.search(r'data-session-websocket-url="([^"]+)"', text)
        assert found
        origin = address.partition("/?")[0]
        async with session.ws_connect(f"{found[1]}?width=120&height=30", origin=origin) as socket:
            yield session, socket, text


async def painted(socket: Any, *words: bytes) -> None:
    """Wait until all texts have been received."""
    seen = b""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not all(word in seen for word in words):
            message = await socket.receive()
            assert message.type == aiohttp.WSMsgType.BINARY, message
            seen += message.data


def test_a_page_is_a_dashboard_and_ctrl_c_ends_all_of_it(served: tuple[subprocess.Popen[str], str]) -> None:
    process, address = served

    async def browse() -> list[psutil.Process]:
        async with opened(address) as (session, socket, text):
            origin = address.partition("/?")[0]
            assert set(re.findall(r'https?://[^/"]+', text)) - {"http://www.w3.org"} == {origin}, (
                "nothing from elsewhere"
            )
            for part in re.findall(r'(?:href|src)="([^"]+)"', text):
                async with session.get(part) as answer:
                    assert answer.status == 200, part
            assert 'name="viewport" content="width=device-width' in text and 'id="keys"' in text
            await painted(socket, b"SUBSCRIPTION", b"CAUSE")
            await socket.send_json(["stdin", "?"])
            await painted(socket, b" Help ")
            await socket.send_json(["resize", {"width": 100, "height": 40}])
            children = psutil.Process(process.pid).children(recursive=True)
            assert children
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (await socket.receive()).type not in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED):
                    pass
            return children

    children = asyncio.run(browse())
    _, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0 and said == ""
    assert psutil.wait_procs(children, PATIENCE_SECONDS)[1] == []


def test_who_quits_in_the_page_or_closes_it_leaves_no_process(served: tuple[subprocess.Popen[str], str]) -> None:
    process, address = served

    async def browse() -> None:
        async with opened(address) as (_, socket, _), opened(address) as (_, other, _):
            await painted(socket, b"SUBSCRIPTION")
            await painted(other, b"SUBSCRIPTION")
            await socket.send_json(["stdin", "q"])
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (await socket.receive()).type == aiohttp.WSMsgType.BINARY:
                    pass
        # The other one was closed as a browser does.

    asyncio.run(browse())
    assert psutil.wait_procs(psutil.Process(process.pid).children(recursive=True), PATIENCE_SECONDS)[1] == []
    assert process.poll() is None


def test_a_server_that_is_killed_takes_its_pages_along(served: tuple[subprocess.Popen[str], str]) -> None:
    process, address = served

    async def browse() -> list[psutil.Process]:
        async with opened(address) as (_, socket, _):
            await painted(socket, b"SUBSCRIPTION")
            children = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            return children

    children = asyncio.run(browse())
    assert children and psutil.wait_procs(children, PATIENCE_SECONDS)[1] == []


def test_only_who_has_the_address_is_let_in(served: tuple[subprocess.Popen[str], str]) -> None:
    _, address = served
    origin, _, key = address.partition("/?")

    async def refused(path: str, text: str, **headers: str) -> None:
        async with aiohttp.ClientSession() as session, session.get(origin + path, headers=headers) as answer:
            assert answer.status == 403 and text in await answer.text()

    async def tried() -> None:
        await refused("/", "it contains a key")
        await refused("/?key=guessed", "it contains a key")
        await refused("/ws", "it contains a key")
        await refused("/static/", "it contains a key")
        await refused(f"/?{key}", "only to this machine", Host="rebound.example")
        for other in ("http://evil.example", "http://127.0.0.1:1", "null"):
            await refused(f"/ws?{key}", "are rejected", Origin=other)

    asyncio.run(tried())


def test_addresses_of_the_network_and_taken_ports_are_refused_and_said_why(box: Running) -> None:
    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return forks.text(forks.run("top", "--serve", *words, "--admin-url", box.web_url, seconds=120))

    for host in ("0.0.0.0", "192.0.2.7", "box.example", "::"):
        done = run("--serve-host", host)
        assert done.returncode == 2 and "ssh -L" in done.stderr, host
    taken = run("--serve-port", box.web_url.rpartition(":")[2])
    assert taken.returncode == 1 and "choose another port with --serve-port" in taken.stderr
    both = run("--once")
    assert both.returncode == 2 and "cannot be combined" in both.stderr


def test_without_the_extra_it_says_how_to_install_it(box: Running) -> None:
    code = f"""if True:
        import sys
        sys.modules["textual_serve"] = sys.modules["textual_serve.app_service"] = None
        from pulsarbox.cli.main import main
        sys.argv = ["pulsarbox", "top", "--serve", "--admin-url", {box.web_url!r}]
        main()
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1 and "pip install 'pulsarbox[serve]'" in done.stderr, done.stderr

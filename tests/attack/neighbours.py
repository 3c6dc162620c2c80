"""Local attacks: by web pages in the browser of a user, and by other users of the machine."""

import json
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pulsarbox.client.client import Client
from pulsarbox.client.producer import Options, Producer
from tests.attack.victim import SECONDS, Broken, Victim, answered, send
from tests.tools.box import BoxProcess, admin

_TOPIC: Final = "persistent/public/default/secrets"
_SECRET: Final = b"for your eyes only"
_EVIL: Final = "http://evil.example"
_PAGES: Final = (
    {"Host": "localhost:{port}", "Origin": _EVIL, "Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"},
    {"Host": "127.0.0.1:{port}", "Origin": "null", "Content-Type": "text/plain"},
    {"Host": "localhost:{port}", "Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
    {"Host": "localhost", "Sec-Fetch-Site": "cross-site"},
    {"Host": "evil.example:{port}", "Origin": "http://evil.example:{port}", "Sec-Fetch-Site": "same-origin"},
    {"Host": "evil.example"},
    {"Host": "localhost:{port}", "Origin": _EVIL, "Connection": "Upgrade", "Upgrade": "websocket"},
    {"Host": "localhost:{port}", "Origin": _EVIL, "Access-Control-Request-Method": "DELETE"},
)
"""Headers sent by browsers for a page of another site, for a sandboxed one, and after DNS rebinding."""
_WANTED: Final = (
    ("POST", f"/topics/{_TOPIC}", b'{"messages":[{"payload":"forged"}]}'),
    ("POST", f"/admin/v2/{_TOPIC}/subscription/s/skip_all", b""),
    ("POST", f"/admin/v2/{_TOPIC}/terminate", b""),
    ("DELETE", f"/admin/v2/{_TOPIC}?force=true", b""),
    ("POST", "/admin/v2/brokers/configuration/httpAllowedHosts/evil.example", b""),
    ("PUT", "/admin/v2/tenants/evil", b'{"allowedClusters":["standalone"]}'),
    ("POST", "/admin/v2/brokers/shutdown", b""),
    ("OPTIONS", f"/admin/v2/{_TOPIC}", b""),
    ("GET", f"/admin/v2/{_TOPIC}/examinemessage?messagePosition=1", b""),
    ("GET", "/pulsarbox/v1/browse/public/default/secrets", b""),
    ("GET", "/metrics", b""),
)


def cross_site(victim: Victim) -> str:
    """A web page sends requests to a broker without authentication: none is executed, and no data is returned."""
    asked = 0
    with _other_box(victim, "open") as box:
        _publish(box)
        for page in _PAGES:
            for method, path, body in _WANTED:
                for port, status in ((box.web_port, b"403"), (box.port, b"400")):
                    told = _told(port, method, path, page, body)
                    if not told.startswith(b"HTTP/1.1 " + status) or _SECRET in told:
                        raise Broken(f"{method} {path} of a page {page} is answered with {told[:300]!r}")
                    asked += 1
        stats = json.loads(admin(box.web_url, "GET", f"{_TOPIC}/stats"))
        found = stats["msgInCounter"], stats["subscriptions"]["s"]["msgBacklog"]
        if found != (1, 1) or "evil" in admin(box.web_url, "GET", "tenants"):
            raise Broken(f"a page has changed something: {stats}")
    return f"{asked} requests of pages"


def file_modes(victim: Victim) -> str:
    """Another user reads files written under the loosest umask, or in a directory left open."""
    umask = os.umask(0)
    try:
        with _other_box(victim, "umask") as box:
            _publish(box)
            _only_its_owners(box.data)
            box.stop()
            for path in (box.data, *box.data.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
            box.start()
            return f"{_only_its_owners(box.data)} files and directories"
    finally:
        os.umask(umask)


@contextmanager
def _other_box(victim: Victim, name: str) -> Iterator[BoxProcess]:
    """Run a broker with default settings beside the victim."""
    box = BoxProcess(victim.box.data.with_name(name))
    box.start()
    try:
        yield box
        if box.stop() != 0:
            raise Broken(f"it ended with an error:\n{box.said()}")
    finally:
        box.kill()


def _publish(box: BoxProcess) -> None:
    admin(box.web_url, "PUT", _TOPIC)
    admin(box.web_url, "PUT", f"{_TOPIC}/subscription/s")
    client = Client([("127.0.0.1", box.port)], SECONDS)
    try:
        producer = Producer(client, "secrets", Options(batching=False), lambda *told: None)
        producer.send_plain([_SECRET])
        producer.flush()
    finally:
        client.close()


def _told(port: int, method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
    lines = [f"{name}: {value.replace('{port}', str(port))}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", *([] if "Connection" in headers else ["Connection: close"])]
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        send(connection, "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode() + body)
        return answered(connection)


def _only_its_owners(folder: Path) -> int:
    paths = (folder, *folder.rglob("*"))
    for path in paths:
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & 0o077:
            raise Broken(f"other users have rights to {path}: {mode:04o}")
    return len(paths)

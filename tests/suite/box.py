"""Box for the suite: settings from the suite's own file, its ports, and the setup that its scripts perform.

The suite's ``build-support/start-test-service-inside-container.sh`` sets up a Pulsar broker in the same way. It creates
a secret key and two tokens signed with it, the passwords of ``test-conf/.htpasswd``, tenants, namespaces and
permissions.
"""

import json
import os
import secrets
import shutil
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pulsarbox.protocol.tokens import create
from tests.suite.running import SuiteError
from tests.tools.box import BoxProcess

PORTS: Final = {"6650": "pulsar", "8080": "http", "6651": "pulsar+ssl", "8443": "https"}
"""Hardcoded in the suite's tests."""
CONF: Final = Path("test-conf/standalone-ssl.conf")
TOKEN: Final = ".test-token.txt"

ANONYMOUS: Final = {"anonymous": ["produce", "consume"]}
NAMESPACES: Final[Mapping[str, Mapping[str, list[str]]]] = {
    "public/default": ANONYMOUS,
    "public/default-2": ANONYMOUS,
    "private/auth": {"token-principal": ["produce", "consume"]},
}
TENANTS: Final = {"public": ["anonymous"], "private": []}


def check_ports() -> None:
    """Check that the suite's ports are free. Raises SuiteError."""
    for port in PORTS:
        with socket.socket() as trying:
            trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trying.bind(("127.0.0.1", int(port)))
            except OSError as error:
                raise SuiteError(
                    f"port {port} is taken, and the suite's tests insist on it: stop what listens there"
                    f" (ss -ltnp 'sport = :{port}' shows it; {error.strerror})"
                ) from None


class SuiteBox:
    """Box with the suite's settings; its files are in ``scratch``."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self._folder = folder
        self._scratch = scratch
        self._key = secrets.token_bytes(32)
        shutil.rmtree(scratch / "data", ignore_errors=True)  # tests would see the data of an earlier run
        self.box = BoxProcess(scratch / "data", self._command(), scratch / "box.log", ports=(6650, 8080))

    def _command(self) -> list[str]:
        # Paths in the file are relative to the broker's working directory; one is absolute, in the suite's container.
        there = self._scratch / CONF.parent
        there.unlink(missing_ok=True)
        there.symlink_to(self._folder / CONF.parent, target_is_directory=True)
        secret = self._scratch / "secret.key"
        secret.touch(mode=0o600)
        secret.write_bytes(self._key)
        given = {
            "tokenSecretKey": f"file://{secret}",
            "basicAuthConf": str(CONF.parent / ".htpasswd"),
            "bindAddress": "localhost",
        }
        environ = [f"PULSARBOX_{name}={value}" for name, value in given.items()]
        words = ["start", "--config", str(CONF), "--data-dir", "{data}", "--log-level", "info"]
        return ["env", *environ, sys.executable, "-m", "pulsarbox", *words]

    def start(self) -> None:
        """Start the box and perform the setup of the suite's scripts."""
        self.box.start()
        (self._folder / TOKEN).write_text(self._token("token-principal"))
        roles = self._token("superUser")
        for tenant, admins in TENANTS.items():
            self._put(roles, f"tenants/{tenant}", {"adminRoles": admins, "allowedClusters": ["standalone"]})
        for namespace, granted in NAMESPACES.items():
            self._put(roles, f"namespaces/{namespace}", {"replication_clusters": ["standalone"]}, exists=409)
            for role, actions in granted.items():
                self._ask(roles, "POST", f"namespaces/{namespace}/permissions/{role}", actions)

    def stop(self) -> int:
        """Stop the box and return its exit code."""
        return self.box.stop()

    def kill(self) -> None:
        self.box.kill()

    def _token(self, subject: str) -> str:
        return create({"sub": subject}, self._key, "HS256", {})

    def _put(self, token: str, path: str, body: Any, exists: int | None = None) -> None:
        """Create a resource, or update one that a box has from the start."""
        try:
            self._ask(token, "PUT", path, body)
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise
            if exists is None:
                self._ask(token, "POST", path, body)

    def _ask(self, token: str, method: str, path: str, body: Any) -> None:
        request = urllib.request.Request(
            f"{self.box.web_url}/admin/v2/{path}",
            method=method,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30):
            pass


def folder_of(checkout: Path) -> Path:
    """Return the folder of the tests in a checkout, or that folder itself. Raises SuiteError."""
    for folder in (checkout / "tests", checkout):
        if (folder / CONF).is_file() and os.access(folder, os.W_OK):
            return folder.resolve()
    raise SuiteError(
        f"{checkout} holds no {CONF}, or may not be written to:"
        " name a checkout of github.com/apache/pulsar-client-python"
    )

"""S3 servers for tests: moto in this process, and versitygw, a real server that is built from Go modules."""

import contextlib
import logging
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from pulsarbox.spark.offload.s3_access import S3Settings
from tests.tools.box import free_ports

GATEWAY: Final = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
KEY: Final = "tester"
SECRET: Final = "a-secret-of-tests"
BUCKET: Final = "bucket"
_START_SECONDS: Final = 60.0
_BUILD_SECONDS: Final = 900.0


@contextlib.contextmanager
def moto() -> Iterator[S3Settings]:
    """Run moto in a thread."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    (port,) = free_ports(1)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    try:
        yield _with_bucket(port)
    finally:
        server.stop()


@contextlib.contextmanager
def gateway(folder: Path) -> Iterator[S3Settings]:
    """Run versitygw on a directory; skip the test if it cannot be built."""
    program = built(folder / "bin")
    (port,) = free_ports(1)
    (folder / "objects").mkdir()
    command = [str(program), "--port", f"127.0.0.1:{port}", "--access", KEY, "--secret", SECRET]
    with (folder / "gateway.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "posix", str(folder / "objects")], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        _wait_for(port)
        yield _with_bucket(port)
    finally:
        server.kill()
        server.wait()


def built(folder: Path) -> Path:
    """Return the program, built once per machine by the Go tools; skip the test without them or without modules."""
    if shutil.which("go") is None:
        pytest.skip("requires Go")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "pulsarbox", GATEWAY.rpartition("@")[2])
    program = cache / "versitygw"
    if not program.exists():
        done = subprocess.run(
            ["go", "install", GATEWAY],
            check=False,
            env=os.environ | {"GOBIN": str(folder)},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=_BUILD_SECONDS,
        )
        if done.returncode:
            pytest.skip(f"versitygw cannot be built: {done.stderr[-300:]}")
        cache.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "versitygw", program.with_suffix(".new"))
        program.with_suffix(".new").replace(program)
    return program


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.05)


def _with_bucket(port: int) -> S3Settings:
    from pyarrow.fs import S3FileSystem

    endpoint, region = f"http://127.0.0.1:{port}", "us-east-1"
    system = S3FileSystem(
        access_key=KEY, secret_key=SECRET, endpoint_override=endpoint, region=region, allow_bucket_creation=True
    )
    system.create_dir(BUCKET)
    return S3Settings(endpoint, region, KEY, SECRET, "")


def environment(to: S3Settings) -> dict[str, str]:
    """Return the variables that select a server."""
    keys = {"AWS_ACCESS_KEY_ID": to.key, "AWS_SECRET_ACCESS_KEY": to.secret}
    return keys | {"AWS_ENDPOINT_URL": to.endpoint, "AWS_REGION": to.region}

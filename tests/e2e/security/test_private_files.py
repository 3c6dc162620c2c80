"""Files of a running box are readable only by its own user."""

import json
import os
import shutil
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarbox import PulsarBox
from pulsarbox.server.process.runtime_file import RuntimeFile, read
from tests import forks
from tests.e2e.clients import connect, until
from tests.tools.campaigns import short

pytestmark = pytest.mark.skipif("E2E_URL" in os.environ, reason="starts boxes of its own")

SECONDS = 120
SETTINGS = {
    "historyIntervalSeconds": "1",
    "journalVolumeSizeMbytes": "8",
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
}


def run(*words: str, umask: int = 0o022, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one of our commands under a umask."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PULSARBOX_")}
    environ |= {f"PULSARBOX_{name}": value for name, value in variables.items()}
    return forks.text(forks.run(*words, env=environ, umask=umask))


def open_to_others(folder: Path) -> list[str]:
    """Return the paths with permissions for group or others, with their modes."""
    paths = (folder, *folder.rglob("*"))
    return [f"{path} {stat.S_IMODE(path.stat().st_mode):04o}" for path in paths if path.stat().st_mode & 0o077]


def running(data: Path) -> RuntimeFile:
    found = read(data, int((data / "LOCK").read_text()))
    assert found is not None
    return found


@pytest.fixture(params=short([0o000, 0o022], 1), ids=oct)
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Return the directory of a box in the background after typical operations."""
    folder = tmp_path / "data"
    started = run(
        "start",
        "--detach",
        "--data-dir",
        str(folder),
        "--port",
        "0",
        "--web-port",
        "0",
        umask=request.param,
        **SETTINGS,
    )
    assert started.returncode == 0, started.stderr
    try:
        work(running(folder))
        until(lambda: any((folder / "history").glob("*.frames")))
        until(lambda: any((folder / "events").iterdir()))
        yield folder
    finally:
        run("stop", "--data-dir", str(folder))


def work(box: RuntimeFile) -> None:
    """Exercise topics, acknowledgements, a checkpoint, and a volume roll."""
    client = connect(box.broker_url)
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    for _ in range(12):
        producer.send(os.urandom(1 << 20))
        consumer.acknowledge(consumer.receive(60_000))
    client.close()
    request = urllib.request.Request(f"{box.web_url}/admin/v2/tenants/x", b"{}", method="PUT")
    request.add_header("Content-Type", "application/json")
    request.data = json.dumps({"allowedClusters": ["standalone"]}).encode()
    urllib.request.urlopen(request, timeout=60).close()


def test_all_that_a_box_writes_is_its_users_alone(data: Path) -> None:
    there = {path.name for path in data.iterdir()}
    assert there >= {"INSTANCE", "LOCK", "RUNNING", "RESERVE", "meta", "volumes", "events", "history", "pulsarbox.log"}
    assert open_to_others(data) == []
    for words in (("status",), ("topic", "list"), ("top", "--once")):
        found = run(*words, "--data-dir", str(data))
        assert found.returncode == 0, found.stderr
    checked = run("storage", "check", str(data))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert run("stop", "--data-dir", str(data)).returncode == 0
    assert open_to_others(data) == []
    assert run("top", "--once", "--data-dir", str(data), umask=0).returncode == 0  # a dead box
    assert open_to_others(data) == []


def test_a_directory_of_an_earlier_version_is_narrowed_by_a_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with PulsarBox(data_dir=data) as box:
        client = connect(box.service_url)
        client.create_producer("t").send(b"x")
        client.close()
    for path in (data, *data.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    started = run("start", "--detach", "--data-dir", str(data), "--port", "0", "--web-port", "0")
    assert started.returncode == 0, started.stderr
    try:
        assert open_to_others(data) == []
        log = (data / "pulsarbox.log").read_text()
        assert f"the data directory {data} was open to other users (mode 0755)" in log
        assert f"files and directories in {data} were open to other users" in log
    finally:
        assert run("stop", "--data-dir", str(data)).returncode == 0


@pytest.mark.parametrize("process", [False, True])
def test_embedded_boxes_and_their_snapshots(tmp_path: Path, process: bool) -> None:
    before = os.umask(0)
    try:
        with PulsarBox(data_dir=tmp_path / "data", process=process) as box:
            client = connect(box.service_url)
            client.create_producer("t").send(b"x")
            client.close()
            with box.snapshot() as snapshot:
                assert open_to_others(snapshot.path) == []
                box.restore(snapshot)
            assert open_to_others(tmp_path / "data") == []
    finally:
        assert os.umask(before) == 0


def bound() -> list[str]:
    """Return a command prefix that drops root's right to bypass permissions."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory to another user")
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("there is no setpriv")
    return [setpriv, "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]


@pytest.mark.parametrize(
    ("words", "code"),
    short(
        [
            (("status",), 5),
            (("start", "--port", "0"), 1),
            (("stop",), 5),
            (("topic", "list"), 5),
            (("top", "--once"), 5),
        ],
        2,
    ),
)
def test_other_users_are_told_whose_directory_it_is(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    limited = bound()
    data = tmp_path / "data"
    with PulsarBox(data_dir=data):
        pass
    for path in (data, *data.rglob("*")):
        os.chown(path, 65534, 65534)
    command = [*limited, sys.executable, "-m", "pulsarbox", *words, "--data-dir", str(data)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert found.returncode == code, found.stderr
    assert f"{data} cannot be" in found.stderr and "Permission denied" in found.stderr
    assert "Traceback" not in found.stderr

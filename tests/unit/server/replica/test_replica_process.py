"""Refusals of `pulsarbox storage serve`, and TLS between both sides."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsarbox.cli.data.replica import serve
from pulsarbox.config import ConfigError, Settings
from pulsarbox.errors import PersistenceError
from pulsarbox.server.network.certificates import Certificates
from pulsarbox.server.replica.box_side import replica_directories
from pulsarbox.server.replica.replica_connector import ReplicaConnector
from pulsarbox.server.replica.replica_server import certificates_of
from pulsarbox.storage.ensemble.keeping.memory_directories import MemoryDirectories
from pulsarbox.storage.ensemble.remote.remote_member import RemoteMember
from pulsarbox.storage.lmdb.directory import DataDirectory
from tests.tools.certificates import Authority
from tests.unit.server.replica.replica_fixture import SECRET, replica_at
from tests.unit.storage.ensemble.member_conformance import packed


@pytest.fixture(autouse=True)
def keep_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in this process must not set up its log: the tests after them would see its level."""
    monkeypatch.setattr("pulsarbox.server.replica.replica_process.set_up", lambda settings: None)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_bytes(SECRET)
    file.chmod(0o600)
    return file


def test_a_replica_serves_until_it_is_stopped(tmp_path: Path, secret: Path) -> None:
    command = [sys.executable, "-m", "pulsarbox", "storage", "serve", str(tmp_path / "d"), "--listen", "127.0.0.1:0"]
    with subprocess.Popen([*command, "--secret-file", str(secret)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", process.stdout.readline())
        assert port is not None
        connector = ReplicaConnector(secret, None, 5.0)
        member = RemoteMember(
            f"replica://127.0.0.1:{port[1]}", connector.connect, lambda: {"run": "x", "generation": 0}, ""
        )
        member.open()
        member.commit(packed(1, [(1, 0, 1)]))
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == 0
    member.close()


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["--listen", "0.0.0.0:0"], 2, "messages would be sent unencrypted to 0.0.0.0: configure"),
        (["--listen", "nowhere"], 2, "'nowhere' is not HOST:PORT"),
        (["--listen", "127.0.0.1:0", "--tls-cert", "/none", "--tls-key", "/none"], 2, "/none cannot be read"),
        (["--listen", "127.0.0.1:0", "--secret-file", "/none"], 2, "/none cannot be read: No such file"),
    ],
)
def test_what_cannot_be_served_is_refused(
    tmp_path: Path, secret: Path, words: list[str], code: int, problem: str
) -> None:
    result = CliRunner().invoke(serve, [str(tmp_path / "d"), "--secret-file", str(secret), *words])
    assert (result.exit_code, problem in result.output) == (code, True), result.output


def test_a_secret_is_required(tmp_path: Path) -> None:
    result = CliRunner().invoke(serve, [str(tmp_path / "d")])
    assert result.exit_code == 2
    assert "--secret-file or the setting ensembleReplicaSecretFile is required" in result.output


def test_a_directory_in_use_is_refused(tmp_path: Path, secret: Path) -> None:
    held = DataDirectory(tmp_path / "d")
    result = CliRunner().invoke(serve, [str(tmp_path / "d"), "--listen", "127.0.0.1:0", "--secret-file", str(secret)])
    held.close()
    assert (result.exit_code, "is in use by process" in result.output) == (4, True)


def tls(folder: Path, name: str = "127.0.0.1") -> tuple[Path, Certificates]:
    """Return the file of an authority, and a certificate of it."""
    authority = Authority(folder)
    pair = authority.signs(name)
    settings = Settings(tlsCertificateFilePath=str(pair.certificate), tlsKeyFilePath=str(pair.key))
    certificates = certificates_of(settings)
    assert certificates is not None
    return authority.file, certificates


def test_both_sides_use_tls(tmp_path: Path) -> None:
    trusted, certificates = tls(tmp_path / "tls")
    with replica_at(tmp_path, certificates=certificates) as running:
        assert running.name.startswith("replica+ssl://")
        connect = running.connector(trusted=trusted).connect
        member = RemoteMember(running.name, connect, lambda: {"run": "x", "generation": 0}, "")
        member.open()
        done: list[Exception | None] = []
        for position in range(1, 20):
            member.post(packed(position, [(1, 20 * position, 20)]), done.append)
        member.commit(packed(20, []))
        assert done == [None] * 19
        assert [position for position, _ in member.batches(0)] == list(range(1, 21))
        member.close()


def test_a_replica_without_a_trusted_certificate_is_refused(tmp_path: Path) -> None:
    _, certificates = tls(tmp_path / "tls")
    other = Authority(tmp_path / "other", "other").file
    with replica_at(tmp_path, certificates=certificates) as running:
        with pytest.raises(PersistenceError, match=r"cannot be reached with TLS: .*CERTIFICATE_VERIFY_FAILED"):
            running.connector(trusted=other).connect(running.name)
        plain = running.name.replace("+ssl", "")
        with pytest.raises(PersistenceError, match="cannot be used"):
            running.connector().connect(plain)


def test_a_box_needs_a_readable_secret(tmp_path: Path, secret: Path, caplog: pytest.LogCaptureFixture) -> None:
    local = MemoryDirectories({})
    with pytest.raises(ConfigError, match="ensembleReplicaSecretFile"):
        replica_directories(Settings(ensembleReplicaSecretFile=str(tmp_path / "none")), local)
    listed = f"{tmp_path},replica://10.0.0.2:1,replica://127.0.0.1:2"
    replica_directories(Settings(ensembleReplicaSecretFile=str(secret), dataDirectories=listed), local)
    assert "replica://10.0.0.2:1: messages are sent unencrypted" in caplog.text
    assert "127.0.0.1" not in caplog.text

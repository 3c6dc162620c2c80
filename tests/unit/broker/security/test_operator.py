"""A process that can read the data directory needs no token."""

import stat
from pathlib import Path

import pytest

from pulsarbox.broker.security.operator import OperatorProvider
from pulsarbox.broker.security.provider import Refused
from pulsarbox.clock import BEGINNING
from pulsarbox.config import Settings
from pulsarbox.server.process import runtime_file
from pulsarbox.server.process.runtime_file import RuntimeFile
from pulsarbox.server.security.configured import authentication_of
from tests.unit.broker.security.signing import GUARDED, by_connection, by_request

WRITTEN = RuntimeFile(7, 1, "1", "pulsar://h:1", "http://h:2", "h", 1, 2, "data", operator="secret")


def test_the_secret_and_nothing_else() -> None:
    found = authentication_of(Settings(**GUARDED), "secret")
    assert found is not None and found.methods[-1] == "operator"
    assert by_connection(found, "operator", b"secret", BEGINNING).method == "operator"
    assert by_request(found, None, "Pulsarbox secret", BEGINNING).method == "operator"
    for wrong in (b"", b"secre", b"secrets", b"\xff"):
        with pytest.raises(Refused):
            by_connection(found, "operator", wrong, BEGINNING)
    for header in ("", "Pulsarbox", "Pulsarbox x", "Bearer secret"):
        with pytest.raises(Refused):
            by_request(found, "operator", header, BEGINNING)
    assert "operator" not in found.challenges.lower()


@pytest.mark.parametrize(
    ("roles", "role"),
    [({}, "operator"), ({"superUserRoles": " , root,b"}, "root"), ({"superUserRoles": "p,b", "proxyRoles": "p"}, "b")],
)
def test_it_is_a_superuser(roles: dict[str, str], role: str) -> None:
    found = authentication_of(Settings(**(GUARDED | roles)), "secret")
    assert found is not None
    assert by_connection(found, "operator", b"secret", BEGINNING).role == role


def test_a_box_without_it_knows_no_operator() -> None:
    found = authentication_of(Settings(**GUARDED))
    assert found is not None and not found.knows(OperatorProvider.method)


def test_it_is_written_where_only_the_owner_reads_it(tmp_path: Path) -> None:
    runtime_file.write(tmp_path, WRITTEN)
    assert stat.S_IMODE((tmp_path / "OPERATOR").stat().st_mode) == 0o600
    assert "secret" not in (tmp_path / "RUNNING").read_text() and "secret" not in repr(WRITTEN)
    assert runtime_file.read(tmp_path, 7) == WRITTEN
    (tmp_path / "OPERATOR").chmod(0o644)
    runtime_file.write(tmp_path, WRITTEN)  # a leftover of an earlier start, with changed permissions
    assert stat.S_IMODE((tmp_path / "OPERATOR").stat().st_mode) == 0o600
    runtime_file.remove(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_authentication_nothing_is_written(tmp_path: Path) -> None:
    runtime_file.write(tmp_path, RuntimeFile(7, 1, "1", "pulsar://h:1", "http://h:2", "h", 1, 2, "data"))
    assert [each.name for each in tmp_path.iterdir()] == ["RUNNING"]
    found = runtime_file.read(tmp_path, 7)
    assert found is not None and found.operator == ""

"""``pulsarbox doctor``: passed and failed checks, and their advice."""

import json
import os
import shutil
import socket
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.main import main
from pulsarbox.cli.process import doctor_checks
from pulsarbox.server.process.rlimit import FILES_MIN
from pulsarbox.storage.lmdb.directory import DataDirectory
from tests.tools.certificates import Authority, Pair


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder on a simulated fast disk, regardless of this machine's disk."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor_checks, "sync_times", lambda _, count: [1.0] * count)
    return tmp_path


def doctor(*arguments: str, **environ: str) -> Result:
    options = [] if "--port" in arguments else ["--port", "0", "--web-port", "0"]
    return CliRunner().invoke(main, ["doctor", *options, *arguments], env=environ)


def found(name: str, *arguments: str, **environ: str) -> list[dict[str, Any]]:
    document = json.loads(doctor(*arguments, "-o", "json", **environ).stdout)
    return [check for check in document["checks"] if check["name"] == name]


def one(name: str, *arguments: str, **environ: str) -> tuple[str, str, str]:
    (check,) = found(name, *arguments, **environ)
    assert bool(check["advice"]) == (check["state"] != "ok")
    return check["state"], check["text"], check["advice"]


def test_a_fit_machine_passes_and_nothing_is_left_behind(folder: Path) -> None:
    result = doctor()
    assert result.exit_code == 0, result.output
    assert " 0 fail" in result.stderr
    head, *lines = result.stdout.splitlines()
    assert head == "STATE NAME            TEXT"
    for line in lines:
        assert line.startswith(("ok    ", "warn  ", " " * 22 + "what to do: "))
    for name in (
        "configuration",
        "python",
        "packages",
        "files",
        "data",
        "disk",
        "sync",
        "port",
        "loopback",
        "terminal",
    ):
        assert f"  {name}  " in result.stdout
    assert list(folder.iterdir()) == []


def test_json_says_the_same_as_the_exit_code() -> None:
    assert json.loads(doctor("-o", "json").stdout)["fit"] is True
    result = doctor("-o", "json", PULSARBOX_x="1")
    assert (json.loads(result.stdout)["fit"], result.exit_code) == (False, 1)


def test_a_configuration_that_cannot_be_used() -> None:
    state, text, advice = one("configuration", PULSARBOX_maxMesageSize="1")
    assert state == "fail" and "did you mean PULSARBOX_maxMessageSize?" in text and "defaults" in advice


def test_keys_without_effect() -> None:
    Path("b.conf").write_text("zookeeperServers=x\n")
    assert one("configuration", "--config", "b.conf")[:2] == ("warn", "from b.conf, 1 key without effect")


@pytest.mark.parametrize("option", ["--port", "--web-port"])
def test_a_port_that_is_taken_names_its_holder(option: str) -> None:
    other = {"--port": "--web-port", "--web-port": "--port"}[option]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        by_name = found("port", "--host", "127.0.0.1", option, str(port), other, "0")
    (bad,) = [check for check in by_name if check["state"] == "fail"]
    assert f"process {os.getpid()} (" in bad["text"] and option in bad["advice"]


def test_an_address_of_another_machine() -> None:
    assert {check["state"] for check in found("port", "--host", "203.0.113.1", "--port", "1", "--web-port", "2")} == {
        "fail"
    }


def test_an_address_that_others_reach() -> None:
    assert one("address", "--host", "0.0.0.0")[0] == "warn"
    assert one("address", "--host", "127.0.0.1")[0] == "ok"


def test_data_directories(folder: Path) -> None:
    assert one("data")[1] == "data does not exist; it is created on start"
    held = DataDirectory(folder / "data")
    assert f"in use by a running box: process {os.getpid()}" in one("data")[1]
    held.close()
    assert one("data")[:2] == ("ok", "data, not in use")
    (folder / "other").mkdir()
    (folder / "other" / "thing").touch()
    assert one("data", "--data-dir", "other")[0] == "warn"
    assert one("data", "--data-dir", "other/thing")[0] == "fail"
    assert one("data", "--data-dir", "other/thing/data")[0] == "fail"


@pytest.mark.parametrize(
    ("free", "kind", "state", "words"),
    [
        (doctor_checks.FREE_MIN - 1, "ext4", "fail", "free disk space: "),
        (doctor_checks.FREE_WANTED - 1, "ext4", "warn", "free disk space soon"),
        (doctor_checks.FREE_WANTED, "tmpfs", "warn", "a memory file system"),
        (doctor_checks.FREE_WANTED, "nfs4", "warn", "network file systems"),
        (doctor_checks.FREE_WANTED, "ext4", "ok", ""),
        (doctor_checks.FREE_WANTED, "", "ok", ""),
    ],
)
def test_disks(monkeypatch: pytest.MonkeyPatch, free: int, kind: str, state: str, words: str) -> None:
    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free))
    monkeypatch.setattr(doctor_checks, "_file_system", lambda _: kind)
    seen = one("disk")
    assert seen[0] == state
    assert words in seen[2]


def test_the_file_system_of_a_place_is_known() -> None:
    assert doctor_checks._file_system(Path("/proc")) == "proc"


@pytest.mark.parametrize(
    ("times", "state"), [([1.0] * 48, "ok"), ([11.0] * 48, "warn"), ([1.0] * 47 + [101.0], "warn")], ids=str
)
def test_syncs(monkeypatch: pytest.MonkeyPatch, times: list[float], state: str) -> None:
    monkeypatch.setattr(doctor_checks, "sync_times", lambda *_: times)
    seen = one("sync")
    assert seen[0] == state
    assert "p50" in seen[1] and "p99" in seen[1]


def test_a_disk_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> list[float]:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(doctor_checks, "sync_times", refuse)
    assert one("sync")[:1] == ("fail",)


@pytest.mark.parametrize(("limit", "state"), [(FILES_MIN - 1, "fail"), (FILES_MIN, "warn"), (65536, "ok")])
def test_file_limits(monkeypatch: pytest.MonkeyPatch, limit: int, state: str) -> None:
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, limit))
    assert one("files")[0] == state


def requires(*lines: str) -> Callable[[str], list[str]]:
    return lambda _: list(lines)


@pytest.mark.parametrize(
    ("line", "state", "words"),
    [
        ("click>=8", "ok", "all required packages are installed"),
        ("click>=99.1", "fail", "click 99.1 (found"),
        ("no-such-thing>=1", "fail", "no-such-thing"),
        ("pandas<3,>=99.2; extra == 'spark'", "ok", "'pulsarbox[NAME]'`: spark (Spark, `pulsarbox pipeline`)"),
        ("click<200,>=99.1", "fail", "click 99.1 (found"),
    ],
)
def test_packages(monkeypatch: pytest.MonkeyPatch, line: str, state: str, words: str) -> None:
    monkeypatch.setattr(metadata, "requires", requires(line))
    seen = one("packages")
    assert seen[0] == state
    assert words in seen[1]


def test_absent_optional_packages_are_named_once_by_what_they_are_for(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (
        "no-one>=1; extra == 'sql'", "no-two>=1; extra == 'sql'", "no-one>=1; extra == 'new'",
        "no-fast>=1; (sys_platform != 'win32') and extra == 'fast'", "click>=8; extra == 'serve'",
    )  # fmt: skip
    monkeypatch.setattr(metadata, "requires", requires(*lines))
    assert one("packages") == (
        "ok",
        "all required packages are installed; optional, by `pip install 'pulsarbox[NAME]'`: "
        "fast (a faster event loop), sql (`pulsarbox sql`), new",
        "",
    )


def test_an_encoding_that_cannot_show_everything() -> None:
    result = CliRunner(charset="ascii").invoke(main, ["doctor", "--port", "0", "--web-port", "0"])
    assert "warn  terminal" in result.stdout


def test_certificates(folder: Path) -> None:
    authority = Authority(folder)

    def look(pair: Pair) -> tuple[str, str, str]:
        words = ("--tls-port", "0", "--tls-cert", str(pair.certificate), "--tls-key", str(pair.key))
        return one("certificate", *words)

    state, text, _ = look(authority.signs("good"))
    assert (state, text.startswith("of good, valid until ")) == ("ok", True)
    state, text, advice = look(authority.signs("short", days=10))
    assert (state, "expires on" in text, "renew" in advice) == ("warn", True, True)
    state, text, _ = look(authority.signs("old", begins=-9, days=8))
    assert (state, "expired on" in text) == ("fail", True)
    state, text, _ = look(authority.signs("good")._replace(key=authority.signs("other").key))
    assert (state, "does not match the certificate" in text) == ("fail", True)
    assert found("certificate") == []


@pytest.mark.parametrize(
    ("settings", "state", "text"),
    [
        ({}, "ok", "every authenticated client may do everything"),
        ({"authorizationEnabled": "true"}, "warn", "no superuser"),
        ({"authorizationEnabled": "true", "superUserRoles": "ops, root"}, "ok", "superusers: ops, root"),
        (
            {"authorizationEnabled": "true", "superUserRoles": "guest", "anonymousUserRole": "guest"},
            "warn",
            "unauthenticated clients have the role guest (anonymousUserRole), a superuser",
        ),
    ],
)
def test_what_roles_may(folder: Path, settings: dict[str, str], state: str, text: str) -> None:
    written = {"authenticationEnabled": "true", "authenticationProviders": "tls"} | settings
    (folder / "broker.conf").write_text("".join(f"{name}={value}\n" for name, value in written.items()))
    found_state, found_text, _ = one("authorization", "--config", "broker.conf")
    assert (found_state, text in found_text) == (state, True)


def test_nothing_is_said_of_roles_where_nobody_has_one() -> None:
    assert found("authorization") == []

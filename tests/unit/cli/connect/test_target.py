"""The broker that a command selects, and its error if there is none."""

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.common.exits import Misused, Unreachable
from pulsarbox.cli.connect.target import (
    Target,
    TargetOptions,
    admin_options,
    admin_target,
    service_and_admin_options,
    service_options,
    service_target,
)
from pulsarbox.server.process.runtime_file import RuntimeFile, write


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment without a pulsarbox.toml, a data directory, or in-memory boxes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    for name in [name for name in os.environ if name.startswith("PULSARBOX_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Path]:
    """A simulated data directory of a running box."""
    directory = tmp_path / "data"
    directory.mkdir()
    facts = {
        "pid": os.getpid(),
        "started": 1,
        "version": "1",
        "broker_url": "pulsar://far:1",
        "web_url": "http://far:2",
    }
    here = {"host": "127.0.0.1", "port": 16650, "web_port": 18080, "data": str(directory)}
    (directory / "RUNNING").write_text(json.dumps(facts | here))
    with (directory / "LOCK").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(str(os.getpid()))
        lock.flush()
        yield directory


def test_the_option_wins_over_the_environment_and_this_over_the_box(box: Path) -> None:
    environ = {"PULSARBOX_SERVICE_URL": "pulsar://two:2", "PULSARBOX_ADMIN_URL": "http://two:3"}
    assert service_target(TargetOptions("pulsar://one:1"), environ=environ).url == "pulsar://one:1"
    assert service_target(environ=environ) == Target("pulsar://two:2", "PULSARBOX_SERVICE_URL", (("two", 2),))
    assert admin_target(environ=environ) == Target("http://two:3", "PULSARBOX_ADMIN_URL", (("two", 3),))
    named = service_target(TargetOptions(data_dir=str(box)), environ)
    assert named._replace(directory="") == Target(
        "pulsar://127.0.0.1:16650", f"the box on {box}", (("127.0.0.1", 16650),)
    )
    assert service_target(environ={}).url == "pulsar://127.0.0.1:16650"
    assert admin_target(environ={}).url == "http://127.0.0.1:18080"


def test_without_anything_it_is_the_broker_of_this_machine() -> None:
    assert service_target(environ={}) == Target("pulsar://localhost:6650", "the default", (("localhost", 6650),))
    assert admin_target(environ={}) == Target("http://localhost:8080", "the default", (("localhost", 8080),))


@contextlib.contextmanager
def in_memory(pid: int, port: int) -> Iterator[None]:
    """Record an in-memory box as another process would leave it."""
    path = Path(tempfile.gettempdir()) / f"pulsarbox-{os.getuid()}" / f"memory-{pid}"
    path.mkdir(mode=0o700, parents=True)
    path.parent.chmod(0o700)
    write(path, RuntimeFile(pid, 1, "1", "pulsar://far:1", "http://far:2", "::1", port, port + 1, ""))
    with (path / "LOCK").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(str(pid))
        lock.flush()
        yield
    shutil.rmtree(path)


def test_a_box_in_memory_is_found_where_none_has_the_directory(box: Path) -> None:
    with in_memory(7, 16651):
        assert service_target(environ={}).url == "pulsar://127.0.0.1:16650"
        assert service_target(TargetOptions("pulsar://one:1"), environ={}).url == "pulsar://one:1"
        (box / "LOCK").unlink()
        found = service_target(environ={})
        assert found == Target("pulsar://[::1]:16651", "the box in memory, process 7", (("::1", 16651),))
        assert admin_target(environ={}).url == "http://[::1]:16652"
    assert service_target(environ={}).origin == "the default"


def test_of_several_boxes_in_memory_none_is_taken_by_chance() -> None:
    with in_memory(7, 16651), in_memory(8, 16661):
        with pytest.raises(Misused, match=r"several boxes run in memory \(process 7: pulsar://\[::1\]:16651, http://"):
            service_target(environ={})
        with in_memory(9, 6650):
            assert admin_target(environ={}).url == "http://[::1]:6651"


def test_a_directory_that_is_named_must_have_a_box() -> None:
    with pytest.raises(Unreachable, match=r"no box is running on empty: start it with `pulsarbox start --detach"):
        service_target(TargetOptions(data_dir="empty"), environ={"PULSARBOX_SERVICE_URL": "pulsar://two:2"})


def test_a_box_that_does_not_serve_yet_is_not_taken_for_none(box: Path) -> None:
    (box / "RUNNING").unlink()
    with pytest.raises(Unreachable, match="is not ready yet: try again"):
        service_target(environ={})


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("pulsar://a", [("a", 6650)]),
        ("pulsar://a:1/", [("a", 1)]),
        ("pulsar://a:1,b,[::1]:3", [("a", 1), ("b", 6650), ("::1", 3)]),
        ("pulsar://[::1]", [("::1", 6650)]),
        ("pulsar+ssl://a,b:1", [("a", 6651), ("b", 1)]),
    ],
)
def test_hosts_and_ports(url: str, hosts: list[tuple[str, int]]) -> None:
    assert list(service_target(TargetOptions(url)).hosts) == hosts


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("localhost:6650", "invalid URL"),
        (
            "http://localhost:8080",
            "invalid scheme http in 'http://localhost:8080': expected a URL such as pulsar://localhost:6650",
        ),
        ("pulsar://", "has no valid host"),
        ("pulsar://a:b", "has no valid host and port"),
        ("pulsar://a,", "has no valid host"),
        ("pulsar://[::1", "has no valid host"),
        ("pulsar://a:70000", "invalid port 70000"),
        ("pulsar://a:0", "invalid port 0"),
        ("pulsar://a/b", "has no valid host"),
        ("pulsar://a:\u0661", "has no valid host"),
    ],
)
def test_a_url_that_cannot_be_one_is_refused_with_its_origin(url: str, problem: str) -> None:
    with pytest.raises(Misused, match=r"^--url: ") as refused:
        service_target(TargetOptions(url))
    assert problem in str(refused.value)
    with pytest.raises(Misused, match=r"^PULSARBOX_SERVICE_URL: "):
        service_target(environ={"PULSARBOX_SERVICE_URL": url})


def test_an_option_and_a_directory_contradict_each_other() -> None:
    with pytest.raises(Misused, match="--admin-url and --data-dir cannot be combined"):
        admin_target(TargetOptions(admin_url="http://a:1", data_dir="data"))


@click.command()
@service_options
@click.argument("topic")
def one(service: Target, topic: str) -> None:
    click.echo(f"{topic} {service.url}")


@click.command()
@admin_options
def two(admin: Target) -> None:
    click.echo(admin.url)


@click.command()
@service_and_admin_options
def both(service: Target, admin: Target) -> None:
    click.echo(f"{service.url} {admin.url}")
    raise service.unreachable("Connection refused")


def call(command: click.Command, *words: str) -> Result:
    return CliRunner().invoke(command, words)


def test_commands_are_called_with_what_they_ask_for(box: Path) -> None:
    assert call(one, "t", "--url", "pulsar://a").output == "t pulsar://a\n"
    assert call(two, "--data-dir", str(box)).output == "http://127.0.0.1:18080\n"
    result = call(both, "--url", "pulsar://a:1", "--admin-url", "http://b")
    assert (result.exit_code, result.stdout) == (6, "pulsar://a:1 http://b\n")
    assert result.stderr.startswith(
        "pulsarbox: cannot connect to pulsar://a:1 (--url): Connection refused; see `pulsar"
    )


def test_a_wrong_url_is_a_mistake_of_usage() -> None:
    result = call(two, "--admin-url", "ftp://a\x1b[2J")
    assert result.exit_code == 2
    assert "\x1b" not in result.output


@pytest.mark.parametrize(
    ("url", "reason", "advice"),
    [
        ("https://a:1", "certificate verify failed: self-signed certificate", "--tls-trust-cert-path"),
        ("pulsar+ssl://a:1", "no TLS handshake: unexpected eof while reading", "a port without TLS: pulsar://a:1"),
        ("https://a:1", "EOF occurred in violation of protocol", "a port without TLS: http://a:1"),
        ("http://a:1", "Connection refused", "start a box with"),
    ],
)
def test_what_to_do_follows_from_what_is_wrong(url: str, reason: str, advice: str) -> None:
    found = admin_target(TargetOptions(admin_url=url)) if url.startswith("http") else service_target(TargetOptions(url))
    assert advice in str(found.unreachable(reason))

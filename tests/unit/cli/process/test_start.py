"""``pulsarbox start`` and related commands: settings of the daemon, stderr, and exit codes."""

import gc
import json
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.main import main
from pulsarbox.config import Settings
from pulsarbox.server.process.runtime_file import RuntimeFile, StartReport

RUNNING = RuntimeFile(
    pid=7,
    started=1,
    version="1.2.3",
    broker_url="pulsar://localhost:1",
    web_url="http://localhost:2",
    host="localhost",
    port=1,
    web_port=2,
    data="/there",
)


class Daemon(ModuleType):
    """Substitute for pulsarbox.server.daemon that records its settings and exits with ``code``."""

    def __init__(self) -> None:
        super().__init__("pulsarbox.server.daemon")
        self.started: list[Settings] = []
        self.in_memory = False
        self.collects = True
        self.code = 0

    def run(self, settings: Settings, report: StartReport, *, memory: bool, log_file: Path | None) -> int:
        self.started.append(settings)
        self.collects = gc.isenabled()
        self.in_memory = memory
        if self.code:
            report.failed("it does not work")
        else:
            report.serving(RUNNING)
        return self.code


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Daemon:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name == "pulsarbox.server.daemon"]:
        monkeypatch.delitem(sys.modules, name)
    stand_in = Daemon()
    monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    return stand_in


def pulsarbox(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(main, arguments, env=environ)


def test_the_defaults_are_used_if_nothing_is_said(daemon: Daemon) -> None:
    result = pulsarbox("start")
    assert result.exit_code == 0, result.output
    assert daemon.started == [Settings()]
    assert result.stdout == ""
    assert result.stderr.startswith("pulsarbox: settings from the defaults\n")


def test_the_options_reach_the_daemon(daemon: Daemon) -> None:
    options = ["--data-dir", "d", "--host", "0.0.0.0", "--port", "0", "--web-port", "0", "--log-level", "debug"]
    assert pulsarbox("start", *options).exit_code == 0
    expected = Settings(
        dataDirectory="d", bindAddress="0.0.0.0", brokerServicePort=0, webServicePort=0, logLevel="debug"
    )
    assert daemon.started == [expected]


def test_pulsarbox_toml_here_is_used_if_no_file_is_named(daemon: Daemon) -> None:
    Path("pulsarbox.toml").write_text("[broker]\nclusterName = 'here'\n")
    result = pulsarbox("start")
    assert daemon.started == [Settings(clusterName="here")]
    assert result.stderr.startswith("pulsarbox: settings from pulsarbox.toml\n")


def test_a_named_file_is_used_instead(daemon: Daemon) -> None:
    Path("pulsarbox.toml").write_text("[broker]\nclusterName = 'here'\n")
    Path("there.toml").write_text("[broker]\nclusterName = 'there'\n")
    pulsarbox("start", "--config", "there.toml")
    pulsarbox("start", PULSARBOX_CONFIG="there.toml")
    assert daemon.started == [Settings(clusterName="there")] * 2


def test_warnings_go_to_stderr(daemon: Daemon) -> None:
    Path("broker.conf").write_text("zookeeperServers=x\n")
    result = pulsarbox("start", "--config", "broker.conf")
    assert "pulsarbox: warning: broker.conf:1: zookeeperServers: has no effect here\n" in result.stderr
    assert daemon.started == [Settings()]


def test_the_environment_counts(daemon: Daemon) -> None:
    pulsarbox("start", PULSARBOX_clusterName="env")
    assert daemon.started == [Settings(clusterName="env")]


@pytest.mark.parametrize(
    ("arguments", "environ", "message"),
    [
        (["--config", "none.toml"], {}, "pulsarbox: none.toml: cannot be read: No such file or directory\n"),
        ([], {"PULSARBOX_x": "1"}, "pulsarbox: environment: PULSARBOX_x: no such setting; correct or unset it\n"),
        (["--port", "-1"], {}, "expected a whole number from 0 to 65535, or off, not '-1'"),
        (["--port", "off"], {}, "brokerServicePort: is off, and so is brokerServicePortTls"),
        (["--port", "70000"], {}, "expected a whole number from 0 to 65535, or off, not '70000'"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_exit_code_2(
    daemon: Daemon, arguments: list[str], environ: dict[str, str], message: str
) -> None:
    result = pulsarbox("start", *arguments, **environ)
    assert result.exit_code == 2
    assert message in result.stderr
    assert daemon.started == []


def test_the_exit_code_is_the_daemons(daemon: Daemon) -> None:
    daemon.code = 7
    assert pulsarbox("start").exit_code == 7


def test_the_banner_says_where_it_is_what_the_limits_are_and_where_to_read_on(daemon: Daemon) -> None:
    said = pulsarbox("start", "--host", "0.0.0.0", PULSARBOX_brokerMaxConnections="77").stderr
    for words in ("1.2.3, process 7", "pulsar://localhost:1", "http://localhost:2", "/there", "connections 77"):
        assert words in said
    for words in ("open files", "message 5.0 MiB", "--help", "authentication is disabled"):
        assert words in said
    assert "authentication is disabled" not in pulsarbox("start").stderr


@pytest.mark.parametrize("setting", [{"PULSARBOX_logFormat": "json"}, {"PULSARBOX_logLevel": "warning"}])
def test_logs_that_programs_read_and_quiet_ones_have_no_banner(daemon: Daemon, setting: dict[str, str]) -> None:
    assert "pulsar://" not in pulsarbox("start", **setting).stderr
    assert len(daemon.started) == 1


def test_in_memory_says_so_and_goes_with_no_directory(daemon: Daemon) -> None:
    result = pulsarbox("start", "--memory")
    assert daemon.in_memory
    assert "in memory: nothing is written to disk" in result.stderr
    result = pulsarbox("start", "--memory", "--data-dir", "d")
    assert (result.exit_code, len(daemon.started)) == (2, 1)
    assert "--memory and --data-dir cannot be combined" in result.stderr


def test_a_log_file_goes_with_the_background_only(daemon: Daemon) -> None:
    result = pulsarbox("start", "--log-file", "x")
    assert (result.exit_code, daemon.started) == (2, [])
    assert "--detach" in result.stderr


@pytest.mark.parametrize(("code", "key"), [(0, "broker_url"), (1, "failed")])
def test_who_started_it_in_the_background_is_told(daemon: Daemon, code: int, key: str) -> None:
    daemon.code = code
    told, tell = os.pipe()
    assert pulsarbox("start", "--report-to", str(tell)).exit_code == code
    with os.fdopen(told) as lines:
        (line,) = lines.readlines()
    assert key in json.loads(line)


@pytest.mark.parametrize("code", [0, 1])
def test_nothing_is_collected_before_it_serves(daemon: Daemon, code: int) -> None:
    daemon.code = code
    pulsarbox("start")
    assert not daemon.collects
    assert gc.isenabled()

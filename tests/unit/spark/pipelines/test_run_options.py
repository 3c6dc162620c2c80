"""Run options of a pipeline as command options."""

import os
import re
import socket
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.connect.target import Target
from pulsarbox.cli.pipeline.options import conf_of, options_of
from pulsarbox.spark.pipelines import session as sessions
from pulsarbox.spark.pipelines.declaration import PipelineError
from pulsarbox.spark.pipelines.run_options import RunOptions, state_home
from pulsarbox.spark.pipelines.session import archive, cores_of, interpreter, retried, settings
from pulsarbox.spark.worker_forking import LOADED


def target(url: str, **more: object) -> Target:
    return Target(url, "--url", (("localhost", 1),), **more)  # type: ignore[arg-type]


def test_the_state_is_the_users() -> None:
    assert state_home({"XDG_STATE_HOME": "/s"}) == Path("/s/pulsarbox/pipelines")
    assert state_home({"HOME": "/h"}) == Path("/h/.local/state/pulsarbox/pipelines")
    assert RunOptions(state=Path("/x")).directory == Path("/x")


def test_settings_of_spark() -> None:
    assert conf_of(("spark.a=b=c",)) == {"spark.a": "b=c"}
    with pytest.raises(Misused):
        conf_of(("a=b",))


def test_a_broker_as_options_of_the_format(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = str(tmp_path / "token")
    Path(file).write_text("abc")
    for name in ("PULSARBOX_TOKEN", "PULSARBOX_AUTH_PLUGIN", "PULSARBOX_AUTH_PARAMS", "PULSARBOX_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    service, admin = target("pulsar://a:1"), target("http://a:2")
    urls = {"service.url": "pulsar://a:1", "admin.url": "http://a:2"}
    assert options_of(service, admin) == urls
    token = target("pulsar://a:1", options={"token_file": file})
    assert options_of(token, admin) == urls | {"tokenFile": file}
    tls = target("pulsar://a:1", options={"auth_plugin": "tls", "auth_params": "tlsCertFile:c,tlsKeyFile:k"})
    assert options_of(tls, admin) == urls | {
        "pulsar.client.authPluginClassName": "tls",
        "pulsar.client.authParams": '{"tlsCertFile": "c", "tlsKeyFile": "k"}',
    }
    here = target("pulsar://a:1", directory="/data", operator="secret")
    assert options_of(here, admin) == {"data.dir": "/data"}
    assert options_of(target("pulsar://a:1", directory="/data", options={"token_file": file}), admin) == urls | {
        "tokenFile": file
    }


def test_settings_go_by_the_master() -> None:
    here, cluster = settings("local[3]", 8), settings("spark://h:7077", 8)
    assert here["spark.sql.shuffle.partitions"] == "3"
    assert "spark.sql.streaming.checkpointFileManagerClass" in here
    for option in ("token", "pulsar.client.authParams", "pulsar.admin.authParams"):
        assert re.search(here["spark.redaction.regex"], option), "plans show what is not redacted"
    assert not {"spark.sql.shuffle.partitions", "spark.sql.streaming.checkpointFileManagerClass"} & cluster.keys()
    assert (cores_of("local", 8), cores_of("local[*]", 8), cores_of("local[2,4]", 8)) == (1, 8, 2)
    assert [retried(each) for each in ("local", "local[2]", "local[2,4]", "spark://h:1")] == [
        *("local[1,3]", "local[2,3]", "local[2,4]", "spark://h:1")
    ]


def test_the_classes_of_spark_are_kept_in_the_users_cache(tmp_path: Path) -> None:
    kept = archive({"XDG_CACHE_HOME": str(tmp_path), "JAVA_HOME": "/java17"})
    other = archive({"HOME": str(tmp_path), "JAVA_HOME": "/java21"})
    assert (kept.parent, other.parent) == (tmp_path / "pulsarbox", tmp_path / ".cache" / "pulsarbox")
    assert kept.name != other.name
    assert kept.suffix == ".jsa"


def test_sparks_processes_do_not_load_it_out_of_archives(tmp_path: Path) -> None:
    made = interpreter(tmp_path / "cache")
    assert made != sys.executable
    assert interpreter(tmp_path / "cache") == made
    path = f"/spark/python/lib/pyspark.zip:/a b:/spark/python/lib/py4j-0.10-src.zip:{tmp_path}"
    shown = subprocess.run(
        [made, "-c", "import os, sys; print(os.environ['PYTHONPATH'], sys.argv[1:])", "one two", "*"],
        env={"PYTHONPATH": path},
        capture_output=True,
        check=True,
        text=True,
    )
    assert shown.stdout == f"/a b:{tmp_path} ['one two', '*']\n"
    (tmp_path / "file").touch()
    assert interpreter(tmp_path / "file") == sys.executable


@pytest.mark.parametrize("work", sorted(LOADED))
def test_what_processes_of_sparks_need_is_loaded_before_they_are_forked(tmp_path: Path, work: str) -> None:
    """The server as Spark starts it: it reports its port, forks for each connection, and ends with its stdin."""
    command = [interpreter(tmp_path), "-m", "pyspark.daemon", work]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        (port,) = struct.unpack("!i", process.stdout.read(4))
        with socket.create_connection(("127.0.0.1", port), 60) as asked:
            (forked,) = struct.unpack("!i", asked.recv(4, socket.MSG_WAITALL))
            assert "pulsarbox.spark.worker_forking" in Path(f"/proc/{forked}/cmdline").read_text()
        mapped = Path(f"/proc/{process.pid}/maps").read_text()
        tasks = Path(f"/proc/{process.pid}/task").iterdir()
        threads = sorted((each / "comm").read_text().strip() for each in tasks if each.name != str(process.pid))
        process.stdin.close()
        process.wait(60)
    assert "libarrow" in mapped, "what a sink needs is loaded"
    assert threads in ([], ["jemalloc_bg_thd"]), "a fork has none of them; that one knows of forks"


def test_a_log_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match=r"cannot be written: .*--state"):
        sessions._launch({}, tmp_path / "file" / "spark.log")


def test_a_jvm_that_does_not_answer_any_more_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import SparkContext

    class Gateway:
        """Gateway of a JVM that exits without connections and does not respond, because of an earlier shutdown."""

        proc = subprocess.Popen(["cat"], stdin=subprocess.PIPE)

        def shutdown(self) -> None:
            """Do nothing."""

    class Session:
        """Session of that JVM."""

        def stop(self) -> None:
            """Fail."""
            raise ConnectionRefusedError("nobody answers")

    monkeypatch.setattr(SparkContext, "_gateway", Gateway())
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setattr(sessions, "_keep_archive", lambda: None)
    sessions.stop(Session())  # type: ignore[arg-type]
    assert Gateway.proc.returncode == 0


def test_the_log_of_the_run_before_is_kept_and_a_full_one_can_be_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JVM is simulated: its stderr is written by the test."""
    from pyspark import SparkContext

    given: list[int] = []
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_ensure_initialized", lambda **_: None)

    def launch(_: Any, told: dict[str, Any]) -> SimpleNamespace:
        given.append(os.dup(told["stderr"].fileno()))
        return SimpleNamespace(proc=SimpleNamespace(poll=lambda: 0))

    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", launch)
    log = tmp_path / "p" / "spark.log"
    sessions._launch({}, log)
    os.write(given[0], b"one")
    os.truncate(log, 0)
    os.write(given[0], b"two")
    assert log.read_bytes() == b"two"
    sessions._launch({}, log)
    assert (log.read_bytes(), (tmp_path / "p" / "spark.log.1").read_bytes()) == (b"", b"two")
    for each in given:
        os.close(each)


def test_what_a_jvm_that_was_killed_has_left_does_not_fill_the_cache(tmp_path: Path) -> None:
    kept = tmp_path / "pulsarbox" / "spark-4-ab.jsa"
    kept.parent.mkdir()
    left, own, other = (kept.with_suffix(f".{each}") for each in (1 << 31, os.getpid(), "txt"))
    for each in (left, own, other):
        each.touch()
    assert sessions._archived(kept) == (f"-XX:ArchiveClassesAtExit={own}",)
    assert sorted(kept.parent.iterdir()) == sorted([own, other])
    kept.touch()
    assert sessions._archived(kept)[0] == f"-XX:SharedArchiveFile={kept}"


@pytest.mark.parametrize(("ended", "is_kept"), [("exec cat", True), ("cat; exit 143", False)])
def test_classes_are_kept_of_a_jvm_that_has_ended_well(
    ended: str, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed JVM has written only part of the class archive."""
    from pyspark import SparkContext

    class Gateway:
        proc = subprocess.Popen(["/bin/sh", "-c", ended], stdin=subprocess.PIPE)

        def shutdown(self) -> None:
            """Do nothing."""

    class Session:
        def stop(self) -> None:
            """Do nothing."""

    kept = tmp_path / "spark.jsa"
    sessions._new(kept).touch()
    monkeypatch.setattr(SparkContext, "_gateway", Gateway())
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setattr(sessions, "archive", lambda: kept)
    sessions.stop(Session())  # type: ignore[arg-type]
    assert kept.exists() == is_kept

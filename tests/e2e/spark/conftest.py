"""Shared local Spark session with task retries, on a JVM with fast startup.

tests/conftest.py runs these tests one after another in one process, so one JVM serves all of them.
"""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pulsar
import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.main import main
from pulsarbox.spark.pipelines.session import FAST, interpreter, settings
from pulsarbox.spark.pipelines.shipped import one_off_session
from tests.e2e.clients import connect
from tests.e2e.conftest import Running
from tests.e2e.spark.jvm_reads import jvm, keeps, read, sender  # noqa: F401 - fixtures
from tests.tools import build_jar
from tests.tools.java import need_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Command = Callable[..., Result]
Take = Callable[[str], list[pulsar.Message]]

CONF = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.daemon.module": "pulsarbox.spark.worker_forking",
    # The default implementation runs shell commands for every file.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}

UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
"""JVM options that load classes without verifying them, which takes a twentieth of these tests."""


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """Return a session that runs two tasks at a time, with three attempts each."""
    need_java()
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as environ:
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):  # the second is for formats that Spark discovers
            environ.setenv(name, interpreter(folder))
        environ.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        environ.setenv("SPARK_LOCAL_DIRS", str(folder / "local"))
        environ.setenv("SPARK_SUBMIT_OPTS", " ".join((*FAST, *UNVERIFIED)))
        session = _session(folder)
        yield session
        session.stop()
        _end_the_jvm()


def _session(folder: Path) -> "SparkSession":
    with warnings.catch_warnings():
        # py4j leaves sockets to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2,3]").appName("pulsarbox tests")
        builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        if reader := build_jar.current():
            builder = builder.config("spark.jars", str(reader))
        for name, value in CONF.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _end_the_jvm() -> None:
    """Stop the JVM, which would otherwise run as long as this process with its other tests."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=60)
    SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture
def command(spark: "SparkSession", box: Running, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command of the group in this process, with the session shared by all tests."""
    monkeypatch.setattr(one_off_session, "session", lambda *_args, **_more: spark)
    monkeypatch.setattr(one_off_session, "stop", lambda _spark: None)

    def run(*words: str, ends_with: int = 0) -> Result:
        result = CliRunner().invoke(main, ["pipeline", *words, "--url", box.url, "--admin-url", box.web_url])
        assert result.exit_code == ends_with, (result.output, result.exception)
        return result

    return run


@pytest.fixture
def with_state(spark: "SparkSession") -> Iterator[None]:
    """Steps with state need another state store than Spark's default."""
    name = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(name, settings("local[2]", 2)[name])
    yield
    spark.conf.unset(name)


@pytest.fixture
def take(box: Running) -> Iterator[Take]:
    """Return all messages that a topic retains for consumers."""
    client = connect(box.url)

    def take(topic: str) -> list[pulsar.Message]:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(timeout_millis=5000))
        reader.close()
        return found

    yield take
    client.close()

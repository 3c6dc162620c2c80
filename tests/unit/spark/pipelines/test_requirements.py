"""Checks before Spark starts, and errors of a JVM that does not start."""

import socket
from pathlib import Path

import pytest

from pulsarbox.spark.pipelines import requirements
from pulsarbox.spark.pipelines.declaration import PipelineError
from pulsarbox.spark.pipelines.requirements import SparkMissingError, check, not_started


@pytest.fixture
def java(tmp_path: Path) -> dict[str, str]:
    """An environment with Java."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch(mode=0o700)
    return {"PATH": str(tmp_path / "bin")}


@pytest.mark.parametrize(
    "master",
    ["local", "local[2]", "local[*]", "local[2,3]", "local[*, 4]", "local-cluster[2,1,512]", "yarn", "k8s://h:1"],
)
def test_masters_that_may_be(java: dict[str, str], master: str) -> None:
    check(master, java)


@pytest.mark.parametrize("master", ["", "locl[2]", "local[x]", "local[0]", "local[2", "spark://h", "spark://h:x"])
def test_masters_that_are_none(java: dict[str, str], master: str) -> None:
    with pytest.raises(PipelineError, match=f"--master {master.replace('[', '.')}: .*spark://host:7077"):
        check(master, java)


def test_a_master_that_does_not_answer(java: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        check(f"spark://127.0.0.1:{port}", java)
    with pytest.raises(PipelineError, match=rf"no Spark master is reachable at .*:{port}.*refused.*start-master\.sh"):
        check(f"spark://127.0.0.1:{port}", java)


def test_java_that_is_not_there(java: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(SparkMissingError, match="Java is not installed: Spark requires Java 17"):
        check("local[2]", {"PATH": str(tmp_path / "empty")})
    with pytest.raises(SparkMissingError, match=r"JAVA_HOME is /nowhere, which has no bin/java"):
        check("local[2]", java | {"JAVA_HOME": "/nowhere"})
    check("local[2]", {"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_spark_that_is_not_there(java: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "find_spec", lambda name: None if name == "pyarrow" else object())
    with pytest.raises(SparkMissingError, match=r"module pyarrow not found.*pip install 'pulsarbox\[spark\]'"):
        check("local[2]", java)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Invalid maximum heap size: -Xmx2zz\nError: Could not create the Java Virtual Machine.\n",
            "start: Invalid max",
        ),
        (
            "Error: LinkageError occurred while loading main class X\n\tjava.lang.UnsupportedClassVersionError: X has "
            "been compiled by a more recent version\n",
            "this Java is too old: Spark requires Java 17 or newer.*more recent version",
        ),
        ("starting\n", "Spark's JVM failed to start: the gateway has ended; see .*spark.log"),
    ],
)
def test_a_jvm_that_does_not_start_is_told_with_what_it_wrote(tmp_path: Path, text: str, said: str) -> None:
    log = tmp_path / "spark.log"
    log.write_text(text)
    with pytest.raises(SparkMissingError, match=said):
        raise not_started(log, "the gateway has ended")
    log.unlink()
    assert "the gateway has ended" in str(not_started(log, "the gateway has ended"))

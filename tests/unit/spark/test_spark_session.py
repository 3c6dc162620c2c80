"""Sessions for programs and notebooks."""

import sys
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.spark import accelerator, session, spark_session
from pulsarbox.spark.pipelines.declaration import PipelineError
from pulsarbox.spark.pipelines.session import with_jars


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the arguments of sessions that run their own driver."""
    found: list[Any] = []
    monkeypatch.setattr(spark_session, "configured", lambda *arguments: found.append(arguments))
    return found


def test_parameters_are_settings_and_settings_override_them(made: list[Any]) -> None:
    session()
    session("orders", master="local[2]", memory="4g", ui=True, conf={"spark.driver.memory": "8g", "spark.a": "b"})
    assert made == [
        ("local[*]", "pulsarbox", {"spark.ui.enabled": "false"}),
        ("local[2]", "orders", {"spark.ui.enabled": "true", "spark.driver.memory": "8g", "spark.a": "b"}),
    ]


def test_a_submitted_program_runs_on_the_master_of_its_command(
    made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[Any] = []
    monkeypatch.setattr(spark_session, "_submitted", lambda *arguments: submitted.append(arguments))
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    session("orders")
    session("orders", master="local[2]")
    assert submitted == [("orders", {"spark.ui.enabled": "false"})]
    assert [master for master, *_ in made] == ["local[2]"]


@pytest.mark.parametrize("given", [{"memory": "4g"}, {"ui": True}])
def test_a_running_server_has_its_memory_and_pages(given: Any) -> None:
    with pytest.raises(PipelineError, match="sc://host:15002 is a running Spark Connect server"):
        session(master="sc://host:15002", **given)


def test_the_jar_comes_before_those_of_the_user(tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    assert with_jars({"spark.a": "b"}, None) == {"spark.a": "b"}
    assert with_jars({}, jar) == {"spark.jars": str(jar)}
    assert with_jars({"spark.jars": "/x.jar"}, jar) == {"spark.jars": f"{jar},/x.jar"}


def test_there_is_no_jar_unless_it_was_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "JAR", tmp_path / "a.jar")
    assert accelerator.jar() is None
    (tmp_path / "a.jar").touch()
    assert accelerator.jar() == tmp_path / "a.jar"


def test_the_package_is_imported_without_spark() -> None:
    code = "import sys, pulsarbox.spark; sys.exit('pyspark' in sys.modules)"
    import subprocess

    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0

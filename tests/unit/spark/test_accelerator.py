"""The jar of the reader inside the JVM: how it is built, and how a session gets it."""

import zipfile
from pathlib import Path

import pytest

from pulsarbox.spark import accelerator
from tests.tools import build_jar


class Session:
    """Spark session that records statements."""

    def __init__(self, jars: str = "") -> None:
        self._jsparkSession = self.sparkContext = self
        self._jars = jars
        self.statements: list[str] = []

    def getConf(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        return {"spark.jars": self._jars}

    def sql(self, statement: str) -> None:
        self.statements.append(statement)


def added(session: Session) -> list[str]:
    accelerator.add_to(session)  # type: ignore[arg-type]
    return session.statements


def test_a_session_without_the_jar_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pulsarbox-spark.jar"
    monkeypatch.setattr(accelerator, "JAR", file)
    assert added(Session()) == []
    file.touch()
    assert added(Session("other.jar")) == [f"ADD JAR '{file}'"]
    assert added(Session(f"other.jar,{file}")) == []


def test_a_missing_compiler_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(build_jar, "compiler", lambda: None)
    assert build_jar.main([]) == 1
    assert "javac is missing" in capsys.readouterr().err


@pytest.mark.campaign
def test_two_builds_have_the_same_bytes(tmp_path: Path) -> None:
    if build_jar.compiler() is None:
        pytest.skip("javac is missing")
    one, two = build_jar.build(tmp_path / "one.jar"), build_jar.build(tmp_path / "two.jar")
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as jar:
        assert jar.read(build_jar.SERVICE) == b"pulsarbox.spark.PulsarboxSource\n"
        assert "pulsarbox/spark/PulsarboxSource.class" in jar.namelist()

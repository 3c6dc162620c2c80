"""The data directory of a command is known without reading an absent configuration."""

from pathlib import Path

import pytest

from pulsarbox.cli.process.directory_options import DEFAULT_DIRECTORY, data_directory
from pulsarbox.config import Settings


@pytest.fixture(autouse=True)
def nothing_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_anything_it_is_the_default_of_the_setting() -> None:
    assert data_directory(None, None) == Path(DEFAULT_DIRECTORY) == Path(Settings().dataDirectory)
    assert data_directory(None, "there") == Path("there")


def test_the_file_that_lies_there_decides(tmp_path: Path) -> None:
    (tmp_path / "pulsarbox.toml").write_text('[broker]\ndataDirectory = "filed"\n')
    assert data_directory(None, None) == Path("filed")
    assert data_directory(None, "there") == Path("there")


def test_the_file_that_is_named_decides(tmp_path: Path) -> None:
    named = tmp_path / "own.conf"
    named.write_text("dataDirectory=named\n")
    assert data_directory(named, None) == Path("named")


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSARBOX_SERVICE_URL", "pulsar://elsewhere:6650")
    assert data_directory(None, None) == Path(DEFAULT_DIRECTORY)
    monkeypatch.setenv("PULSARBOX_CONTEXT", "production")
    assert data_directory(None, None) == Path(DEFAULT_DIRECTORY)
    monkeypatch.setenv("PULSARBOX_dataDirectory", "set")
    assert data_directory(None, None) == Path("set")


@pytest.mark.parametrize("wrong", ["file", "environment", "option"])
def test_what_is_wrong_is_told_as_ever(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if wrong == "file":
        (tmp_path / "pulsarbox.toml").write_text("no such thing = 1\n")
    if wrong == "environment":
        monkeypatch.setenv("PULSARBOX_NOSUCHTHING", "1")
    with pytest.raises(SystemExit) as ended:
        data_directory(None, "" if wrong == "option" else None)
    assert ended.value.code == 2
    assert capsys.readouterr().err

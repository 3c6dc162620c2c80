"""Environment settings applied to a configuration file, as in Pulsar's image."""

from pathlib import Path

import pytest

from pulsarbox.cli.process.apply_environment import main
from pulsarbox.config import load
from pulsarbox.config.sources.environment_overlay import applied

TEXT = """# Words = that are no key
clusterName=standalone
# advertisedListeners=
bindAddress = 0.0.0.0
"""


@pytest.mark.parametrize(
    ("environ", "line", "keys"),
    [
        ({"PULSAR_PREFIX_clusterName": "mine"}, "clusterName=mine", ["clusterName"]),
        ({"clusterName": " mine "}, "clusterName=mine", ["clusterName"]),
        ({"bindAddress": "::"}, "bindAddress=::", ["bindAddress"]),
        ({"PULSAR_PREFIX_advertisedListeners": "a:pulsar://b:1"}, "advertisedListeners=a:pulsar://b:1", None),
        ({"advertisedListeners": "a:pulsar://b:1"}, "advertisedListeners=a:pulsar://b:1", None),
        ({"PULSAR_PREFIX_transactionCoordinatorEnabled": "true"}, "transactionCoordinatorEnabled=true", None),
        ({"clusterName": "one", "PULSAR_PREFIX_clusterName": "other"}, "clusterName=other", ["clusterName"]),
        ({"PULSAR_PREFIX_clusterName": "a\nbindAddress=evil\r"}, r"clusterName=a\nbindAddress=evil", ["clusterName"]),
    ],
)
def test_a_setting_comes_into_the_file(environ: dict[str, str], line: str, keys: list[str] | None) -> None:
    text, found = applied(TEXT, environ)
    lines = text.splitlines()
    key = line.partition("=")[0]
    assert [each for each in lines if each.replace(" ", "").startswith(f"{key}=")] == [line]
    assert found == ([key] if keys is None else keys)
    assert lines[0] == "# Words = that are no key"


@pytest.mark.parametrize(
    "environ", [{}, {"HOME": "/"}, {"PULSAR_PREFIX_": "x"}, {"transactionCoordinatorEnabled": "x"}]
)
def test_what_is_no_setting_changes_nothing(environ: dict[str, str]) -> None:
    assert applied(TEXT, environ) == (TEXT, [])


def test_another_prefix() -> None:
    assert (
        applied(TEXT, {"BOX_clusterName": "x", "PULSAR_PREFIX_clusterName": "y"}, "BOX_")[0].count("clusterName=x") == 1
    )


def test_what_is_written_is_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "standalone.conf"
    path.write_text(TEXT)
    monkeypatch.setenv("PULSAR_PREFIX_clusterName", "two\nlines")
    monkeypatch.setenv("PULSAR_PREFIX_brokerDeduplicationEnabled", "true")
    assert main([str(path)]) == 0
    settings = load(path).settings
    assert (settings.clusterName, settings.brokerDeduplicationEnabled) == ("two\nlines", True)
    assert settings.bindAddress == "0.0.0.0"


def test_values_are_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "standalone.conf"
    path.write_text(TEXT)
    monkeypatch.setenv("PULSAR_PREFIX_tokenSecretKey", "hush")
    assert main([str(path)]) == 0
    assert "tokenSecretKey" in (said := capsys.readouterr().err)
    assert "hush" not in said


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.conf")]) == 1
    assert "PULSARBOX_<setting>" in capsys.readouterr().err

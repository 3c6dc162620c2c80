"""Settings by plain environment names, and configuration files edited by scripts."""

from pathlib import Path

import pytest

from pulsarbox.config.load import load
from pulsarbox.config.setting import ConfigError
from pulsarbox.config.settings import settings_table
from pulsarbox.config.sources.pulsar_files import IN_A_CONTAINER, changed, text_of

PLAIN = {"PULSARBOX_PLAIN_NAMES": "true"}


def test_plain_names_set_settings_where_they_are_asked_for() -> None:
    environ = {"clusterName": "mine", "HOME": "/", "http_proxy": "x", "PATH": "/bin"}
    assert load(None, environ=environ).settings.clusterName != "mine"
    loaded = load(None, environ=environ | PLAIN)
    assert loaded.settings.clusterName == "mine"
    assert loaded.origins["clusterName"] == "environment clusterName"
    assert loaded.warnings == ()


def test_a_prefix_wins_over_a_plain_name_and_our_own_over_both() -> None:
    environ = PLAIN | {"clusterName": "a", "PULSAR_PREFIX_clusterName": "b"}
    assert load(None, environ=environ).settings.clusterName == "b"
    assert load(None, environ=environ | {"PULSARBOX_clusterName": "c"}).settings.clusterName == "c"


def test_a_plain_name_wins_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "standalone.conf"
    path.write_text("clusterName=file\nmaxTopicsPerNamespace=3\n")
    loaded = load(path, environ=PLAIN | {"clusterName": "mine", "maxTopicsPerNamespace": ""})
    assert (loaded.settings.clusterName, loaded.settings.maxTopicsPerNamespace) == ("mine", 3)


@pytest.mark.parametrize("variable", ["authenticationEnable", "PULSAR_PREFIX_authenticationEnable"])
def test_an_unknown_name_warns(variable: str) -> None:
    (warning,) = load(None, environ=PLAIN | {variable: "true"}).warnings
    assert variable in warning and "did you mean authenticationEnabled?" in warning


def test_a_value_that_cannot_be_is_refused_by_the_name_of_its_variable() -> None:
    with pytest.raises(ConfigError, match="authenticationEnabled: expected true or false"):
        load(None, environ=PLAIN | {"authenticationEnabled": "yes please"})


@pytest.mark.parametrize("name", ["broker.conf", "standalone.conf"])
def test_the_files_of_the_image_are_the_defaults(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text_of(name))
    loaded = load(path)
    assert loaded.warnings == ()
    text = path.read_text()
    for row in settings_table():
        assert f"\n{row.name}=" in text, "scripts edit it by its key"
        assert getattr(loaded.settings, row.name) == IN_A_CONTAINER.get(row.name, row.default), row.name
    assert changed(name, text) == {}


def test_an_edited_line_is_found() -> None:
    text = text_of("broker.conf").replace("authenticationEnabled=false", "authenticationEnabled=true")
    assert changed("broker.conf", f"{text}\nloadManagerClassName=x\n") == {
        "authenticationEnabled": "true",
        "loadManagerClassName": "x",
    }

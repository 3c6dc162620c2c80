"""``pulsarbox storage stat`` and ``check`` over all data directories of a box."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.main import main
from tests import forks
from tests.unit.storage.several import Several


@pytest.fixture(autouse=True)
def _forked_children(monkeypatch: pytest.MonkeyPatch) -> None:
    forks.children(monkeypatch)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The configuration of a stopped box with two copies of each entry in three directories."""
    box = Several(tmp_path)
    box.publish(1, 2, rounds=20)
    box.checkpoint(2)
    box.publish(2)
    box.close()
    file = tmp_path / "box.toml"
    listed = ",".join(map(str, box.paths))
    file.write_text(f'[ensemble]\ndataDirectories = "{listed}"\n')
    return file


def storage(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["storage", *map(str, arguments)])


def test_statistics_count_entries_once_and_their_copies(config: Path) -> None:
    document = json.loads(storage("stat", "--config", config, "-o", "json").stdout)
    total = document["total"]
    assert (total["entries"], total["copies"], document["unreadable"]) == (184, {"2": 184}, [])
    assert total["stored_entries"] == 368 == sum(each["totals"]["entries"] for each in document["directories"])
    assert 0 < total["bytes"] * 2 == total["stored_bytes"] < total["disk_used"]
    told = storage("stat", "--config", config).stdout
    assert "184 entries have 2" in told and "2.00 copies of each" in told
    assert all(str(config.parent / name) in told for name in "abc")
    only = json.loads(storage("stat", config.parent / "a", "-o", "json").stdout)
    assert only["directory"] == str(config.parent / "a")


def test_a_directory_that_is_gone_is_named(config: Path) -> None:
    shutil.rmtree(config.parent / "b")
    document = json.loads(storage("stat", "--data-dir", config.parent / "a", "-o", "json").stdout)
    assert [each["directory"] for each in document["unreadable"]] == [str(config.parent / "b")]
    assert set(document["total"]["copies"]) == {"1", "2"}
    done = storage("check", "--config", config)
    assert (done.exit_code, "b: not in use" in done.stdout) == (0, True)


def test_entries_that_no_directory_has_are_damage(config: Path) -> None:
    done = storage("check", "--config", config)
    assert (done.exit_code, done.stdout.count("no damage")) == (0, 4)
    for name in "bc":
        shutil.rmtree(config.parent / name)
    done = storage("check", "--config", config, "-o", "json")
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert document["missing"] == [str(config.parent / name) for name in "bc"]
    assert {each["ledger"] for each in document["findings"]} == {1}  # ledger 2 is open
    assert document["summary"]["damage"] == len(document["findings"])

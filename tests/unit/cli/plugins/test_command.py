"""``pulsarbox plugins``: the commands, and distributions created by ``new``."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.main import main
from pulsarbox.plugins.contracts import KINDS
from tests.unit.plugins import bad

NOWHERE = ["--admin-url", "http://127.0.0.1:1"]
GOOD = "from zlib import crc32\n" + bad.HASH.format("return crc32(key) & 0x7FFFFFFF")


def pulsarbox(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, ["plugins", *words])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "it.py").write_text(GOOD)
    return tmp_path


def test_list_shows_what_there_is_and_imports_none_of_it(mine: Path) -> None:
    (mine / "other.py").write_text(bad.ENDS.replace('"it"', '"other"'))
    (mine / "third.py").write_text("class Plugin:\n    kind = 'cooking'\n")
    done = pulsarbox("list", "--plugins-dir", str(mine), *NOWHERE, "-o", "json")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    by_name = {each["name"]: each for each in found}
    assert (by_name["murmur3"]["source"], by_name["it"]["source"]) == ("built-in", str(mine / "it.py"))
    assert by_name["other"]["problem"] == ""
    assert "expected one of routing, hashing, compression" in by_name["third"]["problem"]
    text = pulsarbox("list", "--kind", "hashing", "--plugins-dir", str(mine), *NOWHERE).stdout
    assert "round-robin" not in text
    assert " it " in text


def test_info_of_one(mine: Path) -> None:
    (shown,) = json.loads(pulsarbox("info", "it", "--plugins-dir", str(mine), *NOWHERE, "-o", "json").stdout)
    assert shown["kind"] == "hashing"
    assert "murmur3:Murmur3" in pulsarbox("info", "murmur3", *NOWHERE).stdout
    assert "no plugin 'nobody'" in pulsarbox("info", "nobody", *NOWHERE, code=3).stderr


def test_doctor_of_a_good_and_of_bad_ones(mine: Path) -> None:
    assert pulsarbox("doctor", "--plugins-dir", str(mine)).stdout.startswith("ok    hashing it")
    (mine / "it.py").write_text(bad.ENDS)
    done = pulsarbox("doctor", "it", "--plugins-dir", str(mine), code=1)
    assert "SystemExit: 3" in done.stdout
    pulsarbox("doctor", "nobody", code=3)


def test_test_says_what_was_looked_at(mine: Path) -> None:
    done = pulsarbox("test", str(mine / "it.py"))
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["ok", each] for each in ("loading", "range", "repeatable", "distribution", "threads", "processes")
    ]
    (mine / "it.py").write_text(bad.RANGE)
    (found,) = [line for line in pulsarbox("test", str(mine / "it.py"), code=1).stdout.splitlines() if "range" in line]
    assert found.startswith("fail  range")
    (mine / "it.py").write_text(bad.MISSING)
    done = pulsarbox("test", str(mine / "it.py"), code=1)
    assert "ModuleNotFoundError" in done.stdout
    assert "Traceback" in done.stderr


def test_the_directory_that_the_configuration_names(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mine)
    where = mine / "mine"
    where.mkdir()
    (mine / "it.py").rename(where / "it.py")
    pulsarbox("info", "it", *NOWHERE, code=3)
    for file in ("pulsarbox.toml", "other.toml"):
        (mine / file).write_text('[plugins]\npluginsDirectory = "mine"\n')
        assert "mine/it.py" in pulsarbox("info", "it", *NOWHERE).stdout
        (mine / "pulsarbox.toml").unlink(missing_ok=True)
        monkeypatch.setenv("PULSARBOX_CONFIG", "other.toml")
    assert "no such setting" in _broken(mine).stderr


def _broken(folder: Path) -> Result:
    (folder / "other.toml").write_text("[plugins]\npluginDirectory = 1\n")
    return pulsarbox("list", *NOWHERE, code=2)


@pytest.mark.parametrize("name", ["boost", "consistent", "zlib"])
def test_bench_measures_beside_a_built_in_one(name: str) -> None:
    rows = json.loads(pulsarbox("bench", name, "--seconds", "0.01", "-o", "json").stdout)
    assert {row["plugin"] for row in rows} == {
        name,
        {"boost": "murmur3", "consistent": "round-robin"}.get(name, "zstd"),
    }
    assert all(row["value"] > 0 for row in rows)


def test_bench_of_what_chooses_among_consumers(mine: Path) -> None:
    head = "class Plugin:\n    kind = 'routing'\n    name = 'it'\n    api = 1\n"
    division = "    def divide(self): return self\n    def add(self, each): self.one = each\n"
    division += "    def select(self, slot): return self.one\n"
    for body, what in (
        ("    def choose(self, ready): return ready[0]\n", "one of 10"),
        (division, "consumer of a slot"),
    ):
        (mine / "it.py").write_text(head + body)
        (row,) = json.loads(pulsarbox("bench", str(mine / "it.py"), "--seconds", "0.01", "-o", "json").stdout)
        assert what in row["what"]


def test_bench_of_one_that_fails(mine: Path) -> None:
    (mine / "it.py").write_text(bad.HASH.format("return -1"))
    assert "failed" in pulsarbox("bench", str(mine / "it.py"), "--seconds", "0.01", code=2).stderr


@pytest.mark.campaign
def test_what_new_writes_installs_loads_and_passes(tmp_path: Path) -> None:
    """All plugin kinds in one test: starting processes dominates the cost."""
    kinds = list(KINDS)
    site = tmp_path / "site"
    for kind in kinds:
        pulsarbox("new", f"my-{kind}", "--kind", kind, "--directory", str(tmp_path / kind))
    python = [sys.executable, "-m"]
    pip = ["pip", "install", "-q", "--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check"]
    places = [str(tmp_path / kind) for kind in kinds]
    subprocess.run([*python, *pip, "--target", str(site), *places], check=True, capture_output=True)
    environment = {"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    def run(*words: str) -> str:
        done = subprocess.run(
            [*python, *words], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    found = {each["name"]: each for each in json.loads(run("pulsarbox", "plugins", "list", *NOWHERE, "-o", "json"))}
    for kind in kinds:
        mine = found[f"my-{kind}"]
        assert (mine["kind"], mine["source"], mine["problem"]) == (kind, f"pulsarbox-my-{kind} 0.1.0", "")
    looked = json.loads(run("pulsarbox", "plugins", "doctor", *(f"my-{kind}" for kind in kinds), "-o", "json"))
    assert [each["problems"] for each in looked] == [[]] * len(kinds)
    tests = [f"{place}/tests" for place in places]
    assert " passed" in run("pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests)


def test_a_new_plugin_is_tested_by_its_file_before_it_is_installed(tmp_path: Path) -> None:
    for kind in KINDS:
        created = pulsarbox("new", f"my-{kind}", "--kind", kind, "--directory", str(tmp_path / kind))
        module = next(line for line in created.stdout.splitlines() if line.endswith(".py") and "/tests/" not in line)
        assert f"pulsarbox plugins test {module};" in created.stderr
        shown = json.loads(pulsarbox("test", module, "-o", "json").stdout)
        assert (shown["kind"], shown["name"], shown["problems"]) == (kind, f"my-{kind}", [])


def test_new_writes_over_nothing_and_takes_no_name_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("")
    pulsarbox("new", "zones", "--kind", "routing", "--directory", str(tmp_path), code=4)
    assert (
        "is not a valid plugin name"
        in pulsarbox("new", "Zones", "--kind", "routing", "--directory", str(tmp_path / "x"), code=2).stderr
    )
    done = pulsarbox("new", "murmur3", "--kind", "hashing", "--directory", str(tmp_path / "x"), code=2)
    assert "'murmur3' is the name of a built-in hashing plugin" in done.stderr

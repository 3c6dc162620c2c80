"""The fingerprint of a plugin changes if and only if its content does."""

import sys
from pathlib import Path

import pytest

from pulsarbox.plugins import fingerprint as module
from pulsarbox.plugins.fingerprint import fingerprint
from pulsarbox.plugins.registry import PluginEntry, find
from tests.unit.plugins import bad


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "it.py"
    path.write_text(bad.HASH.format("return 1"))
    return path


def of(path: Path) -> PluginEntry:
    (found,) = (each for each in find(path.parent) if each.target == str(path))
    return found


def test_of_a_file(file: Path) -> None:
    before = fingerprint(of(file))
    assert before is not None
    assert fingerprint(of(file)) == before
    file.write_text(bad.HASH.format("return 2"))
    assert fingerprint(of(file)) != before


def test_of_a_package_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "its_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit(1)")
    (package / "inner.py").write_text("a = 1")
    monkeypatch.syspath_prepend(tmp_path)
    found = PluginEntry("hashing", "it", "its 1.0", "its_package.inner:Plugin")
    before = fingerprint(found)
    assert before is not None
    assert "its_package" not in sys.modules
    (package / "inner.py").write_text("a = 2")
    after = fingerprint(found)
    assert after != before
    (tmp_path / "other-2.0.dist-info").mkdir()  # a dependency may have another version
    assert fingerprint(found) not in (before, after)


def test_what_has_none(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fingerprint(PluginEntry("hashing", "it", "its 1.0", "a_module_that_nobody_has:Plugin")) is None
    found = of(file)
    monkeypatch.setattr(module, "_BYTES_MAX", 10)
    assert fingerprint(found) is None
    file.unlink()
    assert fingerprint(found) is None

"""Plugins that a package declares, before it is installed."""

from pathlib import Path

from pulsarbox.plugins.project import declared_in

DECLARED = """[project.entry-points."pulsarbox.hashing"]
near = "zones:Near"
far = "zones:Far"
other = "others:Other"
whole = "zones"
"""


def test_classes_of_the_file_are_found(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(DECLARED)
    path = tmp_path / "src" / "zones.py"
    found = [(each.kind, each.name, each.target) for each in declared_in(path)]
    assert found == [("hashing", "near", f"{path}:Near"), ("hashing", "far", f"{path}:Far")]


def test_a_package_is_named_by_its_directory(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(DECLARED)
    assert [each.name for each in declared_in(tmp_path / "zones" / "__init__.py")] == ["near", "far"]


def test_a_file_without_a_readable_project_has_none(tmp_path: Path) -> None:
    assert declared_in(tmp_path / "zones.py") == []
    (tmp_path / "pyproject.toml").write_text("[project")
    assert declared_in(tmp_path / "zones.py") == []
    (tmp_path / "pyproject.toml").write_text("[project]\nentry-points = 3\n")
    assert declared_in(tmp_path / "zones.py") == []

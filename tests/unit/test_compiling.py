"""Modules that are compiled before pytest collects."""

from pathlib import Path

from _pytest.assertion import rewrite

from tests.workers import compiling


def test_pytest_takes_what_is_compiled(tmp_path: Path) -> None:
    for number in range(compiling.FEW):
        (tmp_path / "tests" / f"part{number}").mkdir(parents=True)
        (tmp_path / "tests" / f"part{number}" / "test_it.py").write_text(f"def test_it():\n    assert {number} == 0\n")
    (tmp_path / "tests" / "other.py").write_text("not compiled")
    files = list(compiling.modules(tmp_path))
    assert len(files) == compiling.main(tmp_path) == compiling.FEW
    for file in files:
        assert rewrite._read_pyc(file, compiling.compiled(file)) is not None
    assert compiling.main(tmp_path) == 0


def test_the_modules_are_those_of_tests_and_of_the_package_with_its_links() -> None:
    found = {str(file.relative_to(compiling.ROOT)) for file in compiling.modules()}
    assert {"tests/conftest.py", "tests/unit/test_compiling.py", "pulsarbox/storage/__init__.py"} <= found
    assert "tests/workers/compiling.py" not in found

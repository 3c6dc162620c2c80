"""Mapping of modules to their unit tests."""

from pathlib import Path, PurePath

import pytest

from tests.tools.mirrored_tests import importers, main, mirror, unit_tests_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with sample tests."""
    files = {
        "broker/topic/test_x.py": "from pulsarbox.broker.topic.x import X\n",
        "storage/test_x.py": "import pulsarbox.storage.x as x\n",
        "broker/test_names.py": "import os\n\nfrom pulsarbox.names import parse_topic\n",
        "storage/test_other.py": "# from pulsarbox.names import parse_topic\nfrom pulsarbox.names_of import y\n",
    }
    for name, text in files.items():
        path = tmp_path / "tests/unit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("pulsarbox/broker/topic/x.py", "tests/unit/broker/topic/test_x.py"),
        ("pulsarbox/broker/topic/y.py", "tests/unit/broker/topic"),
        ("pulsarbox/broker/limits/x.py", "tests/unit/broker"),
        ("pulsarbox/server/x.py", "tests/unit"),
        ("storage/x.py", "tests/unit/storage/test_x.py"),
        ("storage/lmdb/x.py", "tests/unit/storage"),
        ("pulsarbox/clock.py", "tests/unit"),
        ("tests/unit/storage/test_x.py", "tests/unit/storage/test_x.py"),
        ("tests/unit/storage/playbook.py", None),
        ("tests/fuzz/test_admin.py", None),
        ("benchmarks/bench.py", None),
    ],
)
def test_a_changed_file_has_its_mirror_or_the_nearest_folder(root: Path, changed: str, tests: str | None) -> None:
    found = unit_tests_of(PurePath(changed), root)
    assert found == (None if tests is None else PurePath(tests))


def test_only_a_file_of_the_same_name_in_the_same_folder_is_a_mirror(root: Path) -> None:
    assert mirror(PurePath("pulsarbox/broker/topic/x.py"), root) == PurePath("tests/unit/broker/topic/test_x.py")
    assert mirror(PurePath("pulsarbox/broker/x.py"), root) is None


def test_importers_are_found_by_their_import_lines(root: Path) -> None:
    assert importers(PurePath("pulsarbox/names.py"), root) == [PurePath("tests/unit/broker/test_names.py")]
    assert importers(PurePath("storage/x.py"), root) == [PurePath("tests/unit/storage/test_x.py")]
    assert importers(PurePath("pulsarbox/clock.py"), root) == []


def test_the_command_prints_each_path_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["pulsarbox/broker/connection/cnx.py", "tests/unit/broker/connection/test_cnx.py", "benchmarks/bench.py"])
        == 0
    )
    assert capsys.readouterr().out == "tests/unit/broker/connection/test_cnx.py\n"

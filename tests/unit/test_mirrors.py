"""The tests of a module are at its mirrored path, and no folder holds too many files."""

from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
UNIT: Final = ROOT / "tests" / "unit"
FILES_MAX: Final = 25

WITHOUT_MODULE: Final = {
    # Documentation pages.
    "plugins/test_page", "server/http/test_authorization_page", "server/http/test_own_routes_page",
    "spark/lakehouse/test_page", "spark/test_page",
    # The same filter in the commands and in the broker.
    "cli/messages/test_filter_agreement",
    # Recordings of Pulsar, compared with many modules.
    "cli/pulsar_admin/test_recorded", "cli/pulsar_admin/test_recorded_functions",
    "server/http/policies/test_pulsar_admin", "server/http/policies/test_recorded",
    # Generated code.
    "protocol/test_generated",
    # Histories of several data directories, over all modules of the room.
    "storage/ensemble/test_history", "storage/ensemble/test_campaign", "storage/ensemble/keeping/test_kept_copies",
    "storage/ensemble/keeping/test_kept_directories",
    # Severities on all screens, in all themes.
    "tui/test_severities",
    # The columns of all listings.
    "cli/commands/test_listed_columns",
    # Every route, with each kind of role.
    "server/http/test_role_matrix", "server/http/test_stays_in_tenant",
}  # fmt: skip
"""Tests of more than one module. Tests directly in ``tests/unit`` cover the whole repository."""


def mirrors(test: Path, room: Path) -> bool:
    """Return whether a test is named after the room or one of its modules: ``test_x.py`` or ``test_x_aspect.py``."""
    stem = test.stem.removeprefix("test_")
    names = {room.name, *(path.stem for path in room.glob("*.py")), *(path.name for path in room.glob("*/"))}
    return any(stem == name or stem.startswith(f"{name}_") for name in names)


def test_the_tests_of_a_module_mirror_its_path() -> None:
    tests = {path.relative_to(UNIT).with_suffix("").as_posix(): path for path in UNIT.rglob("test_*.py")}
    assert {name for name in WITHOUT_MODULE if name not in tests} == set()
    strays = {
        name
        for name, path in tests.items()
        if "/" in name and not mirrors(path, ROOT / "pulsarbox" / Path(name).parent)
    }
    assert strays == WITHOUT_MODULE


def test_a_test_without_its_module_is_noticed() -> None:
    room = ROOT / "pulsarbox" / "broker" / "handlers"
    assert mirrors(Path("test_consume.py"), room)
    assert mirrors(Path("test_consume_again.py"), room)
    assert mirrors(Path("test_handlers.py"), room)
    assert not mirrors(Path("test_consumed.py"), room)
    assert not mirrors(Path("test_elsewhere.py"), room)


def test_no_folder_holds_too_many_files() -> None:
    folders = ("pulsarbox", "storage", "tui", "plugins", "tests", "examples", "benchmarks")
    files = Counter(
        path.parent.relative_to(ROOT).as_posix() for each in folders for path in (ROOT / each).rglob("*.py")
    )
    assert len(files) > len(folders)
    assert {folder: count for folder, count in files.items() if count > FILES_MAX + 1} == {}

"""The unit tests of a module. ``python -m tests.tools.mirrored_tests FILE...`` prints those of changed files.

Tests mirror the package: ``pulsarbox/broker/topic/x.py`` has ``tests/unit/broker/topic/test_x.py``, ``storage/x.py``
has ``tests/unit/storage/test_x.py``. A module without such a file has the tests of its room: the nearest folder.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Final

ROOT: Final = Path(__file__).parents[2]
UNIT: Final = PurePath("tests/unit")
OTHER_FOLDERS: Final = ("tests", "benchmarks", "examples")
"""Top-level folders without unit tests of their own."""


def mirror(module: PurePath, root: Path = ROOT) -> PurePath | None:
    """Return the test file that mirrors a module, relative to ``root`` as the module is, or None if it has none."""
    path = room(module) / f"test_{module.name}"
    return path if (root / path).is_file() else None


def room(module: PurePath) -> PurePath:
    """Return the folder of a module's tests, whether it exists or not."""
    parts = module.parts[1:] if module.parts[0] == "pulsarbox" else module.parts
    return UNIT.joinpath(*parts[:-1])


def nearest_room(module: PurePath, root: Path = ROOT) -> PurePath:
    """Return the nearest folder of tests that exists."""
    folder = room(module)
    while not (root / folder).is_dir():
        folder = folder.parent
    return folder


def importers(module: PurePath, root: Path = ROOT) -> list[PurePath]:
    """Return the test files that import a module, sorted."""
    parts = module.with_suffix("").parts
    name = ".".join(parts if parts[0] == "pulsarbox" else ("pulsarbox", *parts))
    line = re.compile(rf"^(from|import) {re.escape(name)} ", re.MULTILINE)
    found = (path for path in (root / UNIT).rglob("test_*.py") if line.search(path.read_text("utf-8")))
    return sorted(path.relative_to(root) for path in found)


def unit_tests_of(file: PurePath, root: Path = ROOT) -> PurePath | None:
    """Return the unit tests to run after a change of a file: a file or a folder, or None if there are none."""
    if file.parts[: len(UNIT.parts)] == UNIT.parts and file.name.startswith("test_"):
        return file
    if file.parts[0] in OTHER_FOLDERS:
        return None
    return mirror(file, root) or nearest_room(file, root)


def main(words: Sequence[str]) -> int:
    """Print the unit tests of the files, one path per line."""
    found = {unit_tests_of(PurePath(word)) for word in words}
    sys.stdout.write("".join(f"{path}\n" for path in sorted(str(each) for each in found if each is not None)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Every screen matches its recording; ``make screens`` records intended changes."""

import difflib

import pytest

from tests.tools.campaigns import short
from tests.unit.tui.seen import DRAWN, FOLDER, SIZES, STEPS, compared, file_of, picture_of, stopped


@pytest.mark.parametrize("size", short([(size,) for size in SIZES], 1), ids=lambda size: f"{size[0]}x{size[1]}")
async def test_every_screen_looks_as_it_did(size: tuple[int, int]) -> None:
    def differs(name: str, wanted: str, found: str) -> None:
        lines = difflib.unified_diff(wanted.split("\n"), found.split("\n"), "as it was", "as it is", lineterm="", n=0)
        pytest.fail(f"{name} at {size}; if it is meant so, `make screens`:\n" + "\n".join(lines), pytrace=False)

    with stopped():
        await compared(size, differs)


def test_there_is_no_file_that_is_compared_with_nothing() -> None:
    texts = {file_of(name, size).name for name, _, _ in STEPS for size in SIZES}
    assert {each.name for each in FOLDER.iterdir()} == texts | {picture_of(name).name for name in DRAWN}

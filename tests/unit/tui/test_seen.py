"""Every screen looks as it did; what was meant to change is written anew by ``make screens``."""

import difflib

import pytest

from tests.unit.tui.driving import driven
from tests.unit.tui.seen import DRAWN, FOLDER, SIZES, STEPS, compared, file_of, picture_of, stopped


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_every_screen_looks_as_it_did(size: tuple[int, int]) -> None:
    def differs(name: str, wanted: str, found: str) -> None:
        lines = difflib.unified_diff(wanted.split("\n"), found.split("\n"), "as it was", "as it is", lineterm="", n=0)
        pytest.fail(f"{name} at {size}; if it is meant so, `make screens`:\n" + "\n".join(lines), pytrace=False)

    @driven
    async def seen() -> None:
        await compared(size, differs)

    with stopped():
        seen()


def test_there_is_no_file_that_is_compared_with_nothing() -> None:
    texts = {file_of(name, size).name for name, _, _ in STEPS for size in SIZES}
    assert {each.name for each in FOLDER.iterdir()} == texts | {picture_of(name).name for name in DRAWN}

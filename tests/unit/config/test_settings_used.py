"""Every setting is used outside the package that declares it."""

from pathlib import Path

import pytest

from pulsarbox.config import settings_table

ROOT = Path(__file__).parents[3]
CODE = "\n".join(
    path.read_text(encoding="utf-8")
    for folder in ("pulsarbox", "storage")
    for path in (ROOT / folder).rglob("*.py")
    if "config" not in path.parts
)


@pytest.mark.parametrize("name", [row.name for row in settings_table()])
def test_a_setting_is_used(name: str) -> None:
    assert f".{name}" in CODE or f'"{name}"' in CODE, "neither read nor named by a table"

"""docs/embedding.md: every program and test on the page runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.campaigns import short

PAGE = Path(__file__).parents[3] / "docs" / "embedding.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
INI = re.findall(r"^```ini\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", short(range(len(PROGRAMS)), 2))
def test_a_program_runs(number: int, tmp_path: Path) -> None:
    file = tmp_path / "test_shown.py"
    file.write_text(PROGRAMS[number])
    (tmp_path / "pytest.ini").write_text(INI[0])
    command = [sys.executable, "-m", "pytest", "-q"] if "def test_" in PROGRAMS[number] else [sys.executable]
    done = subprocess.run([*command, str(file)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_shows_them_all() -> None:
    text = "\n".join(PROGRAMS)
    assert all(word in text for word in ("PulsarBox()", "snapshot()", 'clock="virtual"', "faults=True", "def test_"))
    assert len(INI) == 1

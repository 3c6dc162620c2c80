"""The demonstration, short: its two sides agree."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demo_ends_by_itself_and_its_numbers_agree() -> None:
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), "--seconds", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("the two sides agree\n")
    assert "DIFFER" not in done.stdout

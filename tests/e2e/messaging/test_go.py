"""The official Go client, for features that the Python client lacks: ack receipts, retry letters and others."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.clients import not_yet
from tests.e2e.conftest import Running
from tests.tools.go import GoError, build

FOLDER = Path(__file__).parents[1] / "go"
SCENARIOS = [
    line.split('"')[1]
    for line in (FOLDER / "main.go").read_text().splitlines()
    if line.startswith('\t"') and '":' in line
]


NOT_YET: dict[str, str] = {}


def scenarios() -> list[Any]:
    return [pytest.param(name, marks=not_yet(NOT_YET[name]) if name in NOT_YET else ()) for name in SCENARIOS]


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return build(FOLDER)
    except GoError as error:
        if "not installed" in str(error):
            pytest.skip(str(error))
        raise


@pytest.mark.timeout(700)  # the first test builds the program
@pytest.mark.parametrize("scenario", scenarios())
def test_the_go_client(program: Path, box: Running, scenario: str) -> None:
    command = [str(program), "-url", box.url, "-web-url", box.web_url, scenario]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr

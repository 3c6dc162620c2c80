"""The example of docs/websocket.md, unmodified except for its port."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pulsarbox.server.websocket import broker_connection, endpoint, message_json, parameters, producer_session
from tests.e2e.conftest import Running

PAGE = Path(__file__).parents[3] / "docs" / "websocket.md"


@pytest.mark.usefixtures("ours")
def test_the_example_prints_what_the_page_says(box: Running) -> None:
    text = PAGE.read_text()
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example is not None
    program = example[1].replace("localhost:8080", urlsplit(box.web_url).netloc)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert [f"`{line}`" in text for line in lines] == [True, True]


def test_the_limits_of_the_page() -> None:
    text = PAGE.read_text()
    assert f"{message_json.ELEMENTS_MAX:,}" in text
    assert f"{producer_session.RESULTS_MAX:,} results" in text
    assert f"up to {endpoint.TOPICS_MAX:,} topics" in text
    assert f"holds {broker_connection.HELD_HIGH >> 10} KiB for it" in text
    assert parameters.QUEUE_MAX == 1000

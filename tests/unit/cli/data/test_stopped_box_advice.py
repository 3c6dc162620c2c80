"""The remedy in answers about a stopped box."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pulsarbox.cli.data.dead_box import answered


@pytest.mark.parametrize(
    ("method", "target"),
    [("GET", "/pulsarbox/v1/top/clients"), ("POST", "/pulsarbox/v1/jobs"), ("GET", "/pulsarbox/v1/txn")],
)
def test_the_remedy_starts_the_box_of_the_same_directory(method: str, target: str) -> None:
    box: Any = SimpleNamespace(path=Path("my box"), views={}, now=0)
    reply = answered(box, method, target)
    assert reply.status == 503
    assert "start it with `pulsarbox start --detach --data-dir 'my box'`" in reply.reason

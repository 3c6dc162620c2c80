"""Every command of docs/sql.md, in order, against a box; the outputs that the page shows are those of the commands."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pulsarbox import PulsarBox
from tests.e2e.commands import called

PAGE = (Path(__file__).parents[3] / "docs" / "sql.md").read_text("utf-8")
COMMAND = re.compile(r"^    (?:\$ )?pulsarbox (.*)$", re.MULTILINE)
RECORD = re.compile(r"^```json\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[PulsarBox]:
    with PulsarBox(data_dir=tmp_path / "data", process=True) as box:
        yield box


def lines() -> list[tuple[list[str], list[str]]]:
    """Return the words of each command, and the lines that the page shows below it."""
    found = []
    for match in COMMAND.finditer(PAGE):
        below = PAGE[match.end() + 1 :].partition("\n\n")[0]
        shown = below.splitlines() if match[0].lstrip().startswith("$") else []
        found.append((shlex.split(match[1]), [line[4:] for line in shown]))
    return found


def test_the_commands_of_the_page(box: PulsarBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = RECORD.search(PAGE)
    assert found is not None
    (tmp_path / "order.avsc").write_text(found[1])
    called("produce", "plain", '{"item": "tea"}', "--url", box.service_url)
    urls: dict[str, Any] = {"--url": box.service_url, "--admin-url": box.admin_url}
    ran = 0
    for words, shown in lines():
        if words == ["sql"] or "--follow" in words:  # the shell, and a command without an end
            continue
        options = ["--admin-url"] if words[0] in ("schema", "sub") else ["--url"] if words[0] == "produce" else urls
        if {"--no-live", "--data-dir"} & set(words):
            options = []
        done = called(*words, *(each for name in options for each in (name, urls[name])))
        assert not shown or done.stdout.splitlines() == shown
        ran += 1
    assert ran >= 15 and (tmp_path / "orders.parquet").exists()

"""A box with three data directories is backed up while it serves, loses one, and is restored with others and alone."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from tests.e2e import commands
from tests.e2e.clients import connect, numbered, read, send_all
from tests.e2e.process.test_directories import TOPIC, command
from tests.tools.box import BoxProcess

COUNT = 200


@pytest.fixture
def box(tmp_path: Path) -> Iterator[BoxProcess]:
    """A running box over the directories a, b and c, with two copies of messages."""
    own = BoxProcess(tmp_path / "a", command(tmp_path))
    own.start()
    yield own
    own.kill()


def publish(box: BoxProcess, start: int) -> None:
    client = connect(box.url)
    send_all(client.create_producer(TOPIC), numbered(COUNT, start))
    client.close()


def assert_all_are_read(box: BoxProcess, count: int) -> None:
    client = connect(box.url)
    assert read(client.create_reader(TOPIC, pulsar.MessageId.earliest), count) == numbered(count)
    client.close()


def backed_up(folder: Path) -> dict[str, int]:
    words = ("backup", str(folder / "backups"), "--config", str(folder / "box.toml"), "-o", "json")
    found: dict[str, int] = json.loads(commands.run(*words).stdout)
    return found


def test_a_backup_has_all_messages_of_a_box_with_several_directories(box: BoxProcess, tmp_path: Path) -> None:
    publish(box, 0)
    made = backed_up(tmp_path)
    assert (made["directories"], made["lostEntries"]) == (3, 0)
    shutil.rmtree(tmp_path / "a")
    publish(box, COUNT)
    box.kill()
    shutil.rmtree(tmp_path / "a", ignore_errors=True)  # what the box wrote there before it noticed
    (tmp_path / "a").write_text("not a directory")
    assert backed_up(tmp_path)["directories"] == 2
    commands.run("backup", "verify", str(tmp_path / "backups"))
    target = tmp_path / "restored"
    target.mkdir()
    done = commands.run("restore", str(tmp_path / "backups"), str(target / "a"))
    assert b"list it together with empty ones" in done.stderr
    copy = BoxProcess(target / "a", command(target))
    try:
        copy.start()
        assert_all_are_read(copy, 2 * COUNT)
        publish(copy, 2 * COUNT)  # with two copies
        assert copy.stop() == 0
        alone = BoxProcess(target / "a", command(target, ("a",), 1))
        alone.start()
        assert_all_are_read(alone, 2 * COUNT)
        assert alone.stop() == 0
    finally:
        copy.kill()

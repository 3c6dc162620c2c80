"""A box with three data directories loses one while it runs, is killed, and starts with what is left."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from pulsarbox.storage.recording.event_files import newest_first
from tests.e2e import commands
from tests.e2e.clients import connect, until
from tests.tools.box import BoxError, BoxProcess

TOPIC = "persistent://public/default/copies"
NAMES = ("a", "b", "c")


@pytest.fixture
def box(tmp_path: Path) -> Iterator[BoxProcess]:
    """A box whose messages have two copies, not started yet."""
    own = BoxProcess(tmp_path / "a", command(tmp_path))
    yield own
    own.kill()


def command(folder: Path, names: tuple[str, ...] = NAMES, copies: int = 2, *more: str) -> list[str]:
    """Return the command of a start with these data directories."""
    file = folder / "box.toml"
    listed = ",".join(str(folder / name) for name in names)
    quorums = "".join(f"managedLedgerDefault{each} = {copies}\n" for each in ("WriteQuorum", "AckQuorum"))
    file.write_text(
        f'[ensemble]\ndataDirectories = "{listed}"\n'
        f"[managedLedger]\nmanagedLedgerDefaultEnsembleSize = {max(copies, len(names))}\n{quorums}"
    )
    ports = ("--port", "{port}", "--web-port", "{web_port}")
    return [sys.executable, "-m", "pulsarbox", "start", "--config", str(file), *ports, *more]


def publish(box: BoxProcess, first: int, end: int) -> None:
    client = connect(box.url)
    producer = client.create_producer(TOPIC)
    for number in range(first, end):
        producer.send(b"%d" % number)
    client.close()


def assert_all_are_there(box: BoxProcess, end: int) -> None:
    client = connect(box.url)
    reader = client.create_reader(TOPIC, pulsar.MessageId.earliest)
    assert [int(reader.read_next(20_000).data()) for _ in range(end)] == list(range(end))
    client.close()


def kinds(place: Path) -> set[str]:
    """Return the kinds of the events in a data directory."""
    return {str(row["kind"]) for row in newest_first(place / "events", 1 << 62)}


def restart(box: BoxProcess) -> None:
    box.kill()
    box.start()


def test_acknowledged_messages_survive_the_loss_of_a_directory_and_a_crash(box: BoxProcess, tmp_path: Path) -> None:
    box.start()
    publish(box, 0, 50)
    shutil.rmtree(tmp_path / "b")
    publish(box, 50, 100)
    states = {each["name"]: each["state"] for each in json.loads((tmp_path / "a/ENSEMBLE").read_text())["members"]}
    assert states[str(tmp_path / "b")] == "lost"
    restart(box)
    assert_all_are_there(box, 100)
    publish(box, 100, 120)
    restart(box)
    assert_all_are_there(box, 120)
    assert box.stop() == 0


def test_a_box_does_not_start_if_acknowledged_messages_may_be_lost(tmp_path: Path) -> None:
    box = BoxProcess(tmp_path / "a", command(tmp_path, NAMES[:2], 1))
    box.start()
    publish(box, 0, 20)
    box.kill()
    shutil.move(tmp_path / "b", tmp_path / "away")
    (tmp_path / "b").write_text("not a directory")
    with pytest.raises(BoxError, match=f"--accept-loss-of {tmp_path / 'b'}"):
        box.start()
    box.kill()
    (tmp_path / "b").unlink()
    shutil.move(tmp_path / "away", tmp_path / "b")
    box.start()
    assert_all_are_there(box, 20)
    assert box.stop() == 0


def test_an_existing_data_directory_becomes_the_first_of_several(tmp_path: Path) -> None:
    single = BoxProcess(tmp_path / "a")
    single.start()
    publish(single, 0, 20)
    assert single.stop() == 0
    box = BoxProcess(tmp_path / "a", command(tmp_path))
    box.start()
    assert_all_are_there(box, 20)
    publish(box, 20, 40)
    restart(box)
    assert_all_are_there(box, 40)
    assert box.stop() == 0


def test_a_box_is_found_without_its_first_directory(box: BoxProcess, tmp_path: Path) -> None:
    box.start()
    config = ("--config", str(tmp_path / "box.toml"))
    b = ("--data-dir", str(tmp_path / "b"))

    def is_found(*words: str) -> bool:
        return bool(json.loads(commands.run("status", *words, "-o", "json").stdout)["port"] == box.port)

    until(lambda: is_found(*config))
    until(lambda: is_found(*b))
    shutil.rmtree(tmp_path / "a")
    publish(box, 0, 10)
    assert is_found(*config)
    commands.run("start", *config, "--port", "0", "--web-port", "0", code=4)  # the box still has the others
    if (tmp_path / "a").exists():  # made by that attempt
        shutil.rmtree(tmp_path / "a")
    until(lambda: "lost" in (tmp_path / "b/ENSEMBLE").read_text())
    commands.run("storage", "replace", str(tmp_path / "a"), "--wait", "--admin-url", box.web_url)
    until((tmp_path / "a/RUNNING").exists)
    until(lambda: {"started", "member-lost", "member-joined"} <= kinds(tmp_path / "a"))
    commands.run("stop", *b)
    assert not list(tmp_path.glob("*/RUNNING"))

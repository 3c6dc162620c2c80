"""Exports with a real box and Spark: each file format preserves every value, or the export is rejected."""

import base64
import csv
import io
import itertools
import json
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from click.testing import CliRunner

from pulsarbox.cli.main import main
from pulsarbox.client.client import Client
from pulsarbox.client.producer import Options, Producer
from pulsarbox.protocol.message_encoder import Outgoing
from tests.e2e.conftest import Running
from tests.tools.campaigns import short

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.e2e.spark.conftest import Command

PIECES: Final = (
    *("", " ", "\t", "\n", "\r", "\r\n", '"', '""', "\\", "'", ",", ";", "#", "{", "-", "a", "null", "\\N", "\x01"),
    *("\x0b", "\x1a", "\x1f", "\x7f", "\x85", "\xa0", "\u2028", "\ufeff", "\ufffd", "é", "😀", "=1+1"),
)
BYTES: Final = (b"\xff", b"\x00", b"\xc3", b"\xed\xa0\x80", b"\x08\x10\x18\x20", b"\x00" * 100, bytes(range(256)))


def nasty(count: int) -> list[str]:
    """Return texts built from pieces that confuse CSV parsers: all pairs, and longer texts from a seed."""
    dice = random.Random(26)
    pairs = ["".join(each) for each in itertools.product(PIECES, repeat=2)]
    return [*pairs, *("".join(dice.choices(PIECES, k=dice.randint(3, 9))) for _ in range(count - len(pairs)))]


def subscribed(box: Running, topic: str) -> None:
    """Create a topic that retains its messages."""
    name = topic.replace("://", "/")
    box.admin("PUT", name)
    box.admin("PUT", f"{name}/subscription/s")


def published(box: Running, topic: str, messages: list[Outgoing]) -> None:
    counts: list[int] = []
    host, _, port = box.url.removeprefix("pulsar://").partition(":")
    client = Client([(host, int(port))])
    try:
        producer = Producer(client, topic, Options(batching=False), lambda *told: counts.append(told[3]))
        for each in messages:
            producer.send(each)
        producer.flush()
        producer.close()
    finally:
        client.close()
    assert sum(counts) == len(messages)


def outgoing(texts: list[str]) -> Iterator[Outgoing]:
    for number, text in enumerate(texts):
        name = f"p{text}" if number % 7 == 0 else "p"
        pairs = [("n", str(number)), (name, text)] if number % 3 else []
        key, payload = (None if number % 5 == 0 else text), text.encode()
        yield Outgoing(payload, key, False, None, pairs, 1_700_000_000_000 + number if number % 2 else 0)
    for number, data in enumerate(BYTES):
        key = base64.b64encode(data).decode()
        yield Outgoing(data, key, True, data, [("b", str(number))], number + 1)
    yield Outgoing(None, "tombstone")
    yield Outgoing(b"", "empty", False, b"")


def stored(box: Running, topic: str) -> list[tuple[Any, ...]]:
    """Return the expected values of each message, in order. The publish time is that of the second producer."""
    return [_told(json.loads(line)) for line in consumed(box, topic)]


def consumed(box: Running, topic: str) -> list[bytes]:
    """Return the envelopes of all messages in a topic."""
    words = ["consume", topic, "--until", "end", "-o", "ndjson", "--no-progress", "--url", box.url]
    return CliRunner().invoke(main, words).stdout_bytes.splitlines()


def _told(envelope: dict[str, Any]) -> tuple[Any, ...]:
    return (
        _bytes(envelope, "payload"),
        _bytes(envelope, "key"),
        _bytes(envelope, "ordering_key"),
        sorted(envelope.get("props", {}).items()),
        envelope.get("event_time"),
    )


def _bytes(envelope: dict[str, Any], name: str) -> bytes | None:
    if f"{name}_b64" in envelope:
        return base64.b64decode(envelope[f"{name}_b64"])
    text = envelope.get(name)
    return None if text is None else text.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(("form", "encoding"), short([("parquet", ""), ("csv", "base64"), ("json", "hex")], 1))
def test_every_message_comes_back_from_every_kind_of_file(
    command: "Command", box: Running, topic: str, tmp_path: Path, form: str, encoding: str
) -> None:
    copy, place, job = f"{topic}-copy", tmp_path / "out", topic.rpartition("/")[2]
    sent = list(outgoing(nasty(1_200)))
    for name in (topic, copy):
        subscribed(box, name)
    published(box, topic, sent)
    words = ["--bytes", encoding] if encoding else []
    command("export", topic, "--to", str(place), "--format", form, "--columns", "all", *words)
    back = ["--to", copy, "--value", "value", "--job", job, "--state", str(tmp_path / "state"), *words]
    command("backfill", str(place), "--format", form, *back)
    before, after = stored(box, topic), stored(box, copy)
    assert len(before) == len(sent)
    assert sorted(after, key=repr) == sorted(before, key=repr)


@pytest.mark.campaign
def test_csv_is_read_by_others_and_its_ids_are_those_of_our_commands(
    command: "Command", box: Running, topic: str, tmp_path: Path
) -> None:
    subscribed(box, topic)
    published(box, topic, [Outgoing(text.encode(), "k") for text in nasty(1_200)])
    command("export", topic, "--to", str(tmp_path / "out"), "--format", "csv", "--bytes", "text")
    files = [each.read_bytes().decode() for each in (tmp_path / "out").glob("*.csv")]
    found = [row for text in files for row in csv.DictReader(io.StringIO(text, newline=""))]
    wanted = [json.loads(line) for line in consumed(box, topic)]
    assert len({row["__messageId"] for row in found}) == len(wanted)
    assert {(row["__messageId"], row["value"]) for row in found} == {(each["id"], each["payload"]) for each in wanted}
    times = {row["__messageId"]: datetime.fromisoformat(row["__publishTime"]) for row in found}
    expected = {each["id"]: datetime.fromtimestamp(each["publish_time"] / 1000, UTC) for each in wanted}
    assert times == expected


@pytest.mark.parametrize("form", short(["csv", "json"], 1))
def test_times_of_records_keep_their_microseconds_and_null_is_no_empty_text(
    command: "Command", spark: "SparkSession", box: Running, topic: str, tmp_path: Path, form: str
) -> None:
    subscribed(box, topic)
    rows = spark.sql(
        "SELECT * FROM VALUES (1, timestamp_micros(1700000000123456), '', named_struct('a', '', 'b', NULL)),"
        " (2, timestamp_micros(-1), NULL, NULL), (3, NULL, ' x ', named_struct('a', NULL, 'b', 0.1D)) t(n, at, s, r)"
    )
    urls = {"service.url": box.url, "admin.url": box.web_url, "topic": topic, "valueFormat": "avro"}
    rows.write.format("pulsarbox").mode("append").options(**urls).save()
    command("export", topic, "--to", str(tmp_path / "out"), "--format", form, "--columns", "n,at,s,r")
    _is_exact(form, "".join(each.read_text() for each in (tmp_path / "out").glob(f"*.{form}")).split("\n"))


def _is_exact(form: str, lines: list[str]) -> None:
    if form == "json":
        _is_exact_json([json.loads(line) for line in lines if line])
        return
    assert [line for line in sorted(lines) if line and line != "n,at,s,r"] == [
        '1,2023-11-14T22:13:20.123456Z,"","{""a"":"""",""b"":null}"',
        "2,1969-12-31T23:59:59.999999Z,,",
        '3,, x ,"{""a"":null,""b"":0.1}"',
    ]


def _is_exact_json(found: list[dict[str, Any]]) -> None:
    assert sorted(found, key=lambda row: int(row["n"])) == [
        {"n": 1, "at": "2023-11-14T22:13:20.123456Z", "s": "", "r": {"a": "", "b": None}},
        {"n": 2, "at": "1969-12-31T23:59:59.999999Z", "s": None, "r": None},
        {"n": 3, "at": None, "s": " x ", "r": {"a": None, "b": 0.1}},
    ]


_UNFIT = [
    (Outgoing(b"a\0b"), ("--bytes", "text"), "column value of message {id} contains a NUL character"),
    (Outgoing(b"\xff"), ("--bytes", "text"), "column value of message {id} is not UTF-8: use base64 or hex"),
    (Outgoing(None), ("--columns", "value"), "column value of message {id} is null, which CSV with a single"),
]


@pytest.mark.parametrize(("message", "words", "why"), short(_UNFIT, 1))
def test_a_value_that_a_file_cannot_hold_ends_the_export_before_files_are_written(
    command: "Command", box: Running, topic: str, tmp_path: Path, message: Outgoing, words: tuple[str, ...], why: str
) -> None:
    subscribed(box, topic)
    published(box, topic, [Outgoing(b"good"), message])
    asked = ["export", topic, "--to", str(tmp_path / "out"), "--format", "csv", *words]
    refused = command(*asked, ends_with=1).stderr
    assert re.search(why.format(id=r"\d+:1:-1:-1"), refused), refused
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.campaign
@pytest.mark.parametrize(("message", "words"), [each[:2] for each in _UNFIT])
def test_an_export_that_fails_keeps_the_files_that_it_would_overwrite(
    command: "Command", box: Running, topic: str, tmp_path: Path, message: Outgoing, words: tuple[str, ...]
) -> None:
    subscribed(box, topic)
    published(box, topic, [Outgoing(b"good"), message])
    asked = ["export", topic, "--to", str(tmp_path / "out"), "--format", "csv", *words]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "before.csv").write_text("kept")
    command(*asked, "--overwrite", ends_with=1)
    assert [each.read_text() for each in (tmp_path / "out").iterdir()] == ["kept"]
    command(*asked[:-2], "--overwrite")
    assert [each for each in tmp_path.iterdir() if each.name != "out"] == []
    assert not (tmp_path / "out" / "before.csv").exists()


def test_a_range_whose_end_is_before_its_beginning_is_a_misuse(
    command: "Command", box: Running, topic: str, tmp_path: Path
) -> None:
    subscribed(box, topic)
    published(box, topic, [Outgoing(b"a"), Outgoing(b"b"), Outgoing(b"c")])
    ids = [json.loads(line)["id"] for line in consumed(box, topic)]
    ids = [each.rpartition(":-1:")[0] for each in ids]
    place = str(tmp_path / "out")
    for begin, end in ((ids[2], ids[0]), (ids[0], "-1h"), ("+1h", ids[2]), ("-1m", "-1h")):
        refused = command("export", topic, "--to", place, "--from", begin, "--until", end, ends_with=2)
        assert "swap them" in refused.stderr, (begin, end)
        assert "starting Spark" not in refused.stderr
    for words in (("--from", "latest"), ("--until", "earliest"), ("--format", "csv", "--option", "encoding=latin1")):
        command("export", topic, "--to", place, *words, ends_with=2)
    command("export", topic, "--to", place, "--bytes", "hex", ends_with=2)
    assert "1 message written" in command("export", topic, "--to", place, "--from", ids[1], "--until", ids[1]).stderr

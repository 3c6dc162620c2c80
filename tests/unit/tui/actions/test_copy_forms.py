"""Copies of a message: what they are read as by the programs they are for."""

import base64
import shlex
import subprocess
from typing import Any

import pytest

from pulsarbox.cli.envelope import envelope as envelopes
from pulsarbox.cli.envelope import stored_message
from pulsarbox.tui.actions.copy_forms import copy_choices, curl_command, envelope, produce_command
from tests.unit.tui.fake import message

PAYLOADS = (
    b"hello",
    b"",
    b"-",
    b"--help",
    "漢字 é".encode(),
    b'it\'s $(date) `x` \\n "q" !',
    b"two\nlines\t",
    b"\xff\x00",
)


def row(**more: Any) -> dict[str, Any]:
    return {**message(3), "keyIsBase64": False, "orderingKey": None, **more}


@pytest.mark.parametrize("payload", [*PAYLOADS, None])
def test_an_envelope_is_read_by_produce(payload: bytes | None) -> None:
    told = row(key="k", eventTime=5, deliverAt=2_000_000_000_000, orderingKey=base64.b64encode(b"\xfe").decode())
    found = envelopes.read(envelope(told, "orders", payload).encode())
    assert found.payload == payload
    assert (found.key, found.event_time, found.deliver_at) == ("k", 5, 2_000_000_000_000)
    assert found.ordering_key == b"\xfe"
    assert dict(found.properties or ()) == told["properties"]
    assert envelope(told, "orders", payload).isascii()


@pytest.mark.parametrize("payload", [*PAYLOADS, None])
@pytest.mark.parametrize(
    "more", [{}, {"key": None, "properties": {}}, {"key": "it's; rm -rf /"}, {"properties": {"a b": "x=1\n'"}}]
)
def test_a_command_publishes_the_same_message(payload: bytes | None, more: dict[str, Any]) -> None:
    told = row(**more)
    line = produce_command(told, "orders", payload, ["--admin-url", "http://box:8080"])
    stand_in = 'pulsarbox() { printf \'%s\\0\' "$@"; if [ "$3" = -i ]; then cat; fi; }\n'
    given = subprocess.run(["bash", "-c", stand_in + line], capture_output=True, check=True).stdout
    words = given.split(b"\0")
    assert words[0] == b"produce" and b"http://box:8080" in words
    if b"-i" in words:
        found = envelopes.read(words[-1].strip())
        assert (found.payload, found.key, dict(found.properties or ())) == (payload, told["key"], told["properties"])
    elif payload is None:
        assert words[-2] == b"--tombstone"
    else:
        assert words[-3:] == [b"--", payload, b""]
    if b"-i" not in words:
        assert [word for word in words if word.startswith(b"--key=")] == (
            [f"--key={told['key']}".encode()] if told["key"] else []
        )
        assert sorted(word for word in words if word.startswith(b"--property=")) == sorted(
            f"--property={name}={value}".encode() for name, value in told["properties"].items()
        )


@pytest.mark.parametrize(
    ("more", "payload"),
    [
        ({"keyIsBase64": True, "key": "/w=="}, b"x"),
        ({"keyIsBase64": True, "key": "/w=="}, None),
        ({"properties": {"a=b": "c"}}, b"x"),
        ({"properties": {"": "c"}}, b"x"),
        ({"eventTime": 5}, b"x"),
        ({"orderingKey": "/w=="}, b"x"),
        ({}, b"x" * 100_001),
    ],
)
def test_what_no_option_says_is_passed_as_an_envelope(more: dict[str, Any], payload: bytes | None) -> None:
    line = produce_command(row(**more), "orders", payload)
    assert line.startswith("printf ") and line.endswith("| pulsarbox produce orders -i ndjson")
    found = envelopes.read(shlex.split(line)[2].encode())
    assert found.payload == payload


@pytest.mark.parametrize("version", [0, 3])
def test_the_schema_version_is_published_too(version: int) -> None:
    told = row(schemaVersion=version, id="12:3:-1:-1")
    words = shlex.split(produce_command(told, "orders", b"\x02x", ["--admin-url", "http://box"]))
    assert words[:2] == ["printf", "%s\\n"]
    assert words[3:] == [
        "|",
        "pulsarbox",
        "produce",
        "orders",
        "-i",
        "ndjson",
        "--preserve",
        "--admin-url",
        "http://box",
    ]
    stored = stored_message.read(words[2].encode())
    assert stored.schema_version == version.to_bytes(8, "big")
    assert stored.message.payload == b"\x02x"
    assert "schema" in {name: meaning for name, _, meaning in copy_choices(told)}["produce"]
    assert stored_message.read(envelope(row(id="12:3:-1:-1"), "orders", b"x").encode()).schema_version is None


def test_times_are_options() -> None:
    line = produce_command(row(eventTime=1_700_000_000_000, deliverAt=1_800_000_000_000), "orders", b"x")
    assert "--event-time=1700000000000" in line and "--at=1800000000000" in line


def test_a_request_is_quoted_and_names_no_secret() -> None:
    path = "/pulsarbox/v1/browse/public/default/or'ders"
    line = curl_command("http://box:8080/", path, "12:3:-1:0", "token", 100)
    words = shlex.split(line)
    assert words[2] == f"http://box:8080{path}?from=12%3A3%3A-1%3A0&direction=forward&limit=1&maxPayload=100"
    assert words[3:] == ["-H", "Authorization: Bearer $TOKEN"]
    assert "-u" in curl_command("http://box", "/x", "1:2", "basic", 1) and "-H" not in curl_command(
        "http://box", "/x", "1:2", "", 1
    )

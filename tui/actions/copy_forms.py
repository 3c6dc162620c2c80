"""Forms in which a message is copied: as an envelope, and as shell commands that publish or request it."""

import json
import shlex
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from pulsarbox.tui.viewer.lines import Lines
from pulsarbox.tui.viewer.outline import Outline
from pulsarbox.tui.widgets import command_lines

COPIED_MAX: Final = 256 << 10
"""Maximum number of characters to copy: terminals ignore, or stop at, larger texts for the clipboard."""
_WORD_MAX: Final = 100_000
"""Characters of a payload above which it is passed to a command by stdin; Linux refuses arguments of 128 KiB."""
_MILLIS_LEAST: Final = 10**11
"""Times with fewer digits are seconds for the options of commands."""
_VERSION: Final = 1
"""Version of the envelope."""


_COPIES: Final = (
    ("command", "peek command, which prints the message", "a pulsarbox command line"),
    ("envelope", "message as an envelope", "one line of JSON, as pulsarbox produce -i ndjson reads it"),
    ("produce", "produce command, which publishes it again", "a pulsarbox command line with the whole message"),
    ("curl", "curl request", "a command line for curl"),
    ("id", "message ID", "ledger:entry:partition:index"),
    ("value", "value at the cursor", "a number, a text in quotes, or the line"),
    ("path", "path of the value at the cursor", "such as items[3].name"),
)
_WITH_SCHEMA: Final = {
    "envelope": "one line of JSON, as pulsarbox produce -i ndjson --preserve reads it, with the schema version",
    "produce": "with its schema, producer, sequence ID and times, by --preserve",
}
"""Meanings for a message with a schema."""


def copy_choices(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the forms of a message as options of a dialog: name, title and meaning."""
    meanings = _WITH_SCHEMA if row.get("schemaVersion") is not None else {}
    return [(name, title, meanings.get(name, meaning)) for name, title, meaning in _COPIES]


def envelope(row: Mapping[str, Any], topic: str, payload: bytes | None) -> str:
    """Return the message of a row as an envelope: one line of ASCII JSON, as ``produce -i ndjson`` reads it."""
    told: dict[str, Any] = {"v": _VERSION, "topic": topic, "id": row.get("id")}
    if row.get("key") is not None:
        told["key_b64" if row.get("keyIsBase64") else "key"] = row["key"]
    told |= {"ordering_key_b64": row.get("orderingKey"), **_payload(payload)}
    told |= {"props": row.get("properties") or None, "event_time": row.get("eventTime")}
    told |= {"deliver_at": row.get("deliverAt"), "seq": row.get("sequenceId")}
    told |= {"publish_time": row.get("publishTime"), "producer": row.get("producer") or None}
    told |= {"schema": _schema(row)}
    return json.dumps({key: value for key, value in told.items() if value is not None or key == "payload"})


def _schema(row: Mapping[str, Any]) -> str | None:
    """Return the schema version of a message as in the protocol, base64; None without one."""
    version = row.get("schemaVersion")
    return None if version is None else b64encode(int(version).to_bytes(8, "big", signed=False)).decode()


def _payload(payload: bytes | None) -> dict[str, Any]:
    if payload is None:
        return {"payload": None}
    try:
        return {"payload": payload.decode()}
    except UnicodeDecodeError:
        return {"payload_b64": b64encode(payload).decode()}


def produce_command(row: Mapping[str, Any], topic: str, payload: bytes | None, target: Sequence[str] = ()) -> str:
    """Return the command line that publishes the message again. ``target`` has the options that name the box.

    Bytes, a schema version, and what does not fit into an argument, are passed as an envelope.
    """
    has_schema = row.get("schemaVersion") is not None
    words = None if has_schema else _words(row, topic, payload)
    if words is None:
        stored = ["--preserve"] if has_schema else []  # no other option publishes with a schema version
        line = command_lines.with_target(["produce", topic, "-i", "ndjson", *stored], target)
        return f"printf '%s\\n' {shlex.quote(envelope(row, topic, payload))} | {line}"
    return command_lines.line("produce", *target, *words)


def _words(row: Mapping[str, Any], topic: str, payload: bytes | None) -> list[str] | None:
    """Return the arguments of ``produce``; None if the message needs an envelope."""
    text = None if payload is None else payload.decode("utf-8", "surrogateescape")
    properties, ordering = _properties(row), b64decode(row.get("orderingKey") or "").decode("utf-8", "surrogateescape")
    times = [row[name] for name in ("eventTime", "deliverAt") if row.get(name)]
    texts = [text or "", str(row.get("key") or ""), ordering, *(f"{name}{value}" for name, value in properties)]
    unfit = (
        text in ("", "-"),
        sum(map(len, texts)) > _WORD_MAX,
        bool(row.get("keyIsBase64")),
        any(map(_is_unfit, texts)),
        any("=" in name or not name for name, _ in properties),
        any(time < _MILLIS_LEAST for time in times),
    )
    if any(unfit):
        return None
    words = [topic, *_options(row, ordering)]
    return [*words, "--tombstone"] if text is None else [*words, "--", text]


def _is_unfit(text: str) -> bool:
    """Return whether an argument cannot have this text."""
    return "\0" in text or any(0xD800 <= ord(one) < 0xE000 for one in text)


def _properties(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = row.get("properties")
    return [(str(name), str(value)) for name, value in found.items()] if isinstance(found, Mapping) else []


def _options(row: Mapping[str, Any], ordering: str) -> list[str]:
    words = [] if row.get("key") is None else [f"--key={row['key']}"]
    words += [f"--ordering-key={ordering}"] if ordering else []
    words += [f"--property={name}={value}" for name, value in _properties(row)]
    words += [f"--event-time={row['eventTime']}"] if row.get("eventTime") else []
    return words + ([f"--at={row['deliverAt']}"] if row.get("deliverAt") else [])


def curl_command(url: str, path: str, message_id: str, method: str, most: int) -> str:
    """Return the command line that requests the message from the box.

    ``method`` is that of the credentials: a token, or the user and password, come from a variable of the shell.
    """
    asked = {"from": message_id, "direction": "forward", "limit": "1", "maxPayload": str(most)}
    words = ["curl", "-sS", f"{url.rstrip('/')}{path}?{urlencode(asked)}"]
    return " ".join([*map(shlex.quote, words), *_CREDENTIALS.get(method, ())])


_CREDENTIALS: Final = {
    "token": ("-H", '"Authorization: Bearer $TOKEN"'),
    "basic": ("-u", '"$USER:$PASSWORD"'),
}


def copied_line(lines: Lines | None, cursor: int | None, form: str) -> str:
    """Return the value at the cursor of an outline, or its path; the line at the cursor of other contents."""
    if lines is None or cursor is None:
        return ""
    if isinstance(lines, Outline):
        if form == "path":
            return lines.document.path_of(cursor)
        if not lines.document.is_container(cursor):
            return lines.document.text_of(cursor)
    return "".join(piece.text for piece in lines.pieces(cursor, COPIED_MAX)).strip()

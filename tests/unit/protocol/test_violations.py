"""``pulsarbox.protocol.violations``."""

from __future__ import annotations

import ast
from pathlib import Path

import pulsarbox.protocol
from pulsarbox.protocol.violations import ChecksumMismatch, MalformedFrame, ProtocolError

FORBIDDEN = {"asyncio", "socket", "threading", "time", "random", "lmdb", "textual", "click", "os"}


def test_codes() -> None:
    assert (ChecksumMismatch.server_error, MalformedFrame.server_error, ProtocolError.http_status) == (9, 0, 400)


def test_the_room_is_pure() -> None:
    for path in Path(pulsarbox.protocol.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & FORBIDDEN, path.name

"""Pure packages use no clock, file, environment or random source, by import or by call.

import-linter permits the modules listed in pyproject.toml; this test also rejects impure calls into those modules.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.tools.pure_rooms import CONTRACT, ROOT, contract, files

CLOCKS: Final = {
    "date": {"today"},
    "datetime": {"now", "today", "utcnow"},
    "hashlib": {"file_digest"},
    "logging": {"FileHandler", "basicConfig"},
    "sys": {"argv", "stderr", "stdin", "stdout"},
}
"""Attributes of permitted names that read a clock, a file or a stream."""
CALLS: Final = {"__import__", "breakpoint", "eval", "exec", "input", "open", "print"}
SUBMODULES: Final = {
    *("concurrent.futures", "email.utils", "importlib.util", "json.tool", "logging.config", "logging.handlers"),
    *("urllib.error", "urllib.request", "urllib.robotparser"),
}
"""import-linter identifies libraries only by the first part of their names."""


def impure(text: str) -> Iterator[str]:
    """Return each call or import in a module's source that accesses a clock, a file or a stream."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value).rpartition(".")[2]
            if node.attr in CLOCKS.get(owner, ()):
                yield f"line {node.lineno}: {owner}.{node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            yield f"line {node.lineno}: {node.func.id}()"
        elif isinstance(node, ast.Import):
            yield from (f"line {node.lineno}: {each.name}" for each in node.names if each.name in SUBMODULES)
        elif isinstance(node, ast.ImportFrom):
            names = {node.module or "", *(f"{node.module}.{each.name}" for each in node.names)}
            yield from (f"line {node.lineno}: {name}" for name in sorted(names & SUBMODULES))


def test_no_pure_module_calls_for_a_clock_a_file_or_a_stream() -> None:
    checked = files()
    assert len(checked) > 250
    found = {str(path.relative_to(ROOT)): [*impure(path.read_text("utf-8"))] for path in checked}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from datetime import datetime\nx = datetime.now()",
        "import datetime\nx = datetime.datetime.now()",
        "from datetime import date\nx = date.today()",
        "x = open('/etc/passwd')",
        "print('x')",
        "from urllib import request",
        "import logging.handlers",
        "import sys\nsys.stderr.write('x')",
    ],
)
def test_an_impure_call_is_noticed(text: str) -> None:
    assert [*impure(text)]


PLANTED: Final = {
    "clock": "import time",
    "dice": "import random",
    "directory": "import tempfile",
    "engine": "from pulsarbox.storage.lmdb import engine",
    "environment": "import os",
    "file": "import pathlib",
    "loop": "import asyncio",
    "process": "import subprocess",
    "secret": "import secrets",
    "shell": "from pulsarbox.server import daemon",
    "socket_": "import socket",
    "store": "import lmdb",
    "thread": "import threading",
    "unique": "import uuid",
}


def test_a_planted_import_is_refused_in_every_pure_room(tmp_path: Path) -> None:
    package = tmp_path / "pulsarbox"
    rules = contract()
    places = [room.replace(".", "/") for room in rules["source_modules"]]
    texts = {f"{place}/{name}.py": text for place in places for name, text in PLANTED.items()}
    for module in ("pulsarbox/server/daemon.py", "pulsarbox/storage/lmdb/engine.py"):
        texts[module] = ""
    texts |= {f"{place}/allowed.py": "import json\nfrom collections.abc import Sequence" for place in places}
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        (folder / "__init__.py").touch()
    lines = ["[importlinter]", "root_package = pulsarbox", "include_external_packages = True"]
    lines += ["contract_types =", "    allowed: tests.tools.allowed_imports.AllowedImportsContract"]
    lines += ["[importlinter:contract:pure]", "name = pure", f"type = {CONTRACT}"]
    for key in ("source_modules", "allowed_modules", "exempt_modules"):
        lines += [f"{key} =", *(f"    {value}" for value in rules[key])]
    (tmp_path / "rules.ini").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--config", "rules.ini", "--no-cache"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    refused = {line.split(" ->")[0] for line in done.stdout.splitlines() if line.endswith("is not allowed")}
    assert refused == {f"{room}.{name}" for room in rules["source_modules"] for name in PLANTED}

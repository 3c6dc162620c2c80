"""The pure rooms read no clock, file, environment or random source: neither by an import nor by a call.

import-linter allows the modules that a table names (pyproject.toml); the calls below reach further from those modules.
"""

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
CONTRACT: Final = "allowed"
CLOCKS: Final = {
    "date": {"today"},
    "datetime": {"now", "today", "utcnow"},
    "hashlib": {"file_digest"},
    "logging": {"FileHandler", "basicConfig"},
    "sys": {"argv", "stderr", "stdin", "stdout"},
}
"""Attributes of allowed names that read a clock, a file or a stream."""
CALLS: Final = {"__import__", "breakpoint", "eval", "exec", "input", "open", "print"}
SUBMODULES: Final = {
    *("concurrent.futures", "email.utils", "importlib.util", "json.tool", "logging.config", "logging.handlers"),
    *("urllib.error", "urllib.request", "urllib.robotparser"),
}
"""import-linter knows libraries by the first part of their names alone."""


def contract() -> dict[str, Any]:
    """The contract of the pure rooms as pyproject.toml has it."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found: dict[str, Any]
    (found,) = (each for each in document["tool"]["importlinter"]["contracts"] if each["type"] == CONTRACT)
    return found


def files() -> list[Path]:
    """The modules of the pure rooms."""
    rules = contract()
    exempt = tuple(name.split(".")[1:] for name in rules["exempt_modules"])
    found = []
    for room in rules["source_modules"]:
        folder = ROOT / "pulsarbox" / room.partition(".")[2]
        for path in sorted(folder.resolve().rglob("*.py")):
            parts = [folder.name, *path.relative_to(folder.resolve()).with_suffix("").parts]
            if not any(parts[: len(each)] == each for each in exempt) and not path.stem.endswith("_pb2"):
                found.append(path)
    return found


def impure(text: str) -> Iterator[str]:
    """Each call or import of a module's text that reaches a clock, a file or a stream."""
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

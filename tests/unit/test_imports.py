"""What a command imports before it works: import-linter sees the code, this sees the running interpreter."""

import importlib.util
import json
import subprocess
import sys

import pytest


def loaded_by(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after the statement."""
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
    )
    return set(json.loads(done.stdout))


def daemon_or_cli() -> str:
    name = "pulsarbox.server.daemon"
    return name if importlib.util.find_spec(name) else "pulsarbox.cli.main"


def test_the_daemon_loads_no_terminal_no_spark_and_no_pulsar_client() -> None:
    assert loaded_by(f"import {daemon_or_cli()}").isdisjoint({"textual", "rich", "pyspark", "pulsar"})


@pytest.mark.parametrize("module", ["pulsarbox.cli.main", "pulsarbox.cli.start", "pulsarbox.cli.storage"])
def test_the_command_line_loads_only_click(module: str) -> None:
    heavy = {"aiohttp", "asyncio", "google", "lmdb", "psutil", "pulsar", "pyspark", "rich", "textual", "uvloop"}
    assert loaded_by(f"import {module}").isdisjoint(heavy)


def test_listing_the_commands_loads_none_of_them() -> None:
    statement = (
        "from click.testing import CliRunner; from pulsarbox.cli.main import main\n"
        "assert 'start' in CliRunner().invoke(main, ['--help']).output\n"
        "assert 'pulsarbox.cli.start' not in sys.modules"
    )
    assert "click" in loaded_by(statement)


def test_the_settings_load_without_any_library() -> None:
    assert loaded_by("import pulsarbox.config").isdisjoint({"aiohttp", "asyncio", "click", "google", "lmdb"})

"""Modules imported by a command before it runs, as loaded by the interpreter instead of as analyzed by
import-linter."""

import fcntl
import functools
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from pulsarbox.cli.main import COMMANDS
from pulsarbox.server.process import runtime_file
from pulsarbox.server.process.runtime_file import RuntimeFile
from pulsarbox.storage.format import LOCK
from tests.tools.campaigns import short


def loaded_by(statement: str) -> set[str]:
    """Return the modules and packages loaded by a fresh interpreter after the statement."""
    return _with_packages(_told(f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"))


@functools.cache
def loaded_in_turn(*statements: str) -> dict[str, set[str]]:
    """Return the modules added by each of several statements, run in sequence in one interpreter.

    A module absent from all results is also absent after each single statement.
    """
    code = f"""if True:
        import json, sys
        told, before = [], set()
        for statement in {statements!r}:
            exec(statement, {{}})
            told.append(sorted(set(sys.modules) - before))
            before.update(sys.modules)
        print(json.dumps(told))
    """
    return dict(zip(statements, map(_with_packages, _told(code)), strict=True))


@functools.cache
def _told(code: str) -> list[Any]:
    """Return the list in the last output line of a fresh interpreter."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    told: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _with_packages(names: Sequence[str]) -> set[str]:
    return {*names, *(name.partition(".")[0] for name in names)}


def daemon_or_cli() -> str:
    name = "pulsarbox.server.daemon"
    return name if importlib.util.find_spec(name) else "pulsarbox.cli.main"


def test_the_daemon_loads_no_terminal_no_spark_and_no_pulsar_client() -> None:
    assert loaded_by(f"import {daemon_or_cli()}").isdisjoint(
        {"aiohttp", "click", "duckdb", "psutil", "pulsar", "pyarrow", "pyspark", "rich", "textual"}
    )


LATER = {
    *(f"pulsarbox.broker.replay.{name}" for name in ("job", "message_filter", "runner", "transform")),
    "pulsarbox.broker.topic.message_browser",
    *(f"pulsarbox.plugins.{name}" for name in ("fingerprint", "probe")),
    *(f"pulsarbox.server.{name}" for name in ("http", "live", "metrics", "recording.history_recorder")),
    "pulsarbox.storage.lmdb.engine_stats",
    *(f"pulsarbox.storage.packing.{name}" for name in ("live_records", "volume_packer")),
    "pulsarbox.storage.compression.encoder",
    *("importlib.metadata", "pulsarbox.protocol.schema.decoding"),
    *("bz2", "lzma", "random", "secrets", "shutil", "tempfile", "tomllib"),
}
"""Modules that a daemon does not require until it serves.

Threads that use them, or the HTTP handlers, load them outside the event loop. No iteration of the loop loads any of
them.
"""


def test_the_daemon_loads_what_is_used_later_when_it_is_used() -> None:
    assert loaded_by("import pulsarbox.server.daemon").isdisjoint(LATER)


def test_what_jobs_take_is_there_before_one_can_be_begun() -> None:
    """Jobs start only through HTTP, whose handlers are loaded beside the loop: a job loads nothing more within it."""
    rooms = loaded_by("import pulsarbox.server.http.route_table")
    assert {name for name in LATER if ".replay." in name} <= rooms
    assert ours("import pulsarbox.server.http.route_table; import pulsarbox.broker.replay.circuit_breaker") <= rooms


HEAVY = {
    *("aiohttp", "asyncio", "email", "google", "http", "importlib.metadata", "lmdb", "psutil", "pulsar", "pyarrow"),
    *("pyspark", "rich", "sqlite3", "ssl", "textual", "urllib.request", "uvloop", "zstandard"),
}
"""Modules that take more than some milliseconds to import, by name: timings would differ between machines."""

MODULES = ("pulsarbox.cli.main", *sorted({command.target.partition(":")[0] for command in COMMANDS.values()}))


@pytest.mark.parametrize("module", MODULES)
def test_no_command_loads_anything_heavy_before_it_works(module: str) -> None:
    assert loaded_in_turn(*(f"import {each}" for each in MODULES))[f"import {module}"].isdisjoint(HEAVY)


LIGHT = [
    ["config", "show"],
    ["config", "check", "pulsarbox.toml"],
    ["config", "init", "-"],
    ["admin", "--help"],
    ["admin", "topics", "--help"],
    ["admin", "tokens", "create", "--help"],
    ["token", "create", "--help"],
    ["admin", "topics", "stats", "--help"],
    ["context", "list"],
    ["version"],
    ["version", "-o", "json"],
    ["completion", "zsh"],
    ["storage", "--help"],
    ["start", "--help"],
    ["doctor", "--help"],
    ["status", "--data-dir", "/nix"],
    ["clock", "advance", "--help"],
    ["fault", "add", "--help"],
    ["stop", "--data-dir", "/nix"],
    ["topic", "--help"],
    ["topic", "delete", "--help"],
    ["sub", "seek", "--help"],
    ["ns", "--help"],
    ["tenant", "list", "--help"],
    ["produce", "--help"],
    ["consume", "--help"],
    ["peek", "--help"],
    ["tap", "--help"],
]


def to_run(words: list[str]) -> str:
    return f"from pulsarbox.cli.main import main\ntry: main({words!r})\nexcept SystemExit: pass"


@pytest.mark.parametrize("words", LIGHT, ids=" ".join)
def test_what_can_work_without_anything_heavy_does(words: list[str]) -> None:
    assert loaded_in_turn(*map(to_run, LIGHT))[to_run(words)].isdisjoint(HEAVY)


def test_looking_for_the_box_of_a_directory_takes_next_to_nothing() -> None:
    """Every command without a URL runs this search."""
    before = loaded_by("import click, json, pathlib")
    after = loaded_by(
        "from pathlib import Path; from pulsarbox.cli.process.lock_holder import find; assert not find(Path('/nix'))"
    )
    more = {name for name in after - before if name.partition(".")[0] not in ("pulsarbox", "zlib")}
    assert more <= {"fcntl", "_struct", "struct", "contextlib"}, more


def test_asking_a_box_how_it_is_takes_nothing_heavy() -> None:
    asked = "from pulsarbox.cli.process.status import health; assert health('127.0.0.1', 1).startswith('no response')"
    assert loaded_by(asked).isdisjoint(HEAVY)


MESSAGES = [["produce", "t", "x"], ["consume", "t"], ["peek", "t"], ["tap", "t"]]


@pytest.mark.parametrize("words", short(MESSAGES, 2), ids=" ".join)
def test_sending_and_reading_takes_nothing_heavy_but_protobuf(words: list[str]) -> None:
    """Run up to a connection attempt without a listener. Each of these commands must start to work within 0.15 s."""
    run = f"from pulsarbox.cli.main import main\ntry: main({[*words, '--url', 'pulsar://127.0.0.1:1']!r})\n"
    loaded = loaded_by(f"{run}except SystemExit as ended: assert ended.code == 6")
    assert "google.protobuf" in loaded
    assert loaded.isdisjoint(UNUSED_BY_MESSAGES | {"pulsarbox.storage"})


UNUSED_BY_MESSAGES = (HEAVY - {"google"}) | {"difflib", "pulsarbox.config", "random", "subprocess", "tomllib", "zlib"}


@pytest.mark.parametrize("words", short(MESSAGES, 2), ids=" ".join)
def test_finding_the_box_that_they_talk_to_reads_no_configuration_where_none_is(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    held = hold(tmp_path / "data")
    loaded = loaded_by(
        f"from pulsarbox.cli.main import main\ntry: main({words!r})\nexcept SystemExit as ended: assert ended.code == 6"
    )
    held.close()
    assert "google.protobuf" in loaded  # proves that the command reached the connection attempt
    assert loaded.isdisjoint(UNUSED_BY_MESSAGES)


def hold(directory: Path) -> IO[str]:
    """The data directory of a running box, at a port without a listener."""
    directory.mkdir()
    lock = (directory / LOCK).open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    lock.write(str(os.getpid()))
    lock.flush()
    url, web_url = "pulsar://127.0.0.1:1", "http://127.0.0.1:2"
    runtime_file.write(directory, RuntimeFile(os.getpid(), 1, "1", url, web_url, "127.0.0.1", 1, 2, str(directory)))
    return lock


def test_listing_the_commands_loads_none_of_them() -> None:
    statement = (
        "from click.testing import CliRunner; from pulsarbox.cli.main import main\n"
        "assert 'start' in CliRunner().invoke(main, ['--help']).output\n"
        "assert 'pulsarbox.cli.process.start' not in sys.modules"
    )
    assert "click" in loaded_by(statement)


AUTHENTICATION = {"bcrypt", "cryptography", "jwt", "passlib"}
GUARDED = """
from pulsarbox.server.security.configured import authentication_of
from pulsarbox.config import Settings
import pulsarbox.server.daemon
import pulsarbox.server.serving
"""


@pytest.mark.parametrize(
    ("settings", "loaded"),
    short(
        [
            ("authenticationEnabled=True, authenticationProviders='tls'", set()),
            ("authenticationEnabled=True, authenticationProviders='token', tokenSecretKey='eA==' * 11", {"jwt"}),
            ("", set()),
            ("tokenSecretKey='x', authenticationProviders='token'", set()),
            ("authenticationEnabled=True, authenticationProviders='basic', basicAuthConf='eA=='", {"passlib"}),
        ],
        2,
    ),
)
def test_the_daemon_loads_what_checks_proofs_only_where_it_is_wanted(settings: str, loaded: set[str]) -> None:
    made = f"try: authentication_of(Settings({settings}))\nexcept Exception: pass"
    found = loaded_by(GUARDED + made) & AUTHENTICATION
    # cryptography imports bcrypt if it is installed.
    assert found & {"jwt", "passlib"} == loaded if loaded else not found


def test_the_settings_load_without_any_library() -> None:
    assert loaded_by("import pulsarbox.config").isdisjoint({"aiohttp", "asyncio", "click", "google", "lmdb"})


def ours(statement: str) -> set[str]:
    return {name for name in loaded_by(statement) if name.partition(".")[0] == "pulsarbox"}


def test_the_package_and_its_pytest_plugin_load_nothing_of_it() -> None:
    assert ours("import pulsarbox") == {"pulsarbox"}
    plugin = {"pulsarbox", "pulsarbox.embed", "pulsarbox.embed.pytest_plugin"}
    assert ours("import pulsarbox.embed.pytest_plugin") == plugin


def test_what_the_package_names_is_there() -> None:
    import pulsarbox

    assert [name for name in pulsarbox.__all__ if not hasattr(pulsarbox, name)] == []
    with pytest.raises(AttributeError, match="no attribute 'PulsarBocks'"):
        _ = pulsarbox.PulsarBocks


ADMIN = [["topic", "list"], ["topic", "stats", "t"], ["sub", "list", "t"], ["ns", "list"], ["tenant", "list"]]


@pytest.mark.parametrize("words", short(ADMIN, 2), ids=" ".join)
def test_asking_the_admin_api_takes_an_http_client_and_nothing_else_that_is_heavy(words: list[str]) -> None:
    run = f"from pulsarbox.cli.main import main\ntry: main({[*words, '--admin-url', 'http://127.0.0.1:1']!r})\n"
    loaded = loaded_by(f"{run}except SystemExit as ended: assert ended.code == 6")
    assert "http.client" in loaded
    assert loaded.isdisjoint((HEAVY - {"email", "http", "ssl"}) | {"pulsarbox.config.settings", "yaml"})


def test_a_command_of_pulsar_admin_reads_the_table_of_its_group_only() -> None:
    statement = (
        "from click.testing import CliRunner; from pulsarbox.cli.main import main\n"
        "from pulsarbox.cli.pulsar_admin import table\n"
        "asked = []; read = table.headings.__wrapped__\n"
        "table.headings = lambda group: (asked.append(group), read(group))[1]\n"
        "assert 'precise' in CliRunner().invoke(main, ['admin', 'topics', 'stats', '--help']).output\n"
        "assert set(asked) == {'topics'}, asked"
    )
    assert loaded_by(statement).isdisjoint(HEAVY)


def test_the_dashboard_loads_no_more_than_its_first_screen_needs() -> None:
    first = ("pulsarbox.cli.process.top", *(f"pulsarbox.tui.screens.{name}" for name in ("overview", "subscriptions")))
    later = {"csv", "pulsarbox.expressions", "pulsarbox.tui.actions.dialogs", "pulsarbox.tui.screens.messages.browser"}
    loaded = loaded_by(f"import pulsarbox.tui.app, {', '.join(first)}")
    assert "textual" in loaded
    assert loaded.isdisjoint(later)

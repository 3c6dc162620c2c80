"""Completion of values: every parameter completes its values, or has a reason not to."""

from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from pulsarbox.cli.connect import context_store
from pulsarbox.cli.main import main
from pulsarbox.cli.process.value_completions import (
    _OF_ALL,
    _OF_COMMANDS,
    completer_of,
    fields_of,
    filter_words,
    has_completion,
    key_of,
)

NUMBER = "a number has no candidates"
NEW = "the name of a new object"
FREE = "free text"
COLUMN = "a column of a file that is not open"
PATTERN = "a pattern of names"
SECRET = "a secret"
WITHOUT_COMPLETION = {
    "--accept-loss-of": "a lost directory, which cannot be listed before the start",
    "--admin-role": "roles exist only in tokens",
    "--audience": FREE,
    "--bundles": NUMBER,
    "--catalog": "Spark has the catalogs",
    "--client": PATTERN,
    "--columns": COLUMN,
    "--conf": "Spark has the settings",
    "--consumer": PATTERN,
    "--count": NUMBER,
    "--edit": "a program",
    "--entry": NUMBER,
    "--event-time": COLUMN,
    "--exec": "a program",
    "--first": NUMBER,
    "--job": NEW,
    "--keep": NEW,
    "--key": "the key of a message, or a secret",
    "--keys": NUMBER,
    "--label": FREE,
    "--ledger": NUMBER,
    "--limit": NUMBER,
    "--max-entries": NUMBER,
    "--max-returned": NUMBER,
    "--message": "a message type inside a file that is not open",
    "--name": NEW,
    "--nth": NUMBER,
    "--option": "Spark has the options",
    "--order-by": COLUMN,
    "--ordering-key": COLUMN,
    "--partitions": NUMBER,
    "--pattern": PATTERN,
    "--payload": FREE,
    "--pending-chunks": NUMBER,
    "--pid": NUMBER,
    "--port": NUMBER,
    "--producer": PATTERN,
    "--property": FREE,
    "--report-to": "internal",
    "--restarts": NUMBER,
    "--route-option": "the plugin has the options",
    "--schema": COLUMN,
    "--seed": NUMBER,
    "--serve-port": NUMBER,
    "--set": FREE,
    "--tls-port": NUMBER,
    "--top": NUMBER,
    "--topic-column": COLUMN,
    "--topics": NUMBER,
    "--unset": FREE,
    "--value": COLUMN,
    "--volume": "names of files inside a directory that may be damaged",
    "--web-port": NUMBER,
    "--web-tls-port": NUMBER,
    "COUNT": NUMBER,
    "N": NUMBER,
    "PAYLOAD": FREE,
    "ROLE": "roles exist only in tokens",
    "TOKEN": SECRET,
    "context add NAME": NEW,
    "ns create NAMESPACE": NEW,
    "plugins new NAME": NEW,
    "tenant create TENANT": NEW,
    "topic create TOPIC": NEW,
    "export ": "refused, with a pointer to the command for messages",
}
"""Reasons of parameters, by name or with their command."""


def parameters(group: click.Group = main, path: str = "") -> Iterator[tuple[str, click.Parameter]]:
    """Yield every parameter, with the words of its command. pulsar-admin has its own tables and test."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        words = f"{path} {name}".strip()
        if isinstance(command, click.Group) and name != "admin":
            yield from parameters(command, words)
        if name != "admin":
            yield from ((words, each) for each in command.params)


ALL = list(parameters())


def reason_of(words: str, parameter: click.Parameter) -> str | None:
    key = key_of(parameter)
    return WITHOUT_COMPLETION.get(f"{words} {key}") or WITHOUT_COMPLETION.get(key)


def test_every_value_completes_or_has_a_reason_not_to() -> None:
    silent = [
        f"{words} {key_of(each)}"
        for words, each in ALL
        if not has_completion(each) and completer_of(words, each) is None and reason_of(words, each) is None
    ]
    assert silent == [], "add a completer to value_completions, or a reason here"


def test_every_completer_is_in_use() -> None:
    free = [(words, key_of(parameter)) for words, parameter in parameters() if not _completes_by_itself(parameter)]
    single = {f"{words} {key}" for words, key in free}
    assert set(_OF_COMMANDS) <= single
    assert set(_OF_ALL) <= {key for words, key in free if f"{words} {key}" not in _OF_COMMANDS}
    assert [name for name in _OF_COMMANDS if _OF_COMMANDS[name] is _OF_ALL.get(name.rpartition(" ")[2])] == []


def _completes_by_itself(parameter: click.Parameter) -> bool:
    """Return whether the type of a parameter completes its values."""
    bare = copy(parameter)
    bare._custom_shell_complete = None
    return has_completion(bare)


def test_every_reason_is_in_use() -> None:
    used = {
        name
        for words, each in ALL
        if not has_completion(each) and completer_of(words, each) is None
        for name in (f"{words} {key_of(each)}", key_of(each))
    }
    assert set(WITHOUT_COMPLETION) - used == set()


def offered(line: str) -> list[str]:
    *words, incomplete = line.split(" ")
    found = ShellComplete(main, {}, "pulsarbox", "_PULSARBOX_COMPLETE").get_completions(words, incomplete)
    return [each.value for each in found]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("sub seek orders billing @-1", ["@-10m", "@-1h", "@-1d"]),
        ("consume orders --filter publish", ["publish_time"]),
        ("topic list --filter rate_", ["rate_in", "rate_out"]),
        ("client kick --filter kin", ["kind"]),
        ("top subscriptions --sort back", ["backlog"]),
        ("top --filter backl", ["backlog"]),
        ("fault add error --command lo", ["lookup"]),
        ("topic list -o n", ["ndjson", "name"]),
        ("start --data-dir da", ["da"]),
        ("ns policy a/b retention unl", ["unlimited"]),
        ("token create me --algorithm ES2", ["ES256"]),
    ],
)
def test_values_that_need_no_box(line: str, found: list[str]) -> None:
    assert offered(line) == found


def test_contexts_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    context_store.save({"current": None, "contexts": {"staging": {}, "production": {}}})
    assert offered("context use pro") == ["production"]
    (tmp_path / "pulsarbox" / "contexts.json").write_text("{")
    assert offered("context use pro") == []


def test_pipelines_and_their_queries_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for query in ("totals", "joined"):
        place = tmp_path / "pulsarbox" / "pipelines" / "shop" / query
        place.mkdir(parents=True)
        (place / "lock").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert offered("pipeline reset sh") == ["shop"]
    assert offered("pipeline reset shop to") == ["totals"]


@pytest.mark.parametrize(
    ("incomplete", "found"),
    [
        ("", ["key", "size", "len("]),
        ("k", ["key"]),
        ("key =", ["key =="]),
        ("key == 'a' an", ["key == 'a' and"]),
        ("key == 'a' and si", ["key == 'a' and size"]),
        ("not ke", ["not key"]),
        ("len(k", ["len(key"]),
    ],
)
def test_filters_continue(incomplete: str, found: list[str]) -> None:
    assert filter_words(incomplete, ("key", "size"), ("len(",)) == found


def test_fields_are_those_of_the_help() -> None:
    command = click.Command("c", help="Rows.\n\nFields: name, age (seconds, by the box), rate_in and\nrate_out. More.")
    assert fields_of(command) == ["name", "age", "rate_in", "rate_out"]
    assert fields_of(click.Command("c")) == []


def test_lists_with_a_filter_name_their_fields() -> None:
    lists = [words for words, each in ALL if words.endswith(" list") and is_row_filter(words, each)]
    assert len(lists) > 8
    without = [words for words in lists if not _fields(words)]
    assert without == [], "the help needs `Fields: a, b.`"


def is_row_filter(words: str, parameter: click.Parameter) -> bool:
    found: Any = completer_of(words, parameter)
    return key_of(parameter) == "--filter" and found is not None and found.__name__ == "_of_rows"


def _fields(words: str) -> list[str]:
    command: Any = main
    for word in words.split():
        command = command.get_command(click.Context(command), word)
    return fields_of(command)

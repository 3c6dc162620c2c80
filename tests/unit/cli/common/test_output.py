"""Output of reading commands in each format."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.common.output import FORMS, OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.common.terminal_text import OUTPUT
from pulsarbox.cli.common.yaml_text import to_yaml
from pulsarbox.cli.main import main

ROWS: list[dict[str, Any]] = [
    {"name": "orders", "partitions": 4, "rate": 1234.56, "more": {"a": [1, "x"]}, "tags": []},
    {"name": "pay\x1b[31m", "partitions": 12000, "rate": 0.0, "more": {"a": []}, "tags": ["a", "b"]},
]


def printed(*words: str, found: TableOutput | None = None) -> Any:
    @click.command()
    @output_options
    def command(output: OutputOptions) -> None:
        show(output, lambda: found or TableOutput(ROWS, ["name", "partitions", "rate", "tags"]))

    return CliRunner().invoke(command, words)


def test_columns() -> None:
    assert printed().stdout.splitlines() == [
        "NAME         PARTITIONS     RATE  TAGS",
        "orders                4  1,234.6  -",
        "pay\\x1b[31m      12,000      0.0  a, b",
    ]


def test_data() -> None:
    assert json.loads(printed("-o", "json").stdout) == ROWS
    assert [json.loads(line) for line in printed("-o", "ndjson").stdout.splitlines()] == ROWS
    assert yaml.safe_load(printed("-o", "yaml").stdout) == ROWS
    assert printed("-o", "name").stdout == "orders\npay\\x1b[31m\n"


def test_a_field_that_another_option_adds_is_told_with_it() -> None:
    found = TableOutput(ROWS, ["name"], elsewhere={"backlog": "--stats"})
    assert "field 'backlog' requires --stats" in printed("--filter", "backlog > 0", found=found).stderr
    assert "unknown field 'backlo'" in printed("--filter", "backlo > 0", found=found).stderr


def test_csv_has_all_fields() -> None:
    assert list(csv.reader(io.StringIO(printed("-o", "csv").stdout))) == [
        ["name", "partitions", "rate", "more", "tags"],
        ["orders", "4", "1234.56", '{"a": [1, "x"]}', "[]"],
        ["pay\\x1b[31m", "12000", "0.0", '{"a": []}', '["a", "b"]'],
    ]
    assert printed("-o", "csv", found=TableOutput([], ["name"])).stdout == "name\n"
    assert printed("-o", "csv", found=TableOutput([], ["name"], fields=("name", "bytes"))).stdout == "name,bytes\n"
    assert printed("-o", "csv", found=TableOutput([{"a": 1}], fields=("a", "b"))).stdout == "a,b\n1,\n"
    assert printed("-o", "csv", found=TableOutput([{"a": None}, {"b": "x,y"}])).stdout == 'a,b\n,\n,"x,y"\n'


def test_a_table_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsarbox.cli.common.output.terminal_width", lambda: 28)
    done = printed()
    assert done.stdout.splitlines()[0] == "NAME         PARTITIONS"
    assert done.stderr == "pulsarbox: RATE, TAGS did not fit: -o wide shows all columns\n"
    assert printed("-o", "wide").stdout.splitlines()[0] == "NAME         PARTITIONS     RATE  TAGS"


def test_the_least_important_columns_are_hidden_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsarbox.cli.common.output.terminal_width", lambda: 28)
    found = TableOutput(
        ROWS, ["name", "partitions", "rate", "tags"], least=("partitions",), titles={"rate": "A SECOND"}
    )
    done = printed(found=found)
    assert done.stdout.splitlines()[0] == "NAME         A SECOND  TAGS"
    assert done.stderr == "pulsarbox: PARTITIONS did not fit: -o wide shows all columns\n"


def test_wide_has_further_columns() -> None:
    found = TableOutput(ROWS, ["name"], wide=("rate",))
    assert printed(found=found).stdout.splitlines()[0] == "NAME"
    assert printed("-o", "wide", found=found).stdout.splitlines()[0] == "NAME            RATE"


def test_a_terminal_is_told_why_a_table_has_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsarbox.cli.common.output.terminal_width", lambda: 8)
    none = TableOutput([], ["name", "partitions"], empty="no topics; create one: pulsarbox topic create orders")
    assert printed(found=none).stderr == ""
    monkeypatch.setattr("pulsarbox.cli.common.output._is_terminal", lambda: True)
    done = printed(found=none)
    assert done.stdout == "NAME\n"
    assert done.stderr == "pulsarbox: no topics; create one: pulsarbox topic create orders\n"
    assert printed(found=TableOutput([], ["name"])).stderr == "pulsarbox: no rows\n"
    assert printed("--filter", "partitions > 20000").stderr == "pulsarbox: no row matches --filter\n"
    assert printed("--filter", "name == 'a'", found=none._replace(fields=("name",))).stderr.startswith(
        "pulsarbox: no topics"
    )
    assert printed("-o", "json", found=none).stderr == ""


def test_watching_notes_hidden_columns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rests = iter([None, None, None])

    def rest(seconds: float) -> None:
        if next(rests, 0) == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr("pulsarbox.cli.common.terminal.rest", rest)
    monkeypatch.setattr("pulsarbox.cli.common.output.terminal_width", lambda: 28)
    noted: list[str] = []
    monkeypatch.setattr("pulsarbox.cli.common.output.notify", noted.append)
    monkeypatch.setattr("pulsarbox.cli.common.output._is_terminal", lambda: True)
    printed("--watch")
    assert noted == ["RATE, TAGS did not fit: -o wide shows all columns", "stopped watching"]


def test_one_document() -> None:
    one = TableOutput(ROWS[:1], lines=["a line"])
    assert printed(found=one).stdout == "a line\n"
    assert json.loads(printed("-o", "json", found=one).stdout) == ROWS[0]
    assert printed("-o", "json", "--filter", "partitions > 4", found=one).stdout == "null\n"
    assert printed("--filter", "partitions > 4", found=one).stdout == ""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("partitions > 4", ["pay\\x1b[31m"]),
        ('name == "orders" and rate >= 1', ["orders"]),
        ('startswith(name, "pay") or partitions == 4', ["orders", "pay\\x1b[31m"]),
        ('"x" in more.a', ["orders"]),
        ('"b" in tags', ["pay\\x1b[31m"]),
        ("not partitions", []),
    ],
)
def test_filters(text: str, names: list[str]) -> None:
    assert printed("-o", "name", "--filter", text).stdout.splitlines() == names


def test_filters_know_documented_fields() -> None:
    found = TableOutput([{"name": "a"}, {"name": "b", "held": 3}], ["name"], fields=("name", "held", "why"))
    assert printed("-o", "name", "--filter", "held > 0", found=found).stdout == "b\n"
    assert printed("-o", "name", "--filter", "why is None", found=found).stdout == "a\nb\n"
    assert printed("--filter", "what == 1", found=found).exit_code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("partition > 4", "unknown field 'partition'; did you mean partitions?"),
        ("zzz > 4", "unknown field 'zzz'; expected one of name, partitions, rate, more, tags"),
        ("4 >", "invalid expression"),
        ("__import__('os')", "unknown function '__import__'"),
    ],
)
def test_filters_that_cannot_be(text: str, said: str) -> None:
    done = printed("--filter", text)
    assert (done.exit_code, said in done.stderr) == (2, True)


def test_watching_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("pulsarbox.cli.common.terminal.rest", sleep)
    done = printed("--watch", "5")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == [row["name"] for row in ROWS] * 2
    assert all(isinstance(line["time"], int) for line in lines)
    assert (slept, done.stderr) == ([5.0, 5.0], "pulsarbox: stopped watching\n")
    slept.clear()
    done = printed("--watch", "-o", "json")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [ROWS, ROWS]


TEXTS = st.text() | st.sampled_from(
    ["", "null", "Yes", "no", "off", "1", "-1", "1e3", "0x10", "1:30", "12:34:56", "2026-11-21", "a: b", "a #b", "- a",
     "~", "=", "<<", "a/b", "é", "\u2028", "\x85", "\ufeff", "😀", "\ud800", "{}", "[", "!x", "&a", "*a", "%a", "@a",
     "a\nb", " a", "a ", "y", "None", ".inf", "_", "'", '"']
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def readable(value: Any) -> Any:
    """Remove surrogates: PyYAML decodes an escaped pair to an empty string and preserves single ones."""
    if isinstance(value, str):
        return "".join(one for one in value if not "\ud800" <= one <= "\udfff")
    if isinstance(value, list):
        return [readable(each) for each in value]
    if isinstance(value, dict):
        return {readable(name): readable(each) for name, each in value.items()}
    return value


@given(VALUES)
def test_yaml_reads_back_as_what_it_was(value: Any) -> None:
    given_value = readable(value)
    assert yaml.safe_load(to_yaml(given_value)) == given_value


DOCUMENT = ("table", "json", "yaml")
"""Formats of a single document."""
MESSAGES = ("lines", "raw", "hex", "ndjson", "table")
OTHERS = {
    "consume": MESSAGES, "peek": MESSAGES, "tap": MESSAGES, "dlq show": MESSAGES,
    "sql": ("table", "wide", "json", "ndjson", "yaml", "csv", "parquet", "arrow"),
    "top": ("table", "json", "svg"),
}  # fmt: skip
"""Commands with formats of their own: messages, files, screens, and reports of several tables."""
DOCUMENTS = {
    "backup create", "backup remove", "backup verify", "clock advance", "clock set", "clock show", "plugins test",
    "restore", "status", "storage check", "storage stat", "token create", "token show", "token validate", "version",
}  # fmt: skip


def outputs(group: click.Group = main, path: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each command with its formats, () without -o. pulsar-admin has its own output."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        words = f"{path} {name}".strip()
        if isinstance(command, click.Group) and name != "admin":
            yield from outputs(command, words)
        elif command is not None and name != "admin":
            yield words, forms_of(command)


def forms_of(command: click.Command) -> tuple[str, ...]:
    for parameter in command.params:
        if "--output" in parameter.opts and isinstance(parameter.type, click.Choice):
            return tuple(parameter.type.choices)
    return ()


ALL = dict(outputs())


def test_commands_that_print_rows_have_every_format() -> None:
    known = {name: OTHERS.get(name, DOCUMENT if name in DOCUMENTS else FORMS) for name, forms in ALL.items() if forms}
    assert {name: forms for name, forms in ALL.items() if forms} == known


def test_lists_have_formats() -> None:
    lists = [name for name in ALL if name.split()[-1] in ("list", "groups", "holes", "members", "under-replicated")]
    assert len(lists) > 15
    assert [name for name in lists if ALL[name] != FORMS] == []


def test_text_is_a_former_word_for_table() -> None:
    @click.command()
    @OUTPUT
    def command(output: str) -> None:
        click.echo(output)

    assert CliRunner().invoke(command, ["-o", "text"]).output == "table\n"
    assert CliRunner().invoke(command, ["-o", "csv"]).exit_code == 2


def test_the_exceptions_exist() -> None:
    assert (DOCUMENTS | set(OTHERS)) - set(ALL) == set()

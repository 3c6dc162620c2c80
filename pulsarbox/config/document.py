"""Generators of pulsarbox.toml and docs/configuration.md from the settings table."""

import json
import textwrap
from collections.abc import Iterator

from pulsarbox.config.load import OTHER_VARIABLES
from pulsarbox.config.setting import Setting, Value
from pulsarbox.config.settings import settings_table
from pulsarbox.config.tables import TABLES

_TOML_HEAD = """\
# pulsarbox.toml: every setting with its default.
#
# Generated from the settings table (`make generate`); a copy with changed values is a configuration file:
# `pulsarbox start --config FILE`. Without --config, ./pulsarbox.toml is read if there is one. Settings that are left
# out keep their defaults. A key stands in its table; unknown keys are refused. See docs/configuration.md.
"""

_MARKDOWN_HEAD = """\
# Configuration

This page is generated from the settings table (`make generate`).

## Where a value comes from

The later of these wins:

1. the default;
2. the configuration file: `pulsarbox start --config FILE`, or `./pulsarbox.toml` if there is one;
3. an environment variable `PULSARBOX_<setting>`, for example `PULSARBOX_maxMessageSize=1048576`. The container image
   also takes `<setting>` and `PULSAR_PREFIX_<setting>`: [operations.md](operations.md#in-a-container);
4. an option of `pulsarbox start`.

`pulsarbox config show --origin` shows what came out and where each value is from. `pulsarbox config init` writes a file
with every setting and its default, `pulsarbox config check FILE` lists all that is wrong with one, with its lines.

A TOML file groups the settings by tables, as the headings below do; a key in another table, an unknown key and a value
that the setting does not take are refused with file and line (exit code 2).

A Pulsar `broker.conf` or `standalone.conf` works as a configuration file as it is: a file whose name ends in `.conf` or
`.properties` is read as one. The settings below apply under the same names. Every other key is named in a warning and
has no effect; a key without a value keeps the default.

Settings marked *dynamic* are those for which a running broker can take a new value, as in Pulsar. The rest are read at
the start. "Own setting" marks those that Pulsar does not have.
"""


def as_toml() -> str:
    """Return the text of pulsarbox.toml."""
    return _TOML_HEAD + "".join(_toml_table(table) for table in TABLES)


def as_markdown() -> str:
    """Return the text of docs/configuration.md."""
    return _MARKDOWN_HEAD + "".join(_markdown_table(table) for table in TABLES) + "".join(_other_variables())


def _rows(table: str) -> Iterator[Setting]:
    return (row for row in settings_table() if row.table == table)


def _toml_table(table: str) -> str:
    return f"\n\n# {TABLES[table]}.\n[{table}]\n" + "".join(_toml_setting(row) for row in _rows(table))


def _toml_setting(row: Setting) -> str:
    comment = [
        line
        for text in (row.meaning, _facts_in_words(row))
        for line in textwrap.wrap(text, 118, break_on_hyphens=False)
    ]
    return "".join(f"\n# {line}" for line in comment) + f"\n{row.name} = {toml_value(row.shown(row.default))}\n"


def _facts_in_words(row: Setting) -> str:
    facts = (row.unit, row.expected(), "dynamic" if row.dynamic else "")
    return f"({'; '.join(fact for fact in facts if fact)})"


def toml_value(value: Value) -> str:
    """Return a value in TOML syntax."""
    if isinstance(value, bool):
        return str(value).lower()
    # JSON's escapes are valid in TOML's basic strings.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _markdown_table(table: str) -> str:
    head = f"\n## `[{table}]`\n\n{TABLES[table]}.\n\n| Setting | Default | Unit | Takes | Dynamic | Meaning |\n"
    return head + "|---|---|---|---|---|---|\n" + "".join(_markdown_row(row) for row in _rows(table))


def _markdown_row(row: Setting) -> str:
    default = f"`{toml_value(row.shown(row.default))}`"
    cells = (f"`{row.name}`", default, row.unit, row.expected(), "yes" if row.dynamic else "", row.meaning)
    return f"| {' | '.join(cells)} |\n"


def _other_variables() -> Iterator[str]:
    yield "\n## Other environment variables\n\n| Variable | Meaning |\n|---|---|\n"
    for name, meaning in OTHER_VARIABLES.items():
        yield f"| `{name}` | {meaning} |\n"

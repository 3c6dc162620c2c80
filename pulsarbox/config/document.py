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
# out keep their defaults. Each key belongs in its table; unknown keys are errors. See docs/configuration.md.
"""

_MARKDOWN_HEAD = """\
# Configuration

All settings with their defaults. This page is generated from the settings table (`make generate`).

## Sources and precedence

Each source overrides the ones before it:

1. the default;
2. the configuration file: `pulsarbox start --config FILE`, or `./pulsarbox.toml` if there is one;
3. an environment variable `PULSARBOX_<setting>`, for example `PULSARBOX_maxMessageSize=1048576`. The container image
   also accepts `<setting>` and `PULSAR_PREFIX_<setting>`: see [operations.md](operations.md#in-a-container);
4. an option of `pulsarbox start`.

`pulsarbox config show --origin` shows the resulting values and the source of each. `pulsarbox config init` writes a
file with every setting and its default. `pulsarbox config check FILE` lists all errors of a file with their lines.

A time or a size may have a unit: `defaultRetentionTimeInMinutes = "7d"`, `maxMessageSize = "10MB"`, in powers of 1024
as in Pulsar. It must be a whole number of the unit of the setting, which is that of a number without a unit. A limit a
second may be a rate: `maxPublishRatePerTopicInMessages = "100/s"`, `maxPublishRatePerTopicInBytes = "5 MB/s"`. `"off"`
and `"unlimited"` stand for the number that means no limit, `"on"` and `"off"` for true and false. The same forms are
accepted in environment variables and by `pulsarbox admin brokers update-dynamic-config -c NAME -v VALUE`.

A TOML file groups the settings into tables, one for each heading below. A key in the wrong table, an unknown key or an
invalid value is an error, which is reported with file and line (exit code 2).

A Pulsar `broker.conf` or `standalone.conf` works unchanged: a file whose name ends in `.conf` or `.properties` is read
in Pulsar's format. The settings below apply under the same names. Any other key has no effect and is reported in a
warning; a key without a value keeps the default.

*Dynamic* settings can be changed while the broker runs, as in Pulsar. All others are read at the start. "Own setting"
marks settings that Pulsar does not have.
"""

_FOREIGN_VARIABLES = """
Any other variable with the prefix `PULSARBOX_` is an error, because a misspelled one would lose a setting. Only the
variables that Kubernetes sets for a Service named `pulsarbox` or `pulsarbox-...` have no effect, such as
`PULSARBOX_SERVICE_HOST`, `PULSARBOX_PORT` and `PULSARBOX_PORT_6650_TCP_ADDR`. Commands that are given a broker by
`--url`, `--admin-url` or a context do not read the configuration.
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
    return "".join(f"\n# {line}" for line in comment) + f"\n{row.name} = {_default(row)}\n"


def _default(row: Setting) -> str:
    """Return the default as written to a file, in TOML syntax."""
    return toml_value(row.written(row.shown(row.default)))


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
    head = f"\n## `[{table}]`\n\n{TABLES[table]}.\n\n| Setting | Default | Unit | Values | Dynamic | Description |\n"
    return head + "|---|---|---|---|---|---|\n" + "".join(_markdown_row(row) for row in _rows(table))


def _markdown_row(row: Setting) -> str:
    cells = (f"`{row.name}`", f"`{_default(row)}`", row.unit, row.expected(), "yes" if row.dynamic else "", row.meaning)
    return f"| {' | '.join(cells)} |\n"


def _other_variables() -> Iterator[str]:
    yield "\n## Other environment variables\n\n| Variable | Description |\n|---|---|\n"
    for name, meaning in OTHER_VARIABLES.items():
        yield f"| `{name}` | {meaning} |\n"
    yield _FOREIGN_VARIABLES

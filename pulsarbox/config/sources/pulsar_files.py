"""Pulsar's configuration files in the container image: every setting as ``key=value`` with its default.

Scripts edit these files by key (``sed -i s/authenticationEnabled=false/.../ conf/broker.conf``), so each key has a line
that is not commented out.
"""

import textwrap
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from pulsarbox.config.setting import Setting, Value
from pulsarbox.config.settings import settings_table
from pulsarbox.config.sources import properties_file
from pulsarbox.config.tables import TABLES

IN_A_CONTAINER: Final[Mapping[str, Value]] = MappingProxyType(
    {"bindAddress": "0.0.0.0", "clusterName": "standalone", "dataDirectory": "/pulsar/data"}
)
"""Defaults that differ in the image: it listens on all addresses, because a container isolates its ports."""

_HEAD: Final = """\
# {name}: every setting with its default in the container image. Generated from the settings table (`make generate`).
#
# Environment variables take precedence over this file: PULSARBOX_<setting>, PULSAR_PREFIX_<setting> or <setting>.
# {more}
"""
_MORE: Final = MappingProxyType(
    {
        "standalone.conf": "`bin/pulsar standalone` reads this file, and settings that were changed in broker.conf.",
        "broker.conf": "`bin/pulsar standalone` uses settings that were changed here and not in standalone.conf.",
    }
)


def text_of(name: str) -> str:
    """Return the text of the image's ``standalone.conf`` or ``broker.conf``."""
    return _HEAD.format(name=name, more=_MORE[name]) + "".join(_lines())


def changed(name: str, text: str) -> dict[str, str]:
    """Return the keys of a file whose values differ from the image's defaults, with their values.

    Unknown keys are included; loading the configuration warns about them.
    """
    shipped = dict(properties_file.pairs(text_of(name)))
    return {key: value for key, value in properties_file.pairs(text) if shipped.get(key) != value}


def _lines() -> Iterator[str]:
    for table, title in TABLES.items():
        yield f"\n\n# ---- {title}\n"
        for row in settings_table():
            if row.table == table:
                yield from (f"\n# {line}" for line in textwrap.wrap(row.meaning, 116, break_on_hyphens=False))
                yield f"\n{row.name}={_written(row)}\n"


def _written(row: Setting) -> str:
    value = row.written(IN_A_CONTAINER.get(row.name, row.default))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("\\", "\\\\")

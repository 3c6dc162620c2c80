"""Options of tables: ``CREATE TABLE orders USING pulsarbox OPTIONS (topic 'orders')``. Does not import pyspark.

Spark's catalog stores the columns of a table of a Python data source, with their metadata, and not its options. So the
first column carries the options as metadata. Spark passes it back with the schema of a SELECT and an INSERT.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pulsarbox.spark.options import SECRETS, WRITE, OptionError, of_use

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

METADATA: Final = "pulsarbox.options"
_TOPICS: Final = frozenset({"topic", "topics", "topicspattern"})
_PROVIDER: Final = "provider"
_OPTION: Final = "option."
"""Prefix of the options among the properties that Spark passes when it creates a table."""


def of_creation(given: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of a CREATE TABLE; None if ``given`` are those of a read or write. Raises OptionError for
    secrets, which every user of the catalog could see."""
    names = {name.lower(): value for name, value in given.items()}
    if _PROVIDER not in names:
        return None
    found = {name.removeprefix(_OPTION): value for name, value in names.items() if name.startswith(_OPTION)}
    for name in SECRETS & set(found):
        raise OptionError(f"option {name} would be visible in the catalog: use tokenFile, or SELECT ... WITH (...)")
    return found


def keep(schema: "StructType", options: Mapping[str, str]) -> "StructType":
    """Store options in the metadata of a schema; return the schema."""
    first = schema.fields[0]
    first.metadata = {**(first.metadata or {}), METADATA: json.dumps(dict(options), sort_keys=True)}
    return schema


def with_stored(given: Mapping[str, str], schema: "StructType", use: str) -> dict[str, str]:
    """Return the options of a read or write, with those stored in its schema if it belongs to a table.

    Spark passes no options for an INSERT, and those of WITH for a SELECT. Other options mean that the schema is only
    derived from that of a table.
    """
    names = {name.lower() for name in given}
    if (use == WRITE and names) or names & _TOPICS:
        return dict(given)
    stored = of_use(_stored(schema), use)
    return {name: value for name, value in stored.items() if name.lower() not in names} | dict(given)


def _stored(schema: "StructType") -> dict[str, str]:
    for field in schema.fields:
        text = (field.metadata or {}).get(METADATA)
        if text is not None:
            found: dict[str, str] = json.loads(text)
            return found
    return {}

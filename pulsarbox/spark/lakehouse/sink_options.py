"""Options of the format ``pulsarbox-iceberg``. Does not import pyspark or pyiceberg."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pulsarbox.config.setting import did_you_mean
from pulsarbox.spark.lakehouse.table_place import TableError, TablePlace, parse
from pulsarbox.spark.option_types import SIZE, TEXT, YES_OR_NO, OptionType

CATALOG: Final = "catalog."
"""Prefix of the properties of a catalog, as pyiceberg names them."""
FILE_BYTES: Final = 128 << 20


def _parts(text: str) -> tuple[str, ...]:
    """Split at the commas outside of parentheses."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return tuple(each.strip() for each in found if each.strip())


_TYPES: Final = {
    "table": TEXT,
    "catalog": TEXT,
    "partitionBy": OptionType("columns and transforms", _parts),
    "mergeSchema": YES_OR_NO,
    "jobId": TEXT,
    "fileBytes": SIZE,
}
_OF_SPARK: Final = "checkpointlocation"


class TableOptions(NamedTuple):
    """Description of a write to a table."""

    place: TablePlace
    catalog: str = ""
    """Name of a catalog in the configuration of pyiceberg; empty for none."""
    properties: tuple[tuple[str, str], ...] = ()
    """Properties of the catalog; may contain credentials, so never printed."""
    partition_by: tuple[str, ...] = ()
    """Partitioning of a table that is created: ``day(__publishTime)``, ``bucket(16, __key)``, ``region``."""
    merge_schema: bool = False
    """Whether columns that the table lacks are added to it."""
    job_id: str = ""
    """Name of a batch write, which is committed once; empty if every write is."""
    file_bytes: int = FILE_BYTES
    """Size of the rows of one file in Arrow's memory format; smaller on disk."""
    checkpoint: str = ""
    """Checkpoint location of a stream; empty if unknown."""

    def __repr__(self) -> str:
        return f"TableOptions({self.place})"


def parse_options(given: Mapping[str, str]) -> TableOptions:
    """Parse the options of a write; names are case-insensitive. Raises TableError."""
    known = {name.lower(): name for name in _TYPES}
    found: dict[str, Any] = {}
    properties: dict[str, str] = {}
    for name, value in given.items():
        low = name.lower()
        if low.startswith(CATALOG):
            properties[low.removeprefix(CATALOG)] = value
        elif low in known:
            found[known[low]] = _read(known[low], value)
        elif low != _OF_SPARK:
            raise TableError(f"unknown option {name}{did_you_mean(name, tuple(_TYPES))}")
    if "table" not in found:
        raise TableError("option table is missing: set table=lake/shop.orders, a directory and a table's name")
    place = parse(found["table"])
    if place.warehouse and (found.get("catalog") or properties):
        raise TableError(f"table {place}: a table with a directory has its catalog there; remove the catalog options")
    return TableOptions(
        place,
        found.get("catalog", ""),
        tuple(sorted(properties.items())),
        found.get("partitionBy", ()),
        found.get("mergeSchema", False),
        found.get("jobId", ""),
        found.get("fileBytes", FILE_BYTES),
        checkpoint_of(given),
    )


def checkpoint_of(given: Mapping[str, str]) -> str:
    """Return the checkpoint location of a stream; empty if absent."""
    return {name.lower(): value for name, value in given.items()}.get(_OF_SPARK, "")


def _read(name: str, text: str) -> Any:
    try:
        return _TYPES[name].read(text)
    except ValueError as error:
        raise TableError(f"option {name} is {text!r}: {error}") from None

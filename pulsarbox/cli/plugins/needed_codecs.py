"""Codecs required by a data directory, for ``pulsarbox plugins doctor``."""

from functools import partial
from pathlib import Path
from typing import Any

from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.plugins.compression.wire import CodecMissing
from pulsarbox.plugins.registry import get

_SHOWN_MAX = 5


def needed(data: Path, plugins: Path | None) -> list[dict[str, Any]]:
    """Return each codec of compressed entries in a data directory, and whether it is available.

    Raises PersistenceError if the directory cannot be opened.
    """
    from pulsarbox.storage.inspection.statistics import statistics

    codecs = RestCodecs(partial(get, directory=plugins))
    return [_told(codecs, each, data) for each in statistics(data, 0)["codecs"]]


def _told(codecs: RestCodecs, each: dict[str, Any], data: Path) -> dict[str, Any]:
    problems: list[str] = []
    try:
        codecs.tagged(each["tag"].encode("latin-1"), each["name"])
    except CodecMissing as error:
        topics: list[str] = each["topics"]
        more = f" and {len(topics) - _SHOWN_MAX} more" if len(topics) > _SHOWN_MAX else ""
        whose = f"{', '.join(topics[:_SHOWN_MAX])}{more}"
        problems = [f"{error}; a box does not start without it, because entries of {whose} are compressed with it"]
    source = f"needed by {data}"
    found = {"kind": "compression", "name": each["name"], "source": source, "usable": not problems}
    return found | {"problems": problems, "trace": ""}

"""Cells for people: sizes, times and short names."""

import re

from pulsarbox.cli.common.table_cells import local_time, readable


def test_values_of_the_other_formats_are_replaced() -> None:
    shown = readable(sizes=("size", "held"), times=("last", "first", "never"), topics=("topic", "topics"))
    row = {
        "size": 102_418, "held": None, "last": 1_795_885_897_137, "never": 0, "other": 1000,
        "topic": "persistent://public/default/orders", "topics": ["persistent://acme/prod/a"],
    }  # fmt: skip
    found = shown(row)
    assert found | {"last": ""} == {
        "size": "100 KiB", "held": None, "last": "", "first": None, "never": None, "other": 1000,
        "topic": "orders", "topics": ["acme/prod/a"],
    }  # fmt: skip
    assert re.fullmatch(r"2026-11-2\d \d\d:\d\d:37", found["last"])
    assert found["last"] == local_time(1_795_885_897_137)
    assert row["size"] == 102_418  # the other formats are unchanged

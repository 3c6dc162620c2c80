"""Pipeline on Spark: checks every reading, and rolls readings up by device in windows of a few seconds.

    pulsarbox pipeline run examples/demo/telemetry.py

Readings that fail the check go to a dead letter topic, as long as `checked` has its bug; MENDED=1 runs it without.
"""

import json
import os
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.pipelines import frame, function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TELEMETRY: Final = "persistent://public/default/telemetry"
CHECKED: Final = "persistent://public/default/telemetry-checked"
UNCHECKED: Final = "persistent://public/default/telemetry-checked-DLQ"
ROLLUP: Final = "persistent://public/default/telemetry-rollup"
POISON: Final = 100
"""Every reading with this interval triggers the bug."""


@function(
    inputs=TELEMETRY,
    output=CHECKED,
    dead_letter=UNCHECKED,
    retries=1,
    config={"mended": os.environ.get("MENDED") == "1"},
)
def checked(value: bytes, ctx: Any) -> Any:
    """Return the reading unchanged, keyed by its device."""
    reading = json.loads(value)
    if reading["n"] % POISON == POISON - 1 and not ctx.config["mended"]:
        raise ValueError("a reading that nobody can check")
    return ctx.message(value, key=reading["device"], event_time=ctx.event_time or ctx.publish_time)


@frame(inputs=CHECKED, output=ROLLUP, mode="update", sink={"valueFormat": "json"})
def rollup(df: "DataFrame") -> "DataFrame":
    """Aggregate each device in windows of five seconds; a changed window is emitted again, with the same key."""
    from pyspark.sql import functions as sql

    fields = "n bigint, device string, value double"
    readings = df.select(sql.from_json(df["value"].cast("string"), fields).alias("it"), "__eventTime")
    by = readings.withWatermark("__eventTime", "10 minutes").groupBy(
        "it.device", sql.window("__eventTime", "5 seconds").alias("window")
    )
    rows = by.agg(
        sql.count("*").alias("readings"),
        sql.sum("it.value").alias("total"),
        sql.min("it.value").alias("least"),
        sql.max("it.value").alias("most"),
    )
    start = sql.unix_millis(sql.col("window.start"))
    key = sql.concat_ws(" ", "device", start).alias("__key")
    return rows.select(key, "device", start.alias("start"), "readings", "total", "least", "most")

"""``pulsarbox pipeline export``: export topics to Parquet, JSON or CSV files."""

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from pulsarbox.cli.common.exits import Misused, NotThere
from pulsarbox.cli.common.progress import messages
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.pipeline.option_values import absolute, checked, pairs_of, topics_there
from pulsarbox.cli.pipeline.options import pipeline_options
from pulsarbox.cli.pipeline.work_bar import SparkBar
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.spark.pipelines.run_options import RunOptions


@click.command()
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=completions.topics)
@click.option("--to", "place", required=True, metavar="DIR", help="Target directory, or a URL supported by Spark.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["parquet", "json", "csv"]),
    default="parquet",
    show_default=True,
    help="File format.",
)
@click.option(
    "--from",
    "begin",
    metavar="WHERE",
    default="",
    help="Start at a message ID (12:345), or a time: -1h, 2026-11-21T10:00.",
)
@click.option("--until", "end", metavar="WHERE", default="", help="End at a message ID, inclusive, or a time.")
@click.option("-s", "--subscription", metavar="SUB", default="", help="Export its backlog, without acknowledging it.")
@click.option(
    "--columns", metavar="NAMES", default="basic", show_default=True, help="basic, all, or comma-separated names."
)
@click.option(
    "--value-format",
    type=click.Choice(["auto", "bytes", "string", "json", "avro"]),
    default="auto",
    show_default=True,
    help="Payload encoding; auto: columns by the topic's schema.",
)
@click.option(
    "--bytes",
    "encoding",
    type=click.Choice(["base64", "hex", "text"]),
    default="base64",
    show_default=True,
    help="Encoding of binary columns in CSV and JSON; text (UTF-8) fails on other bytes.",
)
@click.option("--option", "options", metavar="K=V", multiple=True, help="Option of the file format; repeatable.")
@click.option("--append", is_flag=True, help="Add files to a non-empty directory.")
@click.option("--overwrite", is_flag=True, help="Replace the content of the directory.")
@pipeline_options(streams=False)
def export(topics: tuple[str, ...], running: "RunOptions", **given: Any) -> None:
    """Export the messages of TOPIC..., or of topics matching 'regex:PATTERN', to files.

    Columns follow the schemas of the topics; docs/spark.md lists those of keys, times and properties. Acknowledges
    nothing.

    Formats are lossless. CSV and JSON contain bytes encoded by --bytes, message IDs as 12:345:-1:6, and times in UTC
    with microseconds; CSV contains maps, lists and records as JSON. A value that CSV cannot represent (a NUL character
    in text) fails the export, and no file is written.

    A non-empty directory requires --append or --overwrite. --overwrite replaces it once the export is complete; use it
    to repeat an interrupted export.

    \b
    Exit codes:
      1  a value cannot be written, or Spark failed
      2  an option is invalid, or --until is before --from
      3  the topic does not exist
      4  the directory is not empty
      6  the broker is unreachable

    \b
    Examples:
      pulsarbox pipeline export orders --to orders.parquet
      pulsarbox pipeline export orders refunds --to today --format csv --from -1d --columns value,__key,__publishTime
      pulsarbox pipeline export orders --to readable --format csv --bytes text
      pulsarbox pipeline export orders --to tail --format json --from 12:345 --until 14:0 --overwrite
    """
    from pulsarbox.spark.pipelines.shipped import export as shipped
    from pulsarbox.spark.pipelines.shipped.one_off_session import selected, spark_of, topics_of

    if given["append"] and given["overwrite"]:
        raise Misused("--append or --overwrite, not both")
    with checked():
        select = selected(topics)
        ranged = shipped.ranged(select.get("topics", ""), given["begin"], given["end"], given["subscription"])
        values = {"valueFormat": given["value_format"]}
        mode = "append" if given["append"] else "overwrite" if given["overwrite"] else ""
        form, written = given["form"], pairs_of(given["options"])
        asked = shipped.Export(
            running.box,
            select | ranged | values,
            form,
            absolute(given["place"]),
            given["columns"],
            mode,
            written,
            given["encoding"],
        )
        shipped.check(asked)
    with topics_there():
        if not topics_of(running.box, select):
            raise NotThere(f"no topic matches {topics[0]}; `pulsarbox topic list` lists the topics")
        asked.check_range(given["begin"], given["end"])
    bar = SparkBar("exporting")
    with closing(bar), spark_of(running, "export", bar.notify, draw=bar.tasks) as spark:
        rows = shipped.export(spark, asked)
    notify(f"{messages(rows)} written to {given['place']}")

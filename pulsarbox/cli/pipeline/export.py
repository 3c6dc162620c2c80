"""``pulsarbox pipeline export``: what topics have, once, into files of Parquet, JSON or CSV."""

from typing import TYPE_CHECKING, Any

import click

from pulsarbox.cli.common.exits import Misused, NotThere
from pulsarbox.cli.common.progress import messages
from pulsarbox.cli.common.terminal_text import say
from pulsarbox.cli.pipeline.option_values import absolute, checked, pairs_of, topics_there
from pulsarbox.cli.pipeline.options import pipeline_options
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.spark.pipelines.run_options import RunOptions


@click.command()
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=completions.topics)
@click.option("--to", "place", required=True, metavar="DIR", help="A directory, or a URL that Spark writes to.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["parquet", "json", "csv"]),
    default="parquet",
    show_default=True,
    help="Of the files.",
)
@click.option(
    "--from", "begin", metavar="WHERE", default="", help="From an id (12:345), or a time: -1h, 2026-11-21T10:00."
)
@click.option("--until", "end", metavar="WHERE", default="", help="Up to an id, included, or a time.")
@click.option("-s", "--subscription", metavar="SUB", default="", help="What it has not acknowledged. It is not moved.")
@click.option(
    "--columns", metavar="NAMES", default="basic", show_default=True, help="basic, all, or names with commas."
)
@click.option(
    "--value-format",
    type=click.Choice(["auto", "bytes", "string", "json", "avro"]),
    default="auto",
    show_default=True,
    help="auto: columns by the topic's schema.",
)
@click.option(
    "--bytes",
    "encoding",
    type=click.Choice(["base64", "hex", "text"]),
    default="base64",
    show_default=True,
    help="Encoding of binary columns in CSV and JSON; text (UTF-8) refuses other bytes.",
)
@click.option("--option", "options", metavar="K=V", multiple=True, help="An option of the files; repeatable.")
@click.option("--append", is_flag=True, help="Add to what is there.")
@click.option("--overwrite", is_flag=True, help="Replace what is there.")
@pipeline_options(streams=False)
def export(topics: tuple[str, ...], running: "RunOptions", **given: Any) -> None:
    """Write the messages of TOPIC..., or of all topics of one 'regex:PATTERN', to files. Columns come from the schemas
    of the topics; docs/spark.md lists those for keys, times and properties. Nothing is acknowledged.

    Every format holds every value. CSV and JSON have bytes as --bytes says, message ids as 12:345:-1:6, and times in
    UTC with microseconds; CSV has maps, lists and records as JSON. A value that CSV cannot hold (a NUL character in a
    text) fails the export, and no file is written.

    A directory that is not empty is refused without --append or --overwrite. --overwrite replaces it once the export is
    complete; repeat an export that was killed with --overwrite.

    \b
    Exit codes:
      1  a value cannot be written, or Spark failed
      2  an option is invalid, or --until is before --from
      3  there is no such topic
      4  the directory is not empty
      6  the broker cannot be reached

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
            raise NotThere(f"no topic matches {topics[0]}: `pulsarbox topic list` has those that there are")
        asked.check_range(given["begin"], given["end"])
    with spark_of(running, "export", say) as spark:
        rows = shipped.export(spark, asked)
    say(f"{messages(rows)} written to {given['place']}")

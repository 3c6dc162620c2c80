"""``pulsarbox pipeline backfill``: publish rows of files, tables or any other Spark source to topics."""

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.progress import messages
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.common.value_types import MessageRate
from pulsarbox.cli.pipeline.option_values import absolute, checked, pairs_of
from pulsarbox.cli.pipeline.options import STATE, pipeline_options
from pulsarbox.cli.pipeline.work_bar import SparkBar

if TYPE_CHECKING:
    from pulsarbox.spark.pipelines.run_options import RunOptions
    from pulsarbox.spark.pipelines.shipped.backfill import ColumnMapping, Source


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@click.option("--job", required=True, metavar="NAME", help="Job name; a rerun resumes the job.")
@click.option("--to", "topic", metavar="TOPIC", default="", help="Target topic.")
@click.option("--topic-column", metavar="COL", default="", help="Column with the target topic of each row.")
@click.option(
    "--format", "form", metavar="NAME", default="parquet", show_default=True, help="Spark format of the source."
)
@click.option("--option", "options", metavar="K=V", multiple=True, help="Option of the format; repeatable.")
@click.option("--schema", metavar="DDL", default="", help="Schema of the source: 'id bigint, at timestamp'.")
@click.option("--value", metavar="COL", default="", help="Payload column. [default: all other columns, as a record]")
@click.option(
    "--value-format",
    type=click.Choice(["json", "avro"]),
    default="json",
    show_default=True,
    help="Encoding of records.",
)
@click.option("--key", metavar="COL", default="", help="Key column.")
@click.option("--ordering-key", metavar="COL", default="", help="Ordering key column.")
@click.option("--event-time", metavar="COL", default="", help="Event time column: a timestamp, its text, or ms.")
@click.option(
    "--bytes",
    "encoding",
    type=click.Choice(["text", "base64", "hex"]),
    default="text",
    show_default=True,
    help="Encoding of bytes in text columns of --value and keys.",
)
@click.option(
    "--property", "properties", metavar="COL", multiple=True, help="Column to publish as a property; repeatable."
)
@click.option(
    "--order-by", metavar="COL", multiple=True, help="Sort column; repeatable. [default: order of the source]"
)
@click.option(
    "--rate", type=MessageRate(), default="off", show_default=True, help="Messages per second, such as 100/s."
)
@click.option(
    "--keep", metavar="NAME", default="", help="Retain the rows: create durable subscription NAME on each topic first."
)
@STATE
@pipeline_options(streams=False)
def backfill(paths: tuple[str, ...], running: "RunOptions", topic: str, form: str, **given: Any) -> None:
    """Publish the rows of PATH..., or of a source without paths, exactly once.

    Stages the rows in --state in order, then publishes them in atomic parts of 50,000 rows, or of one second at --rate.
    A rerun with the same --job publishes the remaining rows. Rows of an `export` keep their keys, event times and
    properties; for CSV and JSON, pass the --bytes of the export. Warns if the broker would not retain the rows because
    the topic has neither a subscription nor retention; see --keep.

    \b
    Exit codes:
      2  an option is invalid
      4  the job is running, or was started with other options or another --state
      6  the broker is unreachable

    \b
    Examples:
      pulsarbox pipeline backfill orders.csv --format csv --to orders --key id --event-time at --job orders-2026-11
      pulsarbox pipeline backfill history/ --to orders --job history --rate 5000
      pulsarbox pipeline backfill today/ --format csv --value value --bytes base64 --to orders --job today
      pulsarbox pipeline backfill --format jdbc --option url=jdbc:postgresql://db/shop --option dbtable=orders \\
        --to orders --key id --event-time created --order-by created --job from-the-shop
    """
    from pulsarbox.spark.pipelines.shipped.backfill import ColumnMapping, Source

    if bool(topic) == bool(given["topic_column"]):
        raise Misused("specify either --to TOPIC or --topic-column COL")
    source = Source(form, [absolute(each) for each in paths], pairs_of(given["options"]), given["schema"])
    some = ("topic_column", "value", "key", "ordering_key", "event_time", "properties", "order_by", "encoding")
    columns = ColumnMapping(topic, **{name: given[name] for name in some})
    _publish(source, columns, running, given)


def _publish(source: "Source", columns: "ColumnMapping", running: "RunOptions", given: dict[str, Any]) -> None:
    from pulsarbox.names import parse_topic
    from pulsarbox.spark.pipelines.shipped.backfill import is_payload
    from pulsarbox.spark.pipelines.shipped.backfill import messages as messages_of
    from pulsarbox.spark.pipelines.shipped.one_off_session import job_named, spark_of
    from pulsarbox.spark.pipelines.shipped.publish_job import NUMBER, PublishJob
    from pulsarbox.spark.pipelines.shipped.publishing import Publishing, publish, put_aside, remove
    from pulsarbox.spark.spark_naming import unglobbed

    with checked():
        name = job_named(given["job"])
        namespace = parse_topic(columns.topic).namespace if columns.topic else "public/default"
    sink = {"topic": columns.topic} if columns.topic else {}
    sink |= {"keep": given["keep"]} if given["keep"] else {}
    bar = SparkBar("staging")
    how = Publishing(running.box, namespace, sink, given["rate"], bar.rows, warn=bar.notify)
    told = {"PATH": " ".join(source.paths), "--format": source.form, "--value-format": given["value_format"]}
    noted = told | columns.asked()
    with PublishJob(running.directory / "backfill" / name, name, noted) as job:
        if job.progress.ended:
            job.end(remove)
            notify(f"job {name} has already completed; nothing to publish")
            return
        with closing(bar), spark_of(running, "backfill", bar.notify, draw=bar.tasks) as spark:
            job.claim(how.box, how.namespace)
            put_aside(job, lambda: messages_of(source.read(spark), columns), how.size)
            bar.notify(
                f"{messages(job.progress.rows)} staged, {job.progress.rows_published:,} of them already published"
            )
            if job.progress.rows:
                there = dict(spark.read.parquet(unglobbed(job.rows_at)).dtypes)
                del there[NUMBER]
                form = {} if is_payload(there) else {"valueFormat": given["value_format"]}
                publish(spark, job, list(there), replace(how, sink=sink | form))
            job.end(remove)
    notify(f"{messages(job.progress.rows)} published")

"""``pulsarbox pipeline dlq-triage``: group dead letters by cause with Spark."""

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.dead_letter_groups import groups_output
from pulsarbox.cli.common.exits import NotThere
from pulsarbox.cli.common.output import OutputOptions, Row, form_option, show
from pulsarbox.cli.common.time_arguments import wall_now
from pulsarbox.cli.connect.admin_client import namespace_named
from pulsarbox.cli.pipeline.option_values import absolute, checked, topics_there
from pulsarbox.cli.pipeline.options import STATE, pipeline_options
from pulsarbox.cli.pipeline.work_bar import SparkBar
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pulsarbox.spark.pipelines.run_options import RunOptions
    from pulsarbox.spark.pipelines.shipped.triage import Triage

_COLUMNS: Final = ("count", "reason", "origin", "shape", "returned", "fingerprint", "sample")


@click.command("dlq-triage")
@click.argument("topics", nargs=-1, metavar="[TOPIC...]", shell_complete=completions.topics)
@click.option(
    "-n",
    "--namespace",
    metavar="NS",
    default="public/default",
    help="Without TOPIC: all topics *-DLQ of this namespace. [default: public/default]",
)
@click.option("-s", "--subscription", metavar="SUB", default="", help="Read only the backlog of this subscription.")
@click.option("--filter", "expression", metavar="E", default="", help="Select matching messages; see `dlq replay`.")
@click.option("--parquet", metavar="DIR", default="", help="Write the dead letters with their fingerprints to Parquet.")
@STATE
@form_option
@pipeline_options(streams=False)
def triage(topics: tuple[str, ...], output: OutputOptions, running: "RunOptions", **given: Any) -> None:
    """Group dead letters by cause; acknowledges nothing.

    Covers TOPIC..., or all topics *-DLQ of a namespace. Groups, fingerprints, filters and output are those of `dlq
    groups`, over all stored messages, on all cores. The table has a row for each reason; -o wide adds a row for each
    shape of the payload. The other formats have one group per shape, with two more fields: returned (messages replayed
    before that failed again), replays (maximum per message). To replay all shapes of a reason, filter by it; to replay
    one shape, by its fingerprint.

    \b
    Exit codes:
      2  an option is invalid
      3  no topic matches
      6  the broker is unreachable

    \b
    Examples:
      pulsarbox pipeline dlq-triage
      pulsarbox pipeline dlq-triage -o wide
      pulsarbox pipeline dlq-triage orders-billing-DLQ -o json --parquet letters/
      pulsarbox pipeline dlq-triage orders-billing-DLQ -s dead-letters --filter 'json.region == "eu"'
    """
    from pulsarbox.spark.pipelines.shipped.dead_letter_rows import LetterFields
    from pulsarbox.spark.pipelines.shipped.one_off_session import selected, spark_of
    from pulsarbox.spark.pipelines.shipped.triage import Triage

    chosen = topics or (f"regex:{namespace_named(given['namespace'])}/.*-DLQ(-partition-[0-9]+)?",)
    asked = LetterFields(given["expression"], wall_now())
    with checked():
        asked.wanted()
        looking = Triage(running.box, selected(chosen), asked, given["subscription"])
    _check_topics(looking)
    bar = SparkBar("grouping", is_wanted=output.is_table)
    with closing(bar), spark_of(running, "dlq-triage", bar.notify, fast=True, draw=bar.tasks) as spark:
        found = _groups(spark, looking, absolute(given["parquet"]))
    show(output, lambda: groups_output(found, output, _COLUMNS))


def _check_topics(looking: "Triage") -> None:
    """Check the topics and the subscription before Spark starts. Raises NotThere."""
    with topics_there():
        if not looking.topics():
            raise NotThere("no dead letter topic matches; `pulsarbox dlq list` lists them")
        looking.acked()


def _groups(spark: "SparkSession", looking: "Triage", parquet: str) -> list[Row]:
    from pulsarbox.spark.pipelines.shipped.file_output import check_empty
    from pulsarbox.spark.pipelines.shipped.triage import groups, looked_at
    from pulsarbox.spark.spark_naming import unglobbed

    letters = looked_at(spark, looking)
    if parquet:
        check_empty(parquet)
        letters.write.parquet(parquet, mode="append")
        letters = spark.read.parquet(unglobbed(parquet))
    return [row.asDict() for row in groups(letters).collect()]

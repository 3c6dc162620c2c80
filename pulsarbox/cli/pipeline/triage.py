"""``pulsarbox pipeline dlq-triage``: group dead letters by cause with Spark, and replay them."""

from typing import TYPE_CHECKING, Any

import click

from pulsarbox.cli.common.exits import Misused, NotThere, Partly
from pulsarbox.cli.common.output import OutputOptions, TableOutput, form_option, show
from pulsarbox.cli.common.progress import messages
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.common.time_arguments import wall_now
from pulsarbox.cli.connect.admin_client import namespace_named, short
from pulsarbox.cli.pipeline.option_values import absolute, checked, topics_there
from pulsarbox.cli.pipeline.options import STATE, pipeline_options
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pulsarbox.spark.pipelines.run_options import RunOptions
    from pulsarbox.spark.pipelines.shipped.replay import Replayed
    from pulsarbox.spark.pipelines.shipped.triage import Triage

_GROUPS = ("fingerprint", "count", "reason", "origin", "shape", "returned", "sample")


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
@click.option("--replay", is_flag=True, help="Replay each message once; requires --job.")
@click.option("--job", metavar="NAME", help="Job name; a rerun resumes the job and replays nothing twice.")
@click.option("--to", "target", metavar="TOPIC", help="Target topic. [default: the origin of each message]")
@click.option(
    "--rate", type=click.FloatRange(0), default=100.0, show_default=True, help="Messages per second; 0: no limit."
)
@click.option(
    "--keep", metavar="NAME", default="", help="With --replay: first create durable subscription NAME on each target."
)
@click.option("--dry-run", is_flag=True, help="With --replay: count messages per target, and rejections.")
@STATE
@form_option
@pipeline_options(streams=False)
def triage(topics: tuple[str, ...], output: OutputOptions, running: "RunOptions", **given: Any) -> None:
    """Group dead letters by cause; with --replay, republish them exactly once.

    Covers TOPIC..., or all topics *-DLQ of a namespace. Groups, fingerprints and filters are those of `dlq groups` and
    `dlq replay`, over all stored messages, on all cores. Additional fields: returned (messages replayed before that
    failed again), replays (maximum per message). Acknowledges nothing without -s. With -s, reads the backlog of the
    subscription and acknowledges replayed messages, in whole batches. The others stay in the dead letter topic.

    \b
    Exit codes:
      2  an option is invalid
      3  no topic matches
      4  the job is running, or was started with other options or another --state
      6  the broker is unreachable
      8  with --replay: some messages were rejected and kept

    \b
    Examples:
      pulsarbox pipeline dlq-triage
      pulsarbox pipeline dlq-triage orders-billing-DLQ -o json --parquet letters/
      pulsarbox pipeline dlq-triage orders-billing-DLQ --filter 'json.region == "eu"' --replay --job eu-1 --dry-run
      pulsarbox pipeline dlq-triage orders-billing-DLQ -s dead-letters --replay --job all-1 --rate 1000
    """
    if given["replay"] and not (given["job"] or given["dry_run"]):
        raise Misused("--replay requires --job NAME; a rerun with the same name replays no message twice")
    if given["dry_run"] and not given["replay"]:
        raise Misused("--dry-run requires --replay: without it, nothing is replayed")
    for option, value in (("--job", given["job"]), ("--to", given["target"]), ("--keep", given["keep"])):
        if value and not given["replay"]:
            raise Misused(f"{option} requires --replay")
    from pulsarbox.spark.pipelines.shipped.dead_letter_rows import LetterFields
    from pulsarbox.spark.pipelines.shipped.one_off_session import job_named, selected, spark_of
    from pulsarbox.spark.pipelines.shipped.triage import Triage

    chosen = topics or (f"regex:{namespace_named(given['namespace'])}/.*-DLQ(-partition-[0-9]+)?",)
    asked = LetterFields(given["expression"], wall_now(), given["job"] or "", given["target"])
    with checked():
        if given["job"]:
            job_named(given["job"])
        asked.wanted()
        looking = Triage(running.box, selected(chosen), asked, given["subscription"])
    _check_topics(looking)
    if given["replay"] and not given["dry_run"]:
        _replay(looking, running, output, given)
        return
    with spark_of(running, "dlq-triage", notify, fast=True) as spark:
        found = _dry_run(spark, looking) if given["dry_run"] else _groups(spark, looking, absolute(given["parquet"]))
    show(output, lambda: found)


def _check_topics(looking: "Triage") -> None:
    """Check the topics and the subscription before Spark starts. Raises NotThere."""
    with topics_there():
        if not looking.topics():
            raise NotThere("no dead letter topic matches; `pulsarbox dlq list` lists them")
        looking.acked()


def _groups(spark: "SparkSession", looking: "Triage", parquet: str) -> TableOutput:
    from pulsarbox.spark.pipelines.shipped.file_output import check_empty
    from pulsarbox.spark.pipelines.shipped.triage import OURS, groups, looked_at
    from pulsarbox.spark.spark_naming import unglobbed

    letters = looked_at(spark, looking)
    if parquet:
        check_empty(parquet)
        letters.drop(*OURS).write.parquet(parquet, mode="append")
        letters = spark.read.parquet(unglobbed(parquet))
    rows = [row.asDict() for row in groups(letters).collect()]
    for row in rows:
        row |= {"origin": short(row["origin"]) if row["origin"] else "", "sampleTopic": short(row["sampleTopic"])}
    return TableOutput(rows, _GROUPS, name="fingerprint")


def _dry_run(spark: "SparkSession", looking: "Triage") -> TableOutput:
    from pulsarbox.spark.pipelines.shipped.triage import looked_at, ways

    return _ways([row.asDict() for row in ways(looked_at(spark, looking)).collect()])


def _ways(rows: list[dict[str, Any]]) -> TableOutput:
    told = [row | {"target": short(row["target"]) if row["target"] else ""} for row in rows]
    return TableOutput(told, ("target", "messages", "refused"), name="target")


def _replay(looking: "Triage", running: "RunOptions", output: OutputOptions, given: dict[str, Any]) -> None:
    from pulsarbox.spark.pipelines.shipped.one_off_session import namespace_of, spark_of
    from pulsarbox.spark.pipelines.shipped.publish_job import PublishJob
    from pulsarbox.spark.pipelines.shipped.publishing import Publishing
    from pulsarbox.spark.pipelines.shipped.replay import ended, replay

    name = given["job"]
    noted = {**looking.select, "filter": given["expression"], "to": given["target"] or "", "-s": looking.subscription}
    sink = {"keep": given["keep"]} if given["keep"] else {}
    how = Publishing(looking.box, namespace_of(looking.select), sink, given["rate"], _print_result, warn=notify)
    with PublishJob(running.directory / "dlq-triage" / name, name, noted) as job:
        if job.progress.ended:
            notify(f"job {name} has already completed; nothing to replay")
            done = ended(job)
        else:
            with spark_of(running, "dlq-triage", notify, fast=True) as spark:
                done = replay(spark, job, looking, how, absolute(given["parquet"]))
    show(output, lambda: _ways(done.ways))
    if done.put_back:
        notify(f"{messages(done.put_back)} replayed; {_report_rest(done, looking.subscription)}")
    else:
        notify("no messages replayed")
    if done.refused:
        raise Partly(f"{messages(done.refused)} cannot be replayed and are kept; the table shows the reasons")


def _report_rest(done: "Replayed", subscription: str) -> str:
    if subscription:
        return f"{done.acknowledged:,} of them acknowledged on {subscription}"
    return "they also stay in the dead letter topic until `dlq drop` or retention removes them"


def _print_result(done: int, of: int) -> None:
    notify(f"{done:,} of {messages(of)} replayed")

"""``pulsarbox pipeline rollup``: what topics carry by windows of event time, into a topic and Parquet."""

from typing import TYPE_CHECKING, Any

import click

from pulsarbox.cli.common.time_arguments import DURATION
from pulsarbox.cli.pipeline.option_values import absolute, checked
from pulsarbox.cli.pipeline.options import pipeline_options
from pulsarbox.cli.pipeline.run import run_pipeline
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.spark.pipelines.run_options import RunOptions
    from pulsarbox.spark.pipelines.shipped.rollup import Rollup


@click.command()
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=completions.topics)
@click.option("--to", "output", required=True, metavar="TOPIC", help="The topic that rows go to, as JSON by a schema.")
@click.option("--parquet", metavar="DIR", default="", help="Keep the rows of that topic in Parquet, too.")
@click.option("--window", type=DURATION, default="1m", show_default=True, help="How long a window is.")
@click.option("--slide", type=DURATION, help="A window begins so often. [where the one before ends]")
@click.option(
    "--delay", type=DURATION, default="10s", show_default=True, help="So much later a message is still in time."
)
@click.option(
    "--idle", type=DURATION, default="1m", show_default=True, help="A silent topic goes by the others after so long."
)
@click.option("--top", type=click.IntRange(0, 1000), default=10, show_default=True, help="So many keys are told of.")
@click.option("--keys", type=click.IntRange(1, 1_000_000), default=1000, show_default=True, help="So many are counted.")
@click.option("--flush", is_flag=True, help="Tell of windows that are not over, too, after each micro-batch.")
@click.option("--from", "begin", metavar="WHERE", default="earliest", show_default=True, help="Or latest, or a time.")
@click.option("--trigger", metavar="TEXT", default="1 second", show_default=True, help="A micro-batch so often.")
@click.option(
    "--max-entries", type=click.IntRange(1), default=500_000, show_default=True, help="Of a micro-batch, about."
)
@pipeline_options()
def rollup(topics: tuple[str, ...], running: "RunOptions", **given: Any) -> None:
    """Count what TOPIC... carry, or one 'regex:PATTERN' of topics: by windows of event time, exactly once.

    A row has of one topic and window: messages, bytes, rates, the most frequent keys, and percentiles of latency (from
    event time to publish time). A message without event time goes by its publish time. A window goes out when its topic
    is past its end by --delay; what comes later goes out at once in a row of its own, marked late: the rows of a window
    add up to its messages, all of them. docs/spark.md has the fields.

    \b
    Exit codes:
      2  an option is invalid
      6  the broker cannot be reached

    \b
    Examples:
      pulsarbox pipeline rollup orders --to orders-per-minute
      pulsarbox pipeline rollup orders refunds --to per-minute --parquet rollups/ --window 5m --slide 1m
      pulsarbox pipeline rollup 'regex:acme/prod/.*' --to acme/metrics/rollup --delay 1m --from -1h
      pulsarbox pipeline rollup orders --to orders-per-minute --once --flush
    """
    from pulsarbox.spark.pipelines.shipped.rollup import pipeline

    with checked():
        made = pipeline(_asked(topics, running, given), running.name or "rollup")
    run_pipeline(made, running)


def _asked(topics: tuple[str, ...], running: "RunOptions", given: dict[str, Any]) -> "Rollup":
    from pulsarbox.spark.pipelines.shipped.rollup import Rollup
    from pulsarbox.spark.pipelines.shipped.rollup_windows import Rolling

    numbers = {name: given[name] for name in ("delay", "idle", "top", "keys", "flush")}
    how = Rolling(given["window"], given["slide"] or given["window"], **numbers)
    begin = given["begin"]
    option = "startingOffsets" if begin in ("earliest", "latest") else "startingTime"
    return Rollup(
        topics[0] if len(topics) == 1 else list(topics),
        given["output"],
        how,
        (running.directory / (running.name or "rollup")).absolute(),
        absolute(given["parquet"]),
        given["trigger"],
        {option: begin, "maxEntriesPerTrigger": str(given["max_entries"])},
    )

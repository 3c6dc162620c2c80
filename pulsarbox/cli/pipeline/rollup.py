"""``pulsarbox pipeline rollup``: aggregate topics by windows of event time, into a topic and Parquet."""

from typing import TYPE_CHECKING, Any

import click

from pulsarbox.cli.common.time_arguments import DURATION
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.pipeline.option_values import absolute, checked
from pulsarbox.cli.pipeline.options import pipeline_options
from pulsarbox.cli.pipeline.run import run_pipeline
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.spark.pipelines.run_options import RunOptions
    from pulsarbox.spark.pipelines.shipped.rollup import Rollup


@click.command()
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=completions.topics)
@click.option("--to", "output", required=True, metavar="TOPIC", help="Output topic, in JSON with a schema.")
@click.option("--parquet", metavar="DIR", default="", help="Also write the rows to Parquet files.")
@click.option("--window", type=DURATION, default="1m", show_default=True, help="Window length.")
@click.option("--slide", type=DURATION, help="Interval between window starts. [default: --window]")
@click.option("--delay", type=DURATION, default="10s", show_default=True, help="Allowed lateness of messages.")
@click.option(
    "--idle", type=DURATION, default="1m", show_default=True, help="Time after which an idle topic follows the others."
)
@click.option("--top", type=BoundedInteger(0, 1000), default=10, show_default=True, help="Most frequent keys per row.")
@click.option(
    "--keys", type=BoundedInteger(1, 1_000_000), default=1000, show_default=True, help="Maximum keys to count."
)
@click.option("--flush", is_flag=True, help="Also emit open windows after each micro-batch.")
@click.option(
    "--from", "begin", metavar="WHERE", default="earliest", show_default=True, help="earliest, latest, or a time."
)
@click.option("--trigger", metavar="TEXT", default="1 second", show_default=True, help="Micro-batch interval.")
@click.option(
    "--max-entries",
    type=BoundedInteger(1),
    default=500_000,
    show_default=True,
    help="Approximate maximum entries per micro-batch.",
)
@pipeline_options()
def rollup(topics: tuple[str, ...], running: "RunOptions", **given: Any) -> None:
    """Aggregate TOPIC..., or topics matching 'regex:PATTERN', by windows of event time, exactly once.

    Each row covers one topic and window: messages, bytes, rates, most frequent keys, and latency percentiles (from
    event time to publish time). Messages without event time use their publish time. A window is emitted once its topic
    is --delay past its end. Later messages are emitted at once in additional rows marked late, so the rows of a window
    sum up to all its messages. docs/spark.md lists the fields.

    \b
    Exit codes:
      2  an option is invalid
      6  the broker is unreachable

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

"""``pulsarbox pipeline``: Spark queries between topics, both the user's and built-in ones.

To add a built-in one, write it in a separate module and add its row to ``_MORE``.
"""

from typing import Final

import click

from pulsarbox.cli.common.lazy_group import LazyCommand, LazyGroup

_MORE: Final = {
    "offload": LazyCommand("pulsarbox.cli.pipeline.offload:offload", "Offload closed ledgers to Parquet files."),
    "list": LazyCommand("pulsarbox.cli.pipeline.listing:list_pipelines", "List running and past queries."),
    "new": LazyCommand("pulsarbox.cli.pipeline.new:new", "Create a sample pipeline and its test."),
    "reset": LazyCommand("pulsarbox.cli.pipeline.listing:reset", "Reset the checkpoint of a pipeline."),
    "run": LazyCommand("pulsarbox.cli.pipeline.run:run_file", "Run or resume the pipeline in a file."),
    "rollup": LazyCommand("pulsarbox.cli.pipeline.rollup:rollup", "Aggregate topics by windows of event time."),
    "dlq-triage": LazyCommand("pulsarbox.cli.pipeline.triage:triage", "Group dead letters by cause."),
    "backfill": LazyCommand("pulsarbox.cli.pipeline.backfill:backfill", "Publish files and tables to topics, once."),
    "export": LazyCommand("pulsarbox.cli.pipeline.export:export", "Export topics to Parquet, JSON or CSV files."),
    "validate": LazyCommand("pulsarbox.cli.pipeline.validate:validate", "Check a pipeline file without running it."),
}


@click.group(cls=LazyGroup, lazy_commands=_MORE, context_settings={"help_option_names": ["-h", "--help"]})
def pipeline() -> None:
    """Create, validate, run, list and reset Spark pipelines.

    A pipeline is a Python file with functions that process topics into topics, exactly once. Requires Java and
    `pip install 'pulsarbox[spark]'`.

    \b
    Examples:
      pulsarbox pipeline new shop.py
      pulsarbox pipeline validate shop.py
      pulsarbox pipeline run shop.py
      pulsarbox pipeline list
      pulsarbox pipeline offload orders --to /data/history
    """

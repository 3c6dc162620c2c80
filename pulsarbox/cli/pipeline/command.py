"""``pulsarbox pipeline``: queries of Spark between topics, users' own and those that come along.

To add one that comes along, write it in a file of its own and add its row to ``_MORE``.
"""

from typing import Final

import click

from pulsarbox.cli.common.lazy_group import LazyCommand, LazyGroup

_MORE: Final = {
    "offload": LazyCommand("pulsarbox.cli.pipeline.offload:offload", "Put closed ledgers into Parquet, one file each."),
    "list": LazyCommand("pulsarbox.cli.pipeline.listing:list_pipelines", "List what runs, and what has run here."),
    "new": LazyCommand("pulsarbox.cli.pipeline.new:new", "Write a pipeline to begin with, and its test."),
    "reset": LazyCommand("pulsarbox.cli.pipeline.listing:reset", "Forget how far a pipeline is: it begins anew."),
    "run": LazyCommand("pulsarbox.cli.pipeline.run:run_file", "Run what a file declares, from where it stopped."),
    "rollup": LazyCommand("pulsarbox.cli.pipeline.rollup:rollup", "Count what topics carry, by windows of event time."),
    "dlq-triage": LazyCommand("pulsarbox.cli.pipeline.triage:triage", "Group dead letters by why they failed; replay."),
    "backfill": LazyCommand("pulsarbox.cli.pipeline.backfill:backfill", "Files and tables into topics, each row once."),
    "export": LazyCommand("pulsarbox.cli.pipeline.export:export", "What topics have into Parquet, JSON or CSV, once."),
    "validate": LazyCommand("pulsarbox.cli.pipeline.validate:validate", "Check what a file declares; nothing runs."),
}


@click.group(cls=LazyGroup, lazy_commands=_MORE, context_settings={"help_option_names": ["-h", "--help"]})
def pipeline() -> None:
    """Pipelines on Spark: Python files whose functions go from topics to topics, exactly once. Needs Java, and
    `pip install 'pulsarbox[spark]'`.

    \b
    Examples:
      pulsarbox pipeline new shop.py
      pulsarbox pipeline validate shop.py
      pulsarbox pipeline run shop.py
      pulsarbox pipeline list
      pulsarbox pipeline offload orders --to /data/history
    """

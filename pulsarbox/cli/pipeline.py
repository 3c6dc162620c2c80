"""``pulsarbox pipeline``: queries of Spark between topics, users' own and those that come along.

To add one that comes along, write it in a file of its own and add its row to ``_MORE``.
"""

from typing import Final

import click

from pulsarbox.cli.lazy import LazyCommand, LazyGroup

_MORE: Final = {
    "offload": LazyCommand("pulsarbox.cli.pipeline_offload:offload", "Put closed ledgers into Parquet, one file each."),
    "run": LazyCommand("pulsarbox.cli.pipeline_run:run_file", "Run what a file declares, from where it stopped."),
    "validate": LazyCommand("pulsarbox.cli.pipeline_validate:validate", "Check what a file declares; nothing runs."),
}


@click.group(cls=LazyGroup, lazy_commands=_MORE, context_settings={"help_option_names": ["-h", "--help"]})
def pipeline() -> None:
    """Pipelines on Spark: Python files whose functions go from topics to topics, exactly once. Needs Java, and
    `pip install 'pulsarbox[spark]'`.

    \b
    Examples:
      pulsarbox pipeline validate totals.py
      pulsarbox pipeline run totals.py
      pulsarbox pipeline offload orders --to /data/history
    """

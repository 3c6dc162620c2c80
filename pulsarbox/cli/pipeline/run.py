"""``pulsarbox pipeline run``: a user's file, in one process with Spark; and how whatever runs pipelines ends."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulsarbox.cli.common.exits import Failed, Partly
from pulsarbox.cli.pipeline.options import pipeline_options
from pulsarbox.cli.pipeline.validate import FILE
from pulsarbox.spark.pipelines.run_options import RunOptions

if TYPE_CHECKING:
    from pulsarbox.spark.pipelines.definition import Pipeline


@click.command("run")
@FILE
@click.option("--no-report", is_flag=True, help="Do not tell the box how it goes: `pipeline list` does not show it.")
@pipeline_options()
def run_file(file: Path, running: RunOptions, no_report: bool) -> None:
    """Run what FILE declares: a query of Spark for each @frame and @function, in one process.

    It goes on where it stopped: how far each query is stands in its checkpoint, in --state. SIGTERM and Ctrl-C end it;
    what was under way then is done again by the next run, and published once. A query that fails is started again;
    the others go on meanwhile. Spark's own log is spark.log beside the checkpoints.

    \b
    Exit codes:
      1  a query has failed, and was not started again; of several some: 8
      4  it runs already, with this --state

    \b
    Examples:
      pulsarbox pipeline run totals.py
      pulsarbox pipeline run totals.py --once --master 'local[2]'
      pulsarbox pipeline run totals.py --name totals-eu --state /var/lib/pipelines --conf spark.driver.memory=2g
    """
    from pulsarbox.spark.pipelines.definition import load

    run_pipeline(load(file, running.name), replace(running, report=not no_report))


def run_pipeline(pipeline: "Pipeline", running: RunOptions) -> None:
    """Run a pipeline until it ends, or is stopped. Raises the ending of a command whose queries have failed."""
    from pulsarbox.spark.pipelines.query_progress import FAILED
    from pulsarbox.spark.pipelines.runner import run
    from pulsarbox.spark.pipelines.spark_log import LOG

    ended = run(pipeline, running)
    failed = [each.step.query for each in ended if each.state == FAILED]
    if failed:
        ending = Partly if len(failed) < len(ended) else Failed
        log = running.directory / (running.name or pipeline.name) / LOG
        raise ending(f"failed: {', '.join(failed)}; Spark's own log is {log}")

"""``pulsarbox pipeline run``: run a user's pipeline with Spark in one process."""

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
@click.option("--no-report", is_flag=True, help="Do not report progress to the box.")
@pipeline_options()
def run_file(file: Path, running: RunOptions, no_report: bool) -> None:
    """Run or resume the pipeline in FILE.

    Starts a Spark query for each @frame and @function, in one process. Each query resumes from its checkpoint in
    --state. SIGTERM and Ctrl-C stop the pipeline; the next run repeats unfinished work and publishes it once. A failed
    query restarts while the others continue. Spark logs to spark.log beside the checkpoints.

    \b
    Exit codes:
      1  all queries failed
      4  the pipeline is already running with this --state
      8  some queries failed, others did not

    \b
    Examples:
      pulsarbox pipeline run totals.py
      pulsarbox pipeline run totals.py --once --master 'local[2]'
      pulsarbox pipeline run totals.py --name totals-eu --state /var/lib/pipelines --conf spark.driver.memory=2g
    """
    from pulsarbox.spark.pipelines.definition import load

    run_pipeline(load(file, running.name), replace(running, report=not no_report))


def run_pipeline(pipeline: "Pipeline", running: RunOptions) -> None:
    """Run a pipeline until it ends or is stopped. Raises Failed or Partly for failed queries."""
    from pulsarbox.spark.pipelines.query_progress import FAILED
    from pulsarbox.spark.pipelines.runner import run
    from pulsarbox.spark.pipelines.spark_log import LOG

    ended = run(pipeline, running)
    failed = [each.step.query for each in ended if each.state == FAILED]
    if failed:
        ending = Partly if len(failed) < len(ended) else Failed
        log = running.directory / (running.name or pipeline.name) / LOG
        raise ending(f"failed: {', '.join(failed)}; Spark's own log is {log}")

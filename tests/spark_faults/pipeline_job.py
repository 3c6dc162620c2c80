"""Drivers of shipped pipelines for the campaign to kill.

They run a rollup, and the commands that move rows into topics and out of them.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from pulsarbox.cli import main as cli
from pulsarbox.spark import table
from pulsarbox.spark.pipelines import delta_output, runner, session
from pulsarbox.spark.pipelines.declaration import Frame
from pulsarbox.spark.pipelines.definition import Pipeline
from pulsarbox.spark.pipelines.query_progress import FAILED
from pulsarbox.spark.pipelines.run_options import RunOptions
from pulsarbox.spark.pipelines.shipped import one_off_session, publishing
from pulsarbox.spark.pipelines.shipped.rollup import Rollup, pipeline
from pulsarbox.spark.pipelines.shipped.rollup_windows import Rolling
from tests.spark_faults.faulty import FaultyEpochs, FaultySource

WINDOW_MS: Final = 1000
NEVER_MS: Final = 10**13
"""Idle time of a rollup that is never over, so that every epoch has messages."""
_session: Final = session.session


def faulty(folder: Path) -> Any:
    """Return a factory of sessions with a faulty sink, which write down the process ID of their JVM."""

    def made(*args: Any, **kwargs: Any) -> Any:
        spark = _session(*args, **kwargs)
        spark.dataSource.register(FaultySource)
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        pid = folder / "jvm.pid"
        pid.with_suffix(".new").write_text(str(gateway.proc.pid))
        pid.with_suffix(".new").replace(pid)
        return spark

    return made


def rollup(plan: dict[str, Any], running: RunOptions, folder: Path) -> int:
    """Roll up a topic into another topic and Parquet."""
    how = Rolling(WINDOW_MS, WINDOW_MS, delay=500, idle=NEVER_MS)
    options = {"maxEntriesPerTrigger": str(plan["epoch"])}
    asked = Rollup(plan["topic"], plan["topic"] + "-rolled", how, running.directory / "rollup", options=options)
    asked = Rollup(**{**vars(asked), "parquet": str(folder / "parquet")})
    return any(each.state == FAILED for each in runner.run(pipeline(asked), running))


def delta(plan: dict[str, Any], running: RunOptions, folder: Path) -> int:
    """Write a topic to a Delta table."""

    def rows(df: Any) -> Any:
        number = "CAST(CAST(value AS STRING) AS INT)"
        return df.repartition(plan["partitions"]).selectExpr(f"{number} AS n", f"{number} % 3 AS part")

    vars(delta_output)["DeltaEpochs"] = FaultyEpochs
    options, sink = {"maxEntriesPerTrigger": str(plan["epoch"])}, {"partitionBy": "part"}
    step = Frame(
        build=rows, inputs=plan["topic"], output=f"delta:{folder / 'table'}", name="rows", options=options, sink=sink
    )
    return any(each.state == FAILED for each in runner.run(Pipeline("delta", [step]), running))


def _command(name: str, running: RunOptions, *words: str, spark: bool = True) -> int:
    """Run a command of the group with its own arguments; raises the error that ends it."""
    urls = ["--url", running.box["service.url"], "--admin-url", running.box["admin.url"]]
    of_spark = ["--master", running.master, *(f"--conf={key}={value}" for key, value in running.conf.items())]
    cli.main(["pipeline", name, *words, *urls, *(of_spark if spark else [])], standalone_mode=False)
    return 0


def backfill(plan: dict[str, Any], running: RunOptions, folder: Path) -> int:
    """Backfill the rows of a file into a topic, in small parts."""
    vars(publishing)["PART_ROWS"] = plan["epoch"]
    name = plan["topic"].rpartition("/")[2]
    where = ["--to", plan["topic"], "--job", name, "--state", str(running.directory)]
    return _command(
        "backfill", running, str(folder / "rows.csv"), "--format", "csv", "--schema", "value string", *where
    )


def export(plan: dict[str, Any], running: RunOptions, folder: Path) -> int:
    """Export a topic to files; repeat a killed export as its documentation page describes."""
    place = folder / "out"
    again = ["--overwrite"] if place.exists() else []
    return _command("export", running, plan["topic"], "--to", str(place), *again)


def offload(plan: dict[str, Any], running: RunOptions, folder: Path) -> int:
    """Offload closed ledgers to files."""
    return _command("offload", running, plan["topic"], "--to", str(folder / "history"), spark=False)


def read_table(plan: dict[str, Any], running: RunOptions, folder: Path) -> int:
    """Write the rows of the table to a file."""
    options: dict[str, Any] = dict(running.box)
    with one_off_session.spark_of(running, "table", lambda _: None) as spark:
        rows = table(spark, plan["topic"], folder / "history", **options).select("value").collect()
    (folder / "table.json").write_text(json.dumps([row["value"].decode() for row in rows]))
    return 0


JOBS: Final = {
    "rollup": rollup,
    "delta": delta,
    "backfill": backfill,
    "export": export,
    "offload": offload,
    "table": read_table,
}


def main() -> int:
    """Run until everything is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plan", type=Path)
    plan = json.loads(parser.parse_args().plan.read_text())
    folder = Path(plan["folder"])
    for room in (runner, one_off_session):
        vars(room)["session"] = faulty(folder)
    conf = {"spark.sql.shuffle.partitions": str(plan["partitions"]), "spark.driver.memory": "512m"} | plan["conf"]
    urls = {"service.url": plan["url"], "admin.url": plan["web_url"]}
    running = RunOptions(plan["master"], once=True, state=folder / "state", conf=conf, box=urls, report=False)
    return JOBS[plan["what"]](plan, running, folder)


if __name__ == "__main__":
    sys.exit(main())

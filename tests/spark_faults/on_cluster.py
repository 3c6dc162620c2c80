"""A user's file on a standalone master with two workers: it is shipped, runs once, and resumes after a stop.

``make spark-cluster`` runs it: a master, two workers, a driver and a broker in separate processes. Exits with 1 if a
message is missing or duplicated.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import pulsar

from tests.spark_faults.run import ROOT, cluster, environment, say
from tests.tools.box import BoxProcess

ROWS: Final = 1000
SECONDS: Final = 600.0
FILE: Final = """
from pulsarbox.pipelines import function
from twice import twice


@function(inputs="raw", output="clean", dead_letter="raw-DLQ", value="json", retries=0)
def clean(value, ctx):
    if value % 10 == 7:
        raise ValueError(value)
    return [value, twice(value)]


@function(inputs="clean", output="sums", value="json", key=lambda value, ctx: "all", state=True)
def sums(value, ctx):
    ctx.state.put(ctx.state.get(default=0) + value)
    return ctx.state.get()
"""


def run_once(folder: Path, box: BoxProcess, master: str) -> None:
    """Run ``pulsarbox pipeline run --once``. Raises CalledProcessError."""
    words = ["pipeline", "run", str(folder / "shop.py"), "--once", "--master", master, "--state", str(folder / "state")]
    conf = [f"spark.executorEnv.PYTHONPATH={ROOT}", "spark.executor.memory=512m", "spark.sql.shuffle.partitions=4"]
    more = [word for each in conf for word in ("--conf", each)]
    command = [sys.executable, "-m", "pulsarbox", *words, *more, "--url", box.url, "--admin-url", box.web_url]
    # Outside the folder of the file: the modules beside it must be shipped.
    subprocess.run(command, check=True, cwd=ROOT, env=environment(folder), stdin=subprocess.DEVNULL, timeout=SECONDS)


def values(client: pulsar.Client, topic: str) -> list[int]:
    """Return the values of all messages in a topic."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(int(json.loads(reader.read_next(10_000).data())))
    return found


def main() -> int:
    """Run the pipeline on a cluster and check its output."""
    with tempfile.TemporaryDirectory(prefix="pulsarbox-cluster-") as name:
        folder = Path(name)
        (folder / "shop.py").write_text(FILE)
        (folder / "twice.py").write_text("def twice(number):\n    return 2 * number\n")
        box = BoxProcess(folder / "data")
        box.start()
        client = pulsar.Client(box.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        try:
            client.subscribe("sums", "kept").close()  # else the topic is deleted after a minute without clients
            producer = client.create_producer("raw")
            with cluster(folder) as master:
                for half in (range(ROWS // 2), range(ROWS // 2, ROWS)):
                    for number in half:
                        producer.send_async(str(number).encode(), None)
                    producer.flush()
                    run_once(folder, box, master)
                    say(f"{half.stop} messages are through")
            good = [number for number in range(ROWS) if number % 10 != 7]
            wanted = sorted(each for number in good for each in (number, 2 * number))
            assert sorted(values(client, "clean")) == wanted, "rows are missing or doubled"
            assert sorted(values(client, "raw-DLQ")) == list(range(7, ROWS, 10)), "dead letters are missing or doubled"
            sums = values(client, "sums")
            assert len(sums) == len(wanted), "sums are missing or doubled"
            assert max(sums) == sum(wanted), "state was lost between the runs"
        finally:
            client.close()
            box.kill()
    say(f"{ROWS} messages, two runs: nothing is missing, nothing is there twice")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sys.exit(main())

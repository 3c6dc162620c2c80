"""A user's file on a standalone master with two workers: it travels, runs once, and runs on from where it stopped.

``make spark-cluster`` runs it: a master, two workers and a driver in processes of their own, and a box. Ends with 1
where a message is missing, or is there twice.
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
from tests.tools.box import Box

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


def run_once(folder: Path, box: Box, master: str) -> None:
    """``pulsarbox pipeline run --once``. Raises CalledProcessError."""
    words = ["pipeline", "run", str(folder / "shop.py"), "--once", "--master", master, "--state", str(folder / "state")]
    conf = [f"spark.executorEnv.PYTHONPATH={ROOT}", "spark.executor.memory=512m", "spark.sql.shuffle.partitions=4"]
    more = [word for each in conf for word in ("--conf", each)]
    command = [sys.executable, "-m", "pulsarbox", *words, *more, "--url", box.url, "--admin-url", box.web_url]
    # Not from the folder of the file: what is beside it has to travel.
    subprocess.run(command, check=True, cwd=ROOT, env=environment(folder), stdin=subprocess.DEVNULL, timeout=SECONDS)


def values(client: pulsar.Client, topic: str) -> list[int]:
    """All that is in a topic."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(int(json.loads(reader.read_next(10_000).data())))
    return found


def main() -> int:
    """Run it."""
    with tempfile.TemporaryDirectory(prefix="pulsarbox-cluster-") as name:
        folder = Path(name)
        (folder / "shop.py").write_text(FILE)
        (folder / "twice.py").write_text("def twice(number):\n    return 2 * number\n")
        box = Box(folder / "data")
        box.start()
        client = pulsar.Client(box.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        try:
            client.subscribe("sums", "kept").close()  # else the topic goes, where nobody is on it for a minute
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

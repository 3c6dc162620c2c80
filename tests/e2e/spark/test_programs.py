"""Programs that users start: a notebook, a submitted job, Spark Connect, and a declarative pipeline.

Each has its own JVM, so the runs are for campaigns.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulsar
import pytest

from pulsarbox.spark.pipelines.session import FAST
from tests.e2e.conftest import Running
from tests.tools.java import need_java

if TYPE_CHECKING:
    from tests.e2e.spark.conftest import Take

EXAMPLES = Path(__file__).parents[3] / "examples" / "spark"
NOTEBOOK = EXAMPLES / "orders.ipynb"
BIN = Path(sys.executable).parent
SECONDS = 600
CONNECTED = """
import os, sys, tempfile
from pyspark.sql import SparkSession

server = SparkSession.builder.remote("local[2]").getOrCreate()
broker = {"service.url": os.environ["SERVICE_URL"], "admin.url": os.environ["ADMIN_URL"]}
source, target = sys.argv[1:]
frame = server.createDataFrame([("a", "1"), ("b", "2")], "__key string, value string")
frame.write.format("pulsarbox").mode("append").options(**broker, topic=source, keep="s").save()
rows = server.read.format("pulsarbox").options(**broker, topic=source).load().toPandas()
assert sorted(rows["value"]) == [b"1", b"2"]
stream = server.readStream.format("pulsarbox").options(**broker, topic=source, startingOffsets="earliest").load()
writer = stream.select("__key", "value").writeStream.format("pulsarbox").options(**broker, topic=target, keep="s")
query = writer.option("checkpointLocation", tempfile.mkdtemp()).trigger(availableNow=True).start()
assert query.awaitTermination(120) and query.exception() is None
server.stop()
"""


@pytest.fixture
def environ(box: Running, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a program, with the addresses of the box."""
    need_java()
    more = {
        "SERVICE_URL": box.url,
        "ADMIN_URL": box.web_url,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    more |= {"SPARK_SUBMIT_OPTS": " ".join(FAST), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    return os.environ | more | {"PATH": f"{BIN}:{os.environ['PATH']}"}


def test_the_notebook_is_stored_without_results_and_compiles() -> None:
    cells = [each for each in json.loads(NOTEBOOK.read_text())["cells"] if each["cell_type"] == "code"]
    assert len(cells) > 3
    for each in cells:
        assert (each["outputs"], each["execution_count"]) == ([], None)
        compile("".join(each["source"]), NOTEBOOK.name, "exec")


@pytest.mark.campaign
@pytest.mark.timeout(SECONDS)
def test_the_notebook_runs(environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run.ipynb"
    code = (
        "import nbformat, nbclient, sys\n"
        "book = nbformat.read(sys.argv[1], 4)\n"
        "nbclient.NotebookClient(book, timeout=500).execute()\n"
        "nbformat.write(book, sys.argv[2])\n"
    )
    _run([sys.executable, "-W", "ignore", "-c", code, str(NOTEBOOK), str(out)], environ, tmp_path)
    text = "".join(
        line
        for cell in json.loads(out.read_text())["cells"]
        for output in cell.get("outputs", ())
        for line in output.get("data", {}).get("text/plain", ())
    )
    assert "http://" in text and "customer-2" in text and "26" in text  # 2 + 5 + 8 + 11


@pytest.mark.campaign
@pytest.mark.timeout(SECONDS)
def test_a_submitted_job_runs_on_the_master_of_its_command(
    environ: dict[str, str], client: Any, fresh: Callable[[str], str], tmp_path: Path, take: "Take"
) -> None:
    source, target = fresh("from"), fresh("to")
    producer = client.create_producer(source)
    client.subscribe(target, "s", initial_position=pulsar.InitialPosition.Earliest)
    for number in range(3):
        producer.send(b"x", partition_key=f"k{number % 2}")
    command = [str(BIN / "spark-submit"), "--master", "local[2]", str(EXAMPLES / "job.py"), source, target]
    assert "3 messages on local[2]" in _run(command, environ, tmp_path)
    assert sorted(each.data() for each in take(target)) == [b"1", b"2"]


@pytest.mark.campaign
@pytest.mark.timeout(SECONDS)
def test_spark_connect_reads_and_writes(
    environ: dict[str, str], fresh: Callable[[str], str], tmp_path: Path, take: "Take"
) -> None:
    source, target = fresh("from"), fresh("to")
    _run([sys.executable, "-W", "ignore", "-c", CONNECTED, source, target], environ, tmp_path)
    assert sorted(each.data() for each in take(target)) == [b"1", b"2"]


@pytest.mark.campaign
@pytest.mark.timeout(SECONDS)
def test_a_declarative_pipeline_reads_topics_into_tables_and_topics(
    environ: dict[str, str], box: Running, client: Any, tmp_path: Path, take: "Take"
) -> None:
    folder = tmp_path / "declarative"
    shutil.copytree(EXAMPLES / "declarative", folder)
    file = folder / "spark-pipeline.yml"
    text = file.read_text().replace("pulsar://localhost:6650", box.url).replace("http://localhost:8080", box.web_url)
    file.write_text(text.replace("storage: storage", f"storage: file://{folder}/storage"))
    client.subscribe("bills", "s", initial_position=pulsar.InitialPosition.Earliest)
    producer = client.create_producer("orders")
    for total in (5, 150, 300):
        producer.send(b"%d" % total, partition_key="ann")
    command = [str(BIN / "spark-pipelines"), "run", "--spec", str(file)]
    _run(command, environ, folder)
    assert {each.data() for each in take("bills")} >= {b"150", b"300"}


def _run(command: list[str], environ: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        command, env=environ, cwd=folder, capture_output=True, text=True, timeout=SECONDS - 20, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-5000:]}"
    return done.stdout

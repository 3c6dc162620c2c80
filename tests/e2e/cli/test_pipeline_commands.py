"""``pulsarbox pipeline`` without Spark: the template and its test, validate, list, reset."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.cli.common.exits import EXIT_CONFLICT, EXIT_FAILED, EXIT_NOT_FOUND, EXIT_OK, EXIT_UNREACHABLE, EXIT_USAGE
from pulsarbox.spark.pipelines.state import QueryState
from tests.e2e.conftest import Running

Run = Callable[..., "subprocess.CompletedProcess[str]"]
PIPELINE = [sys.executable, "-m", "pulsarbox", "pipeline"]


def called(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PIPELINE, *words], capture_output=True, check=False, text=True, stdin=subprocess.DEVNULL, timeout=250
    )


def test_the_test_of_a_new_pipeline_passes_as_it_is(tmp_path: Path) -> None:
    made = called("new", str(tmp_path / "shop"))
    assert made.returncode == EXIT_OK, made.stderr
    test = tmp_path / "shop" / "test_shop.py"
    assert made.stdout.split() == [str(tmp_path / "shop" / "shop.py"), str(test)]
    passed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(test.parent), str(test)],
        capture_output=True,
        check=False,
        text=True,
        timeout=250,
        cwd=test.parent,
    )
    assert "3 passed" in passed.stdout, passed.stdout
    assert called("new", str(test.with_name("shop.py"))).returncode == EXIT_CONFLICT
    assert called("new", str(tmp_path / "a b.py")).returncode == EXIT_USAGE
    hidden = called("new", str(tmp_path / "json.py"))
    assert (hidden.returncode, "'json' is a Python keyword or the name of a module" in hidden.stderr) == (
        EXIT_USAGE,
        True,
    )


def test_a_file_is_checked_with_what_the_broker_knows(
    run: Run, box: Running, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    there, missing, avro = (fresh(word).rpartition("/")[2] for word in ("there", "missing", "avro"))
    other = f"{avro}-2"
    for name in (there, avro, other):
        box.admin("PUT", f"persistent/public/default/{name}")
    schema = {"type": "AVRO", "schema": '{"type":"record","name":"a","fields":[]}', "properties": {}}
    for name in (avro, other):
        box.admin("POST", f"schemas/public/default/{name}/schema", json.dumps(schema))
    file = tmp_path / "shop.py"
    file.write_text(
        "from pulsarbox.pipelines import function\n"
        f"@function(inputs=['{there}', '{missing}', '{avro}'], output='{there}-out', value='json')\n"
        "def one(value, ctx):\n    return value\n"
        f"@function(inputs='{there}-out', output='{other}')\n"
        "def two(value, ctx):\n    return value\n"
    )
    checked = called("validate", str(file), "-o", "json")
    assert checked.returncode == EXIT_OK, checked.stderr
    assert [row["query"] for row in json.loads(checked.stdout)] == ["one", "two"]
    asked = run("pipeline", "validate", str(file), "--topics")
    assert asked.returncode == EXIT_FAILED
    *said, last = asked.stderr.strip().splitlines()
    assert "2 problems in shop.py" in last
    assert f"one (shop.py:2): persistent://public/default/{missing} does not exist yet: `run` creates it" in said[0]
    assert "has the schema AVRO, which value=json cannot read" in said[1]
    assert "two (shop.py:5): " in said[2]
    assert "a function writes bytes, text or JSON" in said[2]


QUERY = {"query": "totals", "state": "running", "inputs": ["persistent://public/default/orders"], "output": "csv:/x"}


def rows(answer: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


@pytest.mark.usefixtures("ours")
def test_what_runs_and_what_has_run_here_are_listed_and_reset(run: Run, box: Running, tmp_path: Path) -> None:
    name = tmp_path.name
    body = json.dumps({"queries": [QUERY], "pid": 7}).encode()
    url = f"{box.web_url}/pulsarbox/v1/pipelines/{name}"
    urllib.request.urlopen(urllib.request.Request(url, body, method="PUT"), timeout=60).close()
    held = QueryState(tmp_path, name, "clean")
    held.note(
        state="failed", lastError="shop.py:3: no", inputs=["persistent://acme/shop/raw"], output="parquet:s3a://data/x"
    )
    held.checkpoint.mkdir()
    mine = ("--state", str(tmp_path), "--filter", f'pipeline == "{name}"', "-o", "json")
    clean, totals = rows(run("pipeline", "list", *mine))
    assert (totals["query"], totals["state"], totals["inputs"], totals["pid"]) == ("totals", "running", ["orders"], 7)
    assert (clean["query"], clean["state"], clean["inputs"]) == ("clean", "running", ["acme/shop/raw"])
    busy = called("reset", name, "--state", str(tmp_path), "--yes")
    assert busy.returncode == EXIT_CONFLICT
    assert "is running (process" in busy.stderr
    held.release()
    assert rows(run("pipeline", "list", *mine))[0]["state"] == "failed"
    unreachable = called("list", *mine, "--admin-url", "http://127.0.0.1:1")
    assert [row["query"] for row in rows(unreachable)] == ["clean"]
    assert "cannot query" in unreachable.stderr
    assert called("reset", name, "--state", str(tmp_path)).returncode == EXIT_USAGE
    assert called("reset", name, "clear", "--state", str(tmp_path), "--yes").returncode == EXIT_NOT_FOUND
    assert called("reset", "other", "--state", str(tmp_path), "--yes").returncode == EXIT_NOT_FOUND
    assert held.checkpoint.exists()
    done = called("reset", name, "clean", "--state", str(tmp_path), "--yes")
    assert (done.returncode, done.stdout) == (EXIT_OK, f"reset {name}/clean\n")
    assert "delete s3a://data/x before the next run" in done.stderr
    assert not held.place.exists()


def test_what_is_not_there_is_said_before_spark_starts(run: Run, box: Running, fresh: Callable[[str], str]) -> None:
    letters = fresh("letters").rpartition("/")[2]
    box.admin("PUT", f"persistent/public/default/{letters}")
    box.admin("PUT", f"persistent/public/default/{letters}/subscription/kept")
    for words, code, said in (
        ((letters, "-s", "other"), EXIT_FAILED, "has no subscription other; existing: kept. Create it with"),
        ((f"{letters}-2",), EXIT_NOT_FOUND, f"no topic {letters}-2; `pulsarbox topic list`"),
        (("-n", "public/none"), EXIT_NOT_FOUND, "`pulsarbox dlq list`"),
    ):
        answer = run("pipeline", "dlq-triage", *words, "--url", box.url)
        assert (answer.returncode, said in answer.stderr) == (code, True), answer.stderr
        assert "starting Spark" not in answer.stderr
    export = run("pipeline", "export", f"{letters}-2", "--to", "/nowhere", "--url", box.url)
    assert (export.returncode, "starting Spark" in export.stderr) == (EXIT_NOT_FOUND, False), export.stderr
    nobody = called("dlq-triage", "--url", "pulsar://127.0.0.1:1", "--admin-url", "http://127.0.0.1:2")
    assert nobody.returncode == EXIT_UNREACHABLE
    assert "cannot connect to pulsar://127.0.0.1:1 (--url): " in nobody.stderr
    assert "(its Admin API: http://127.0.0.1:2); see `pulsarbox status`" in nobody.stderr

"""`make test` without Java: Spark tests are skipped, and this is reported."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPARK = ("tests/e2e/spark/test_registering.py::test_it_may_be_registered_by_hand",
         "tests/spark_faults/test_run.py::test_rows_are_there_once_whoever_is_killed[points]")  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with the commands of the script, but without java."""
    for name in ("bash", "env", "dirname", "rm", "git"):
        found = next(each for each in (Path("/usr/bin", name), Path("/bin", name)) if each.exists())
        (tmp_path / name).symlink_to(found)
    return str(tmp_path)


def test_tests_of_spark_are_skipped_and_one_line_says_so(path: str) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environ |= {"PATH": path}
    words = [".ci/tests", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow", *SPARK]
    done = subprocess.run(words, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (
        0,
        "no Java here (java, or JAVA_HOME): the tests of Spark are skipped\n",
    )
    assert done.stdout.count("Spark needs Java: there is no java on PATH, or in JAVA_HOME") == 2, done.stdout
    assert "2 skipped" in done.stdout

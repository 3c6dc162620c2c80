"""Worker processes of tests as forks."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.workers.plugin import Queues

ROOT = Path(__file__).parents[2]

SAMPLE = """
import os, pathlib, warnings
import pytest

HERE = pathlib.Path(__file__).parent
warnings.warn("collected")

def note(name, text):
    (HERE / f"{name}-{os.getpid()}").open("a").write(f"{text}\\n")

@pytest.fixture(scope="session", autouse=True)
def whole():
    note("session", "set up")
    yield
    note("session", "torn down")

@pytest.fixture(scope="module")
def module():
    note("module", "set up")
    yield
    note("module", "torn down")

@pytest.mark.parametrize("number", range(30))
def test_number(number, module, tmp_path):
    note("ran", number)
    note("folder", tmp_path.parent.name)

def test_prints_and_fails():
    print("printed by the worker")
    assert 1 == 2

def test_is_skipped():
    pytest.skip("the reason")

def test_dies():
    os._exit(7)

def test_warns():
    warnings.warn("the warning")
"""


def ran(folder: Path, *words: str) -> str:
    (folder / "test_sample.py").write_text(SAMPLE)
    given = ["-p", "tests.workers.plugin", "--workers", "3", "-p", "no:cacheprovider", "-p", "no:pulsarbox", "-ra"]
    command = [sys.executable, "-m", "pytest", *given, "-c", "/dev/null", f"--rootdir={folder}", *words, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def notes(folder: Path, name: str) -> list[list[str]]:
    return [each.read_text().splitlines() for each in folder.glob(f"{name}-*")]


def test_each_test_runs_once_in_a_worker_and_everything_is_reported(tmp_path: Path) -> None:
    told = ran(tmp_path)
    assert "2 failed, 31 passed, 1 skipped, 2 warnings in" in told
    assert "printed by the worker" in told and "assert 1 == 2" in told
    assert "test_sample.py::test_dies" in told and "ended with 7 during this test" in told
    assert "the reason" in told and "UserWarning: the warning" in told
    assert told.count("UserWarning: collected") == 1, "workers have inherited this warning, and do not send it"
    assert sorted(int(number) for each in notes(tmp_path, "ran") for number in each) == list(range(30))
    workers = [set(each) for each in notes(tmp_path, "folder")]
    assert all(len(folders) == 1 for folders in workers)
    assert len(set.union(*workers)) == len(workers) > 1
    # One worker has died: all others have torn down what they have set up, and nothing twice.
    for name in ("session", "module"):
        assert Counter(map(tuple, notes(tmp_path, name))).keys() <= {("set up", "torn down"), ("set up",)}
        assert sum(each == ["set up"] for each in notes(tmp_path, name)) <= 1


def test_the_first_failure_ends_all_workers(tmp_path: Path) -> None:
    told = ran(tmp_path, "-x", "-k", "number or fails")
    assert "1 failed" in told and "stopping after 1 failures" in told
    assert all(each == ["set up", "torn down"] for each in notes(tmp_path, "session"))


@pytest.mark.parametrize(("tests", "workers"), [(0, 1), (1, 1), (7, 3), (100, 4)])
def test_each_number_is_taken_once_in_the_order_of_the_parts(tests: int, workers: int) -> None:
    queues = Queues(tests, workers)
    firsts = [queues.take(worker) for worker in range(workers)] if tests >= workers else []
    assert firsts == [tests * worker // workers for worker in range(workers)][: len(firsts)]
    taken: list[int | None] = list(firsts)
    while (number := queues.take(0)) is not None:  # the others wait: this one steals all that they have
        taken.append(number)
    assert Counter(taken) == Counter(range(tests))
    assert queues.take(workers - 1) is None


def test_what_a_worker_steals_is_half_of_the_longest_queue_from_its_end() -> None:
    queues = Queues(20, 2)
    assert [queues.take(1) for _ in range(10)] == list(range(10, 20))
    assert [queues.take(1) for _ in range(3)] == [5, 6, 7]
    assert [queues.take(0) for _ in range(5)] == [0, 1, 2, 3, 4]


def test_what_was_not_run_is_run_next() -> None:
    queues = Queues(4, 1)
    assert [queues.take(0), queues.take(0)] == [0, 1]
    queues.give_back(0, [0, 1])
    assert [queues.take(0) for _ in range(5)] == [0, 1, 2, 3, None]

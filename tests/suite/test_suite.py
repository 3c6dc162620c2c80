"""Tests of the suite's runner, on a small suite. `make suite SUITE_DIR=...` runs the real one."""

import socket
from pathlib import Path

import pytest

from tests.suite import alone, running
from tests.suite.box import check_ports, folder_of
from tests.suite.counting import Count
from tests.suite.running import Outcome, SuiteError, files, listed, run_file

TESTS = """
import os, threading, time, unittest

class Some(unittest.TestCase):
    def test_a_passes(self):
        self.assertEqual(threading.active_count(), 1)

    def test_b_fails(self):
        self.assertEqual(1, 2)

    def test_c_hangs(self):
        time.sleep(600)

    def test_d_ends_the_process(self):
        os._exit(3)

    def test_e_is_skipped(self):
        self.skipTest("not today")

    def test_f_fails_in_a_part(self):
        with self.subTest("one"):
            raise ValueError("in a part")

    def test_g_passes(self):
        pass
"""
BROKEN = """
import unittest

class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise ValueError("no room")

    def test_a(self):
        pass

    def test_b(self):
        pass
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some_test.py"
    path.write_text(TESTS)
    return path


def test_every_test_ends_in_some_way(file: Path, tmp_path: Path) -> None:
    names = listed(file, tmp_path)
    assert len(names) == 7
    told: list[Outcome] = []
    ended = run_file(file, names, tmp_path, 5, told.append)
    found = {name.rpartition("test_")[2]: (each.outcome, each.reason) for name, each in ended.items()}
    assert found == {
        "a_passes": ("passed", ""),
        "b_fails": ("failed", "AssertionError: 1 != 2"),
        "c_hangs": ("failed", "it did not end within 5 s"),
        "d_ends_the_process": ("failed", "its process ended (3)"),
        "e_is_skipped": ("skipped", "not today"),
        "f_fails_in_a_part": ("failed", "ValueError: in a part"),
        "g_passes": ("passed", ""),
    }
    assert [each.test for each in told] == names


def test_a_class_that_cannot_be_set_up_fails_with_all_its_tests(tmp_path: Path) -> None:
    path = tmp_path / "broken_test.py"
    path.write_text(BROKEN)
    ended = run_file(path, listed(path, tmp_path), tmp_path)
    assert [(each.outcome, each.reason) for each in ended.values()] == [("failed", "ValueError: no room")] * 2


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "wrong_test.py"
    path.write_text("raise SystemExit(7)")
    with pytest.raises(SuiteError, match=r"wrong_test\.py cannot be read"):
        listed(path, tmp_path)


def test_which_files_are_run(tmp_path: Path) -> None:
    for name in ("pulsar_test", "oauth2_test", "auto_cluster_failover_test", "helper"):
        (tmp_path / f"{name}.py").touch()
    assert [path.stem for path in files(tmp_path)] == ["pulsar_test"]
    with pytest.raises(SuiteError, match="name a checkout of"):
        files(tmp_path / "nothing")
    with pytest.raises(SuiteError, match=r"holds no test-conf/standalone-ssl\.conf"):
        folder_of(tmp_path)
    (tmp_path / "tests" / "test-conf").mkdir(parents=True)
    (tmp_path / "tests" / "test-conf" / "standalone-ssl.conf").touch()
    assert folder_of(tmp_path) == folder_of(tmp_path / "tests") == tmp_path / "tests"


def test_what_passes_without_a_broker_is_found_once(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [name for name in listed(file, tmp_path) if "hangs" not in name]
    found = alone.without_broker({file: names}, tmp_path)
    assert {name.rpartition("test_")[2] for name in found} == {"a_passes", "g_passes"}
    monkeypatch.setattr(alone, "run_file", lambda *_: pytest.fail("they are known"))
    assert alone.without_broker({file: names}, tmp_path) == found
    before = alone.fingerprint([file])
    file.write_text(TESTS + "\n")
    assert alone.fingerprint([file]) != before, "another suite has to be tried again"


def test_the_count() -> None:
    outcomes = [
        Outcome("a", "passed"),
        Outcome("b", "failed", why="Traceback\n  x\nValueError: no\n"),
        Outcome("c", "skipped", why="not today"),
        Outcome("d", "passed"),
    ]
    count = Count(outcomes, frozenset({"d"}))
    assert count.text().splitlines() == [
        "passed 1 of 3 (4 tests, of which 1 need no broker)",
        "failed  b: ValueError: no",
        "skipped c: not today",
    ]
    assert not count.all_well
    assert Count(outcomes[:1], frozenset()).all_well
    ended_badly = Count(outcomes[:1], frozenset(), exit_code=1)
    assert not ended_badly.all_well and ended_badly.text().endswith("the box ended with 1")


def test_a_port_that_is_taken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr("tests.suite.box.PORTS", {str(port): "pulsar"})
        with pytest.raises(SuiteError, match=f"port {port} is taken, and the suite's tests insist on it"):
            check_ports()


def test_nothing_of_the_environment_reaches_the_tests() -> None:
    given = {"PULSARBOX_CONFIG": "x", "http_proxy": "x", "HTTPS_PROXY": "x", "PATH": "/bin"}
    assert running._environ(given) == {"PATH": "/bin"}

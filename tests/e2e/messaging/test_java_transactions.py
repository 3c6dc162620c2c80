"""Transactions of the official Java client with a box that is killed meanwhile."""

import subprocess
from pathlib import Path

import pytest

from tests.tools.box import BoxProcess
from tests.tools.java import JavaError, command

SOURCE = Path(__file__).parents[1] / "java" / "Transactions.java"
SCENARIOS = 7


@pytest.mark.timeout(300)
def test_the_java_client(own_box: BoxProcess) -> None:
    try:
        words = command(SOURCE)
    except JavaError as error:
        pytest.skip(str(error))
    own_box.start()
    told = []
    with subprocess.Popen(
        [*words, own_box.url, "persistent://public/default/java-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as java:
        assert java.stdin is not None and java.stdout is not None and java.stderr is not None
        try:
            for line in java.stdout:
                told.append(line.strip())
                if told[-1] == "restart":
                    own_box.kill()
                    own_box.process = None
                    own_box.start()
                    java.stdin.write("done\n")
                    java.stdin.flush()
            said = java.stderr.read()
        finally:
            java.kill()
    assert java.returncode == 0, said
    assert len([each for each in told if each.startswith("ok ")]) == SCENARIOS, told

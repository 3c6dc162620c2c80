"""Loaded modules of Spark processes are excluded from garbage collection; other processes are unaffected."""

import subprocess
import sys

import pytest

from pulsarbox.spark.worker_gc import REUSED

CODE = """
import gc
from pulsarbox.spark.worker_gc import settle
settle()
once = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
settle()
print(once > 1000, gc.get_freeze_count() - once < 1000)
"""


@pytest.mark.parametrize(("environ", "said"), [({REUSED: "1"}, "True True"), ({}, "False True")])
def test_what_is_loaded_is_left_out_once(environ: dict[str, str], said: str) -> None:
    found = subprocess.run([sys.executable, "-c", CODE], env=environ, capture_output=True, check=True, text=True)
    assert found.stdout.strip() == said

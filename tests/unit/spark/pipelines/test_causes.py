"""What a failed query is told to have failed with."""

import pytest

from pulsarbox.spark.pipelines.causes import line_of, told

WORKER = """[STREAM_FAILED] Query [id = 7a, runId = 8b] terminated with exception: Job aborted due to stage failure: Task 0 in
stage 1.0 failed 3 times, most recent failure: Lost task 0.2: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/venv/pyspark/worker.py", line 99, in main
    process()
  File "/home/ann/shop.py", line 12, in twice
    return value / 0
  File "/home/ann/helper.py", line 3, in divide
    return 1 / 0
{error}

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
Driver stacktrace:
"""  # noqa: E501


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("ZeroDivisionError: division by zero", "shop.py:12: ZeroDivisionError: division by zero"),
        ("AssertionError", "shop.py:12: AssertionError"),
        ("a.b.OddError: one\n  two SQLSTATE: 38000", "shop.py:12: OddError: one two"),
        (
            "pulsarbox.spark.pipelines.processing.FunctionError: shop.py:12: ValueError: no (message 1:2)",
            "shop.py:12: ValueError: no (message 1:2)",
        ),
    ],
)
def test_an_exception_in_a_worker_is_told_with_the_users_line(error: str, said: str) -> None:
    assert told(WORKER.replace("{error}", error), "/home/ann/shop.py") == said


def test_what_no_line_of_the_user_has_to_do_with_is_told_as_it_is() -> None:
    text = WORKER.replace("{error}", "pulsarbox.spark.segments.DataLost: entries from 1:2 are gone")
    assert told(text, "/home/ann/other.py") == "entries from 1:2 are gone"
    sparks = "[SOME_CLASS.OF_ERROR] The state is\nbroken.\n\tat org.apache.spark.X\n\tat org.apache.spark.Y"
    assert told(sparks, "/home/ann/shop.py") == "The state is broken."
    planned = "[A.B] There is no x. Did you mean y? SQLSTATE: 42703;\n'Project ['x]\n+- ~Relation [password=p]"
    assert told(planned, "") == "There is no x. Did you mean y?"
    refused = "requirement failed: no Update mode.\n=== Streaming Query ===\nIdentifier: totals"
    assert told(refused, "") == "requirement failed: no Update mode."


def test_what_is_long_is_cut() -> None:
    assert len(told("x" * 5000, "")) < 700


def test_an_exception_of_ones_own_is_told_with_the_last_line_of_the_file() -> None:
    with pytest.raises(ValueError, match="no") as raised:
        int("no")
    text, is_users = line_of(raised.value, __file__)
    place, _, said = text.partition(": ")
    assert place.startswith("test_causes.py:")
    assert said.startswith("ValueError: invalid literal")
    assert is_users
    assert line_of(raised.value, "/other.py") == (said, False)

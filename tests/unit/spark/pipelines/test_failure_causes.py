"""The reported cause of a failed query."""

import pytest

from pulsarbox.spark.pipelines.failure_causes import innermost_exception, is_misfit, line_of

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
            "pulsarbox.spark.pipelines.message_processing.FunctionError: shop.py:12: ValueError: no (message 1:2)",
            "shop.py:12: ValueError: no (message 1:2)",
        ),
    ],
)
def test_an_exception_in_a_worker_is_told_with_the_users_line(error: str, said: str) -> None:
    assert innermost_exception(WORKER.replace("{error}", error), "/home/ann/shop.py") == said


def test_what_no_line_of_the_user_has_to_do_with_is_told_as_it_is() -> None:
    text = WORKER.replace("{error}", "pulsarbox.spark.topic_segments.DataLost: entries from 1:2 are gone")
    assert innermost_exception(text, "/home/ann/other.py") == "entries from 1:2 are gone"
    sparks = "[SOME_CLASS.OF_ERROR] The state is\nbroken.\n\tat org.apache.spark.X\n\tat org.apache.spark.Y"
    assert innermost_exception(sparks, "/home/ann/shop.py") == "The state is broken."
    planned = "[A.B] There is no x. Did you mean y? SQLSTATE: 42703;\n'Project ['x]\n+- ~Relation [password=p]"
    assert innermost_exception(planned, "") == "There is no x. Did you mean y?"
    refused = "requirement failed: no Update mode.\n=== Streaming Query ===\nIdentifier: totals"
    assert innermost_exception(refused, "") == "requirement failed: no Update mode."


def test_what_spark_and_python_say_around_it_is_left_out() -> None:
    call = "An error occurred while calling o7.load.\n: org.apache.spark.SparkException: "
    assert innermost_exception(
        f"{call}[DATA_SOURCE_NOT_FOUND] Failed to find x. SQLSTATE: 42K02\n\tat a.B$.c(D.scala:1)", ""
    ) == ("Failed to find x.")
    text = "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 1, position 6) ==\n1 / 0\n^^^^^\n"
    assert innermost_exception(text, "") == "Division by zero."
    why = "Caused by: a.B: [MALFORMED_RECORD] Malformed. SQLSTATE: 22023\n\t... 1 more\n"
    unread = f"{call}[FAILED_READ_FILE.NO_HINT] Error while reading file:///x.csv.  SQLSTATE: KD001\n\tat a.b(C:1)\n"
    assert (
        innermost_exception(f"{unread}Caused by: a.C: outer\n\tat a.b(C:1)\n{why}", "")
        == "Error while reading file:///x.csv: Malformed."
    )


def test_the_reason_of_what_spark_says_vaguely_is_its_innermost_cause() -> None:
    text = "Error while instantiating 'a.B':\n\nJVM stacktrace:\njava.lang.E: Error\n\tat a.b(C:1)\n"
    cause = "Caused by: a.E: [INVALID_CONF_VALUE.TYPE_MISMATCH] The value 'x' is invalid. SQLSTATE: 22022\n"
    assert innermost_exception(text + cause, "") == "Error while instantiating 'a.B': The value 'x' is invalid."


@pytest.mark.parametrize(
    ("text", "misfit"),
    [
        ("assertion failed: There are [1] sources in the checkpoint offsets and now there are [2] sources", True),
        ("[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match existing state key schema.", True),
        ("[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Cannot restart streaming query", True),
        ("[DIVIDE_BY_ZERO] Division by zero.", False),
    ],
)
def test_what_is_not_the_query_of_its_checkpoint_is_known(text: str, misfit: bool) -> None:
    assert is_misfit(text) == misfit


def test_what_is_long_is_cut() -> None:
    assert len(innermost_exception("x" * 5000, "")) < 700


def test_an_exception_of_ones_own_is_told_with_the_last_line_of_the_file() -> None:
    with pytest.raises(ValueError, match="no") as raised:
        int("no")
    text, is_users = line_of(raised.value, __file__)
    place, _, said = text.partition(": ")
    assert place.startswith("test_failure_causes.py:")
    assert said.startswith("ValueError: invalid literal")
    assert is_users
    assert line_of(raised.value, "/other.py") == (said, False)

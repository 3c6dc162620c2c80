"""Errors of the formats without the frames of this package."""

import traceback
from collections.abc import Iterator

import pytest

from pulsarbox.errors import PulsarBoxError
from pulsarbox.spark.brief_errors import brief, brief_rows


def deep(error: Exception) -> None:
    try:
        raise KeyError("the cause")
    except KeyError as cause:
        raise error from cause


@brief
def called(error: Exception) -> None:
    deep(error)


@brief_rows
def rows(error: Exception) -> Iterator[int]:
    yield 1
    deep(error)


def text(error: Exception) -> str:
    return "".join(traceback.format_exception(error))


def test_an_error_with_a_message_for_users_has_no_frames_of_ours() -> None:
    with pytest.raises(PulsarBoxError) as found:
        called(PulsarBoxError("what failed, and what to do"))
    assert "in deep" not in text(found.value) and "the cause" not in text(found.value)
    assert text(found.value).endswith("what failed, and what to do\n")
    with pytest.raises(PulsarBoxError) as later:
        list(rows(PulsarBoxError("later")))
    assert "in deep" not in text(later.value)


def test_another_exception_keeps_its_traceback() -> None:
    with pytest.raises(ValueError, match="a bug") as found:
        called(ValueError("a bug"))
    assert "in deep" in text(found.value) and "the cause" in text(found.value)
    with pytest.raises(ValueError, match="a bug") as later:
        list(rows(ValueError("a bug")))
    assert "in deep" in text(later.value)


def test_results_pass() -> None:
    assert brief(lambda number: number + 1)(1) == 2
    assert list(brief_rows(lambda: iter([1, 2]))()) == [1, 2]

"""Results as tables on a terminal."""

from pulsarbox.cli.sql.result_table import ResultTable


def test_numbers_are_aligned_right_and_nulls_are_named() -> None:
    found = list(ResultTable(["name", "n"], 80).lines([{"name": "a", "n": 1}, {"name": None, "n": 20}]))
    assert found == ["name     n", "a        1", "NULL    20"]


def test_long_texts_are_shortened_only_if_the_terminal_is_too_narrow() -> None:
    row = {"a": "x" * 100, "b": 1}
    assert "x" * 100 in list(ResultTable(["a", "b"], 200).lines([row]))[1]
    assert list(ResultTable(["a", "b"], 80).lines([row]))[1] == "x" * 59 + "…     1"


def test_a_table_that_does_not_fit_has_one_field_per_line() -> None:
    row = dict.fromkeys([f"column{number}" for number in range(10)], "x" * 30)
    found = list(ResultTable(list(row), 80).lines([row, row]))
    assert found[0] == "row 1" and found[1] == "  column0  " + "x" * 30 and found[11] == "row 2"


def test_later_pages_keep_the_widths_and_have_no_header() -> None:
    table = ResultTable(["a"], 80)
    assert list(table.lines([{"a": "xxxxxxxx"}])) == ["a", "xxxxxxxx"]
    assert list(table.lines([{"a": "y"}])) == ["y"]


def test_no_rows_leave_the_header() -> None:
    assert list(ResultTable(["a", "b"], 80).lines([])) == ["a     b"]

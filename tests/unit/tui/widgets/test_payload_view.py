"""The preview of payloads: long lines are wrapped with a sign."""

import pytest

from pulsarbox.tui.widgets.payload_view import wrapped


@pytest.mark.parametrize(
    ("line", "width", "rows"),
    [
        ("", 5, [""]),
        ("fits", 4, ["fits"]),
        ("abcdefgh", 5, ["abcde", "↪ fgh"]),
        ("a line of words", 8, ["a line ", "↪ of ", "↪ words"]),
        ("日本語日本", 5, ["日本", "↪ 語", "↪ 日", "↪ 本"]),
    ],
)
def test_further_rows_of_a_long_line_begin_with_a_sign(line: str, width: int, rows: list[str]) -> None:
    assert wrapped(line, width) == rows

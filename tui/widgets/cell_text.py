"""Texts of exactly the width of a column, and the blanks around them."""

from rich.cells import cell_len, set_cell_size


def split_blanks(text: str) -> tuple[str, str, str]:
    """Return the blanks before the words of a text, the words, and the blanks behind them."""
    words = text.strip()
    before, _, behind = text.partition(words) if words else ("", "", text)
    return before, words, behind


def fitted(text: str, width: int, right: bool) -> str:
    """Fit a text into exactly ``width`` cells, counting wide characters as two. Ignores the rest of a long text."""
    text = text[: 4 * width + 1]
    if not text.isascii() and (cells := cell_len(text)) != len(text):
        return set_cell_size(text if cells <= width else f"{set_cell_size(text, width - 1).rstrip()}…", width)
    if len(text) > width:
        return text[: width - 1] + "…"
    return text.rjust(width) if right else text.ljust(width)

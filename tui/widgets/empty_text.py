"""Text of an empty table or map: why it is empty, and the command to try next."""

from typing import Final

from rich.cells import cell_len

from pulsarbox.tui.widgets.wrapping import rows_with_command

_HIGH: Final = 6
"""Lines from which the text is in the middle."""
_SENTENCE: Final = 72
"""Cells after which a sentence in the middle is wrapped."""


def empty_lines(text: str, width: int, room: int) -> list[tuple[str, str]]:
    """Return the lines of a text for ``room`` lines, with their looks ``dim`` or ``command``.

    If there is much room, they are in its middle, and a blank line is before the command.
    """
    if room < _HIGH:
        found = [(row, "command" if is_command else "dim") for row, is_command in rows_with_command(text, width, room)]
        return [("", "dim"), *found] if len(found) < room else found
    rows = rows_with_command(text, width, room - 1, _SENTENCE)
    command = [row for row, is_command in rows if is_command]
    before = " " * ((width - max(map(cell_len, command), default=0)) // 2)
    lines = [(" " * ((width - cell_len(row)) // 2) + row, "dim") for row, is_command in rows if not is_command]
    if command:
        lines += [("", "dim"), *((f"{before}{row}", "command") for row in command)]
    return [("", "dim")] * ((room - len(lines)) // 3) + lines

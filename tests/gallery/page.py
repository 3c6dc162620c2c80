"""The page with all pictures: a row per view, a column per theme and size."""

from collections.abc import Sequence
from html import escape

_HEAD = """<!doctype html>
<meta charset="utf-8">
<title>Gallery of the dashboard</title>
<style>
body { font: 14px sans-serif; margin: 1em; }
table { border-collapse: collapse; }
th { position: sticky; top: 0; background: #fff; text-align: left; padding: 4px; }
td { vertical-align: top; padding: 4px; }
img { display: block; width: 480px; }
</style>
"""


def file_of(view: str, theme: str, size: tuple[int, int]) -> str:
    """Return the name of the file of a picture."""
    return f"{view}-{theme}-{size[0]}x{size[1]}.svg"


def page_of(views: Sequence[str], themes: Sequence[str], sizes: Sequence[tuple[int, int]]) -> str:
    """Return the HTML. A click on a picture shows it alone."""
    columns = [(theme, size) for size in sizes for theme in themes]
    head = "".join(f"<th>{escape(theme)} {size[0]}x{size[1]}</th>" for theme, size in columns)
    rows = "".join(f'<tr id="{escape(view)}"><th>{escape(view)}</th>{_cells(view, columns)}</tr>\n' for view in views)
    return f"{_HEAD}<table>\n<tr><th></th>{head}</tr>\n{rows}</table>\n"


def _cells(view: str, columns: Sequence[tuple[str, tuple[int, int]]]) -> str:
    files = (escape(file_of(view, *column)) for column in columns)
    return "".join(f'<td><a href="{file}"><img loading="lazy" src="{file}" alt="{file}"></a></td>' for file in files)

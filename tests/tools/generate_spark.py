"""Generator of the tables of options and columns in docs/spark.md.

Run `python -m tests.tools.generate_spark`; a test verifies that the document is up to date.
"""

from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from pulsarbox.spark.decode.row_columns import BASIC, MORE, MetadataColumn
from pulsarbox.spark.options import BATCH, STREAM, WRITE, SparkOptions, row

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "spark.md"
OPTIONS: Final = "<!-- options, from pulsarbox/spark/options.py by tests/tools/generate_spark.py -->\n"
COLUMNS: Final = "<!-- columns, from pulsarbox/spark/decode/row_columns.py by tests/tools/generate_spark.py -->\n"
END: Final = "<!-- end -->\n"
_USES: Final = {BATCH: "read", STREAM: "readStream", WRITE: "write"}


def options() -> str:
    """Return the table of options."""
    lines = ["| option | values | default | for | meaning |", "|---|---|---|---|---|"]
    for each in fields(SparkOptions):
        about = row(each)
        names = " ".join(f"`{name}`" for name in (about.name, *about.aliases))
        uses = "all" if len(about.used) == len(_USES) else ", ".join(_USES[use] for use in about.used)
        lines.append(
            f"| {names} | {about.kind.words} | {about.shown or _default(each.default)} | {uses} | {about.meaning} |"
        )
    return "\n".join(lines) + "\n"


def _default(value: Any) -> str:
    if value in ("", (), None):
        return "-"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def columns() -> str:
    """Return the table of columns."""
    lines = ["| column | type | `columns` | meaning |", "|---|---|---|---|"]
    lines += [_line(each, "basic, all") for each in BASIC] + [_line(each, "all") for each in MORE]
    return "\n".join(lines) + "\n"


def _line(column: MetadataColumn, words: str) -> str:
    return f"| `{column.name}` | {column.type} | {words} | {column.meaning} |"


def generate(text: str) -> str:
    """Return the document with updated tables."""
    for begin, table in ((OPTIONS, options()), (COLUMNS, columns())):
        before, mark, rest = text.partition(begin)
        assert mark, begin
        text = before + begin + table + END + rest.partition(END)[2]
    return text


if __name__ == "__main__":
    DOCUMENT.write_text(generate(DOCUMENT.read_text("utf-8")), "utf-8")

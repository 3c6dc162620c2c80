"""Generator of the endpoints in docs/COMPATIBILITY.md that answer 501, from the table of endpoints.

Run `python -m tests.tools.generate_endpoints`; a test verifies that the document is up to date.
"""

from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

from pulsarbox.server.http.admin_endpoints import NEVER, endpoints

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "COMPATIBILITY.md"
BEGIN: Final = "<!-- from pulsarbox/server/http/admin-endpoints.tsv by tests/tools/generate_endpoints.py -->\n"
END: Final = "<!-- end -->\n"


def table() -> str:
    """Return a table with a row per reason; methods of the same path are merged."""
    rows = [row for row in endpoints() if not row.served]
    lines = ["| Reason | Endpoints |", "|---|---|"]
    for word, reason in NEVER.items():
        of_word = [row for row in rows if row.standing == f"never:{word}"]
        paths = (
            f"`{' '.join(row.method for row in group)} {path.removeprefix('/admin')}`"
            for path, group in groupby(of_word, attrgetter("path"))
        )
        lines.append(f"| {reason} | {', '.join(paths)} |")
    return "\n".join(lines) + "\n"


def section() -> str:
    """Return the generated section."""
    served = sum(row.served for row in endpoints())
    return (
        f"Of the {len(endpoints())} endpoints of the Admin API, {served} are supported. Endpoints that a single-process"
        f" broker cannot offer return 501:\n\n{table()}"
    )


def generate(text: str) -> str:
    """Return the document with an updated section."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + section() + END + rest.partition(END)[2]


if __name__ == "__main__":
    DOCUMENT.write_text(generate(DOCUMENT.read_text("utf-8")), "utf-8")

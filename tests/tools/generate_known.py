"""Generator of the known differences of `pulsarbox admin` in docs/COMPATIBILITY.md.

Run `python -m tests.tools.generate_known` after a change of tests/differences/known_admin.py; a test verifies that the
document is up to date.
"""

from pathlib import Path
from typing import Final

from tests.differences.known_admin import TABLE

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "COMPATIBILITY.md"
BEGIN: Final = "<!-- from tests/differences/known_admin.py by tests/tools/generate_known.py -->\n"
END: Final = "<!-- end -->\n"


def section() -> str:
    """Return the generated section."""
    rows = (f"| {known.what} | {known.pulsar} | {known.box} | {known.why} |" for known in TABLE)
    return "\n".join(["| subject | Apache Pulsar | pulsarbox | reason |", "|---|---|---|---|", *rows]) + "\n"


def generate(text: str) -> str:
    """Return the document with an updated section."""
    before, mark, rest = text.partition(BEGIN)
    assert mark, f"{DOCUMENT} lacks the marker of the table"
    return before + BEGIN + section() + END + rest.partition(END)[2]


if __name__ == "__main__":
    DOCUMENT.write_text(generate(DOCUMENT.read_text("utf-8")), "utf-8")

"""Write the known differences of `pulsarbox admin` into docs/COMPATIBILITY.md, from tests/differences/known_admin.py.

Run `python -m tests.tools.generate_known`; a test holds that the document is current.
"""

from pathlib import Path
from typing import Final

from tests.differences.known_admin import TABLE

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "COMPATIBILITY.md"
BEGIN: Final = "<!-- from tests/differences/known_admin.py by tests/tools/generate_known.py -->\n"
END: Final = "<!-- end -->\n"


def section() -> str:
    """What stands between the two marks."""
    rows = (f"| {known.what} | {known.pulsar} | {known.box} | {known.why} |" for known in TABLE)
    return "\n".join(["| what | of a Pulsar | of a box | why |", "|---|---|---|---|", *rows]) + "\n"


def generate(text: str) -> str:
    """The document with the section as it should be."""
    before, mark, rest = text.partition(BEGIN)
    assert mark, f"{DOCUMENT} has no place for the table"
    return before + BEGIN + section() + END + rest.partition(END)[2]


if __name__ == "__main__":
    DOCUMENT.write_text(generate(DOCUMENT.read_text("utf-8")), "utf-8")

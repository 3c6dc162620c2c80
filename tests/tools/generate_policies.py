"""Generator of the table of policies in docs/policies.md.

Run `python -m tests.tools.generate_policies`; a test verifies that the document is up to date.
"""

from pathlib import Path
from typing import Final

from pulsarbox.protocol.policies.row import PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.shapes import ObjectShape, ValueShape
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, OTHER_ROWS, ROWS

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "policies.md"
BEGIN: Final = "<!-- from pulsarbox/protocol/policies/table.py by tests/tools/generate_policies.py -->\n"
END: Final = "<!-- end -->\n"


def section() -> str:
    """Return the generated section."""
    lines = [
        "| Policy | Description | Value | Namespaces | Topics | Broker settings |",
        "|---|---|---|---|---|---|",
    ]
    rows = sorted((*ROWS, BACKLOG_QUOTA, *OTHER_ROWS), key=lambda each: each.name)
    lines += [_line(row) for row in rows]
    kept = [row for row in rows if row.stored_only]
    lines += ["", "Stored and shown, but without effect:", "", "| Policy | Reason |", "|---|---|"]
    lines += [f"| `{row.name}` | {row.stored_only} |" for row in kept]
    return "\n".join(lines) + "\n"


def _line(row: PolicyRow) -> str:
    settings = ", ".join(f"`{name}`" for name in row.settings) or "-"
    cells = (f"`{row.name}`", row.meaning, _value(row.shape), _place(row.namespace), _place(row.topic), settings)
    return f"| {' | '.join(cells)} |"


def _value(shape: ValueShape) -> str:
    if isinstance(shape, ObjectShape):
        members = ", ".join(f"`{name}`" for name in shape.members)
        return members if shape.form is None else f"{shape.form.expected}; or {members}"
    return shape.expected


def _place(place: PolicyEndpoint | None) -> str:
    return "-" if place is None else f"`{place.path}`"


def generate(text: str) -> str:
    """Return the document with an updated section."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + section() + END + rest.partition(END)[2]


if __name__ == "__main__":
    DOCUMENT.write_text(generate(DOCUMENT.read_text("utf-8")), "utf-8")

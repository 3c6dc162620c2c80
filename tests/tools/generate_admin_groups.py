"""Generator of the table of groups in docs/pulsar-admin.md, from the facts about pulsar-admin.

Run `python -m tests.tools.generate_admin_groups` after a change of tests/unit/cli/pulsar_admin/commands.tsv; a test
verifies that the document is up to date.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pulsarbox.cli.pulsar_admin import table

ROOT: Final = Path(__file__).parents[2]
DOCUMENT: Final = ROOT / "docs" / "pulsar-admin.md"
FACTS: Final = ROOT / "tests" / "unit" / "cli" / "pulsar_admin" / "commands.tsv"
BEGIN: Final = "<!-- from tests/unit/cli/pulsar_admin/commands.tsv by tests/tools/generate_admin_groups.py -->\n"
END: Final = "<!-- end -->\n"


def section() -> str:
    """Return the generated section: groups, and the numbers of their commands and options."""
    commands, hidden, options = _counts()
    rows = [
        f"| {_called(group)} | {summary.rstrip('.')} | {commands[group]} | {hidden[group] or ''} | {options[group]} |"
        for group, summary in {**table.GROUPS, **table.OLD_GROUPS}.items()
    ]
    total = f"| **all** | | {commands.total()} | {hidden.total()} | {options.total()} |"
    return (
        "\n".join(["| group | purpose | commands | hidden | options |", "|---|---|---|---|---|", *rows, total]) + "\n"
    )


def _counts() -> tuple[Counter[str], Counter[str], Counter[str]]:
    commands, hidden, options = Counter[str](), Counter[str](), Counter[str]()
    for row in _rows():
        commands[row["group"]] += 1
        hidden[row["group"]] += row["hidden"] == "hidden"
        options[row["group"]] += sum(not word.startswith("<>") for word in row["parameters"].split())
    return commands, hidden, options


def _rows() -> Iterator[dict[str, str]]:
    with FACTS.open(encoding="utf-8", newline="") as lines:
        yield from (row for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if row["command"])


def _called(group: str) -> str:
    return ", ".join(f"`{name}`" for name in (group, *(alias for alias, its in table.ALIASES.items() if its == group)))


def generate(text: str) -> str:
    """Return the document with an updated section."""
    before, mark, rest = text.partition(BEGIN)
    assert mark, f"{DOCUMENT} lacks the marker of the table"
    return before + BEGIN + section() + END + rest.partition(END)[2]


if __name__ == "__main__":
    DOCUMENT.write_text(generate(DOCUMENT.read_text("utf-8")), "utf-8")

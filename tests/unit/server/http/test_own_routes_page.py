"""Every path below /pulsarbox/v1, live view column and cause is documented."""

import re
from pathlib import Path

import pytest

from pulsarbox.broker.stats.blocked_reason_text import TEXTS
from pulsarbox.server.http.route_table import all_routes
from pulsarbox.server.live.table import VIEWS

DOCS = Path(__file__).parents[4] / "docs"
OWN = "/pulsarbox/v1/"
PATHS = sorted({f"{row.method} {row.path}" for row in all_routes().rows if row.path.startswith(OWN)})


def literal(path: str) -> str:
    """Return a path up to its first parameter."""
    return path.partition("{")[0].rstrip("/")


@pytest.mark.parametrize("path", sorted({literal(each.partition(" ")[2]) for each in PATHS}))
def test_every_path_of_our_own_is_in_a_document(path: str) -> None:
    assert any(path in page.read_text("utf-8") for page in DOCS.glob("*.md")), f"no page of docs/ has {path}"


@pytest.mark.parametrize("name", VIEWS)
def test_every_column_of_a_live_view_is_in_the_table(name: str) -> None:
    page = (DOCS / "observing.md").read_text("utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
    told = re.findall("`([A-Za-z0-9]+)`", row.partition("|")[2].partition("|")[2])
    lacking = [column for column in VIEWS[name].columns if column not in told]
    assert not lacking


@pytest.mark.parametrize("reason", TEXTS)
def test_every_reason_why_nothing_is_sent_is_in_the_list(reason: str) -> None:
    assert f"`{reason}`" in (DOCS / "admin.md").read_text("utf-8").partition("The reasons (`why`)")[2]

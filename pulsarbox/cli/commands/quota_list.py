"""Limits of a whole box as table rows, the fullest first."""

from typing import TYPE_CHECKING, Any, Final

from pulsarbox.cli.commands.stats_text import duration
from pulsarbox.cli.common.output import Row, TableOutput
from pulsarbox.cli.connect.admin_client import short
from pulsarbox.protocol.policies.policy_values import AGE_QUOTA, SIZE_QUOTA

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

FIELDS: Final = (
    *("scope", "subject", "topic", "subscription", "policy", "used", "limit", "unit", "share", "level", "held"),
    *("holding", "then", "evictions", "waiting"),
)
COLUMNS: Final = ("policy", "subject", "used", "limit", "share", "level", "held", "waiting")
WIDE: Final = ("scope", "then", "evictions")
LEAST: Final = ("level", "waiting", "used", "limit")
CUT: Final = {"policy": 12, "subject": 14}
_TITLES: Final = {"subject": "OF", "level": "SET BY", "held": "THROTTLED"}
_QUOTAS: Final = {SIZE_QUOTA: "backlog size", AGE_QUOTA: "backlog age"}


def limits_of_box(admin: "Admin", scope: dict[str, str]) -> TableOutput:
    """Return the limits in effect and their use, of the topics that ``scope`` selects, the fullest first."""
    rows = admin.top_rows("quotas", sort="share", order="desc", **scope)
    return TableOutput(
        rows,
        COLUMNS,
        name="subject",
        titles=_TITLES,
        shown=shown,
        cut=CUT,
        least=LEAST,
        wide=WIDE,
        fields=FIELDS,
        empty="no limits; limit a backlog: pulsarbox quota set orders --size 2G --then hold",
    )


def shown(row: Row) -> Row:
    """Return a limit with the cells of a table."""
    from pulsarbox.tui.widgets.numbers import in_unit

    unit, share, held = row.get("unit") or "", row.get("share"), row.get("held") or 0
    return row | {
        "policy": _QUOTAS.get(str(row["policy"]), row["policy"]),
        "subject": _subject(row),
        "used": in_unit(row.get("used"), unit),
        "limit": in_unit(row.get("limit"), unit),
        "share": None if share is None else f"{share:.0%}",
        "held": ", ".join([*(["now"] if row.get("holding") else []), *([duration(held / 1000)] if held else [])]),
    }


def _subject(row: Row) -> Any:
    if not row.get("topic"):
        return row["subject"]
    return f"{row['subscription']} on {short(row['topic'])}" if row.get("subscription") else short(row["topic"])

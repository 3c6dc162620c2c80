"""Groups of dead letters as output: a table by reason, the groups themselves in the other formats."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pulsarbox.cli.common.output import OutputOptions, Row, TableOutput
from pulsarbox.cli.common.table_cells import readable
from pulsarbox.cli.connect.admin_client import short

COLUMNS: Final = ("count", "reason", "origin", "shape", "fingerprint", "sample")
_LEAST: Final = ("sample", "shape", "origin", "returned", "reason")
_CUT: Final = {"reason": 20, "origin": 12, "shape": 10}
_FIELDS: Final = (
    *("fingerprint", "count", "reason", "origin", "subscription", "shape", "first", "last", "sample", "sampleTopic"),
)


def groups_output(
    groups: Iterable[Mapping[str, Any]], output: OutputOptions, columns: Sequence[str] = COLUMNS
) -> TableOutput:
    """Return groups of the Admin API, or of a triage, for an output format, with short names of topics."""
    rows = [
        {**each, "origin": short(each["origin"]) if each["origin"] else "", "sampleTopic": short(each["sampleTopic"])}
        for each in groups
    ]
    if output.is_table:
        rows = folded(rows, with_shapes=output.form == "wide")
    return TableOutput(
        rows,
        columns,
        name="fingerprint",
        shown=readable(times=("first", "last")),
        cut=_CUT,
        least=_LEAST,
        wide=("subscription", "first", "last"),
        fields=_FIELDS,
        empty="no dead letters",
    )


def folded(rows: Sequence[Row], *, with_shapes: bool) -> list[Row]:
    """Return a row per reason, followed by one per shape if it has several and ``with_shapes``."""
    from pulsarbox.protocol.dead_letters.reason_groups import by_reason

    found = []
    for group in by_reason(rows):
        shapes = group.shapes
        several = {"shape": f"{len(shapes)} shapes"} if len(shapes) > 1 else {}
        found.append(group.row | several)
        if with_shapes and several:
            found += [{**each, "reason": "└ of these", "origin": ""} for each in shapes]
    return found

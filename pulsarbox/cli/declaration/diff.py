"""``pulsarbox diff``: compare a box with what a file declares."""

import json
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import EXIT_FAILED
from pulsarbox.cli.common.output import OutputOptions, Row, TableOutput, form_option, show
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.connect.admin_client import short, with_admin
from pulsarbox.cli.declaration.declared_steps import DeclaredSteps, declaration_options

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin
    from pulsarbox.declaration.plan import Step

_COLUMNS: Final = ("change", "object", "present", "declared", "place")
_FIELDS: Final = ("change", "object", "name", "present", "declared", "place")
_CUT: Final = {"object": 16, "present": 12, "declared": 12, "place": 12}
_SHOWN_MAX: Final = 60
"""Characters of a value in the table; the other formats have all."""


@click.command()
@declaration_options
@form_option
@with_admin
def diff(files: tuple[str, ...], token_key: str | None, prune: bool, output: OutputOptions, admin: "Admin") -> None:
    """Show what `pulsarbox apply` with the same options would change, and change nothing.

    Fields: change (create, set, unset, ...), object, name, present and declared (values, as people write them in the
    table, in JSON otherwise), place (file and line).

    \b
    Exit codes:
      0  the box is as declared
      1  it differs
      2  a file is invalid
      4  an object exists and cannot be changed as declared

    \b
    Examples:
      pulsarbox diff -f box.yaml
      pulsarbox diff -f box.yaml -o json
    """
    found = DeclaredSteps(admin, files, token_key, prune=prune)
    if not found.steps:
        if output.form in ("json", "yaml", "csv"):
            show(output, lambda: TableOutput([], fields=_FIELDS))
        notify("no difference")
        return
    rows = [_row(each, output.form) for each in found.steps]
    show(output, lambda: TableOutput(rows, _COLUMNS, cut=_CUT, least=("place",), fields=_FIELDS))
    raise click.exceptions.Exit(EXIT_FAILED)


def _row(step: "Step", form: str) -> Row:
    present, declared, name = step.present, step.declared, step.name
    if form in ("table", "wide"):
        name, policy = short(name), step.what.partition(" of ")[0]
        present, declared = _written(policy, present), _written(policy, declared)
    if form == "table":
        present, declared = _brief(present), _brief(declared)
    return {
        "change": step.verb,
        "object": f"{step.what} {name}",
        "name": step.name,
        "present": present,
        "declared": declared,
        "place": "" if step.place is None else str(step.place),
    }


def _written(policy: str, value: Any) -> Any:
    """Return the value of a policy as people write it; that of another object as it is."""
    from pulsarbox.protocol.policies.table import row_of
    from pulsarbox.protocol.policies.written_value import shown

    try:
        row = row_of(policy)
    except KeyError:
        return value
    return None if value is None else shown(row.shape, value)


def _brief(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."

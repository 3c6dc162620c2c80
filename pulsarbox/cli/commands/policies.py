"""Shared part of `ns policy` and `topic policy`: show, set and unset a policy by the policy table."""

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.commands.unsubscribed_text import rule_words
from pulsarbox.cli.common.confirmation import carry_out
from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.output import OutputOptions, Row, TableOutput, show
from pulsarbox.cli.connect.admin_client import did_you_mean, suggesting, topic_named
from pulsarbox.names import TopicName

if TYPE_CHECKING:  # the table takes longer to import than `topic list` has to do
    from pulsarbox.client.admin import Admin
    from pulsarbox.protocol.policies.row import PolicyEndpoint, PolicyRow

_COLUMNS: Final = ("policy", "setting", "level", "applied")
_SETTING_MAX: Final = 30
"""Characters of a value in a table that would not fit the terminal."""
_QUOTAS: Final = "change backlog quotas with `pulsarbox quota set` and `pulsarbox quota unset`"


class Subject:
    """Policies of a topic or a namespace."""

    def __init__(self, admin: "Admin", of: TopicName | str) -> None:
        """``of`` is a topic, or ``tenant/namespace``."""
        self._admin = admin
        self._of = of
        self.name = str(of)

    # Reading

    def show(self, output: OutputOptions, policy: str) -> None:
        """Print all policies, or one, with value and level."""
        show(output, partial(self._one, policy) if policy else self._all)

    def _all(self) -> TableOutput:
        rows = [_row(name, found) for name, found in self._ask().items()]
        return TableOutput(rows, _COLUMNS, name="policy", cut={"setting": _SETTING_MAX})

    def _one(self, policy: str) -> TableOutput:
        self._row(policy)
        found = {name: each for name, each in self._ask().items() if name.partition(":")[0] == policy}
        rows = [_row(name, each) for name, each in found.items()]
        if len(rows) > 1:
            return TableOutput(rows, _COLUMNS, name="policy")
        lines = [f"{rows[0]['setting']}    ({rows[0]['level']})"]
        if rows[0]["stored_only"]:
            lines.append(f"No effect: {rows[0]['stored_only']}.")
        if "unsubscribed" in rows[0]:  # pulsarbox only, with retention
            lines.append(rule_words(rows[0]["unsubscribed"]))
        return TableOutput(rows, name="policy", lines=lines)

    def _ask(self) -> dict[str, dict[str, Any]]:
        with self.suggesting():
            return self._admin.policies(self._of)

    # Writing

    def set(self, policy: str, text: str, *, dry_run: bool) -> None:
        """Set a policy to the value of a command line argument."""
        if self._is_default(policy, text):
            self.unset(policy, dry_run=dry_run)
            return
        row, place = self._place(policy)
        value = _value(row, text)
        carry_out([(f"set {policy} of", self.name, partial(self._set, row, place, value))], dry_run=dry_run)
        if not row.sets(value):
            click.echo("pulsarbox: this value sets no limit of its own: that of the next level applies", err=True)

    def unset(self, policy: str, *, dry_run: bool) -> None:
        """Remove a policy; the value of the level above applies again."""
        row, place = self._place(policy)
        carry_out([(f"unset {policy} of", self.name, partial(self._unset, row, place))], dry_run=dry_run)

    def _is_default(self, policy: str, text: str) -> bool:
        from pulsarbox.protocol.policies.row import DEFAULT
        from pulsarbox.protocol.policies.shapes import Text

        return text == DEFAULT and not isinstance(self._row(policy).shape, Text)

    def _set(self, row: "PolicyRow", place: "PolicyEndpoint", value: Any) -> None:
        from pulsarbox.protocol.policies.table import RESOURCE_GROUP_NAME

        with self.suggesting():
            if row is RESOURCE_GROUP_NAME:
                from pulsarbox.client.admin import quoted

                self._admin.ask("POST", f"{self.path}/{place.path}/{quoted(value)}")
            elif place.local:
                self._admin.set_text(place.verb, f"{self.path}/{place.path}", value)
            elif place.query:
                self._admin.ask(place.verb, f"{self.path}/{place.path}", **{place.query: str(value)})
            else:
                self._report(row, place.verb, place, value)

    def _unset(self, row: "PolicyRow", place: "PolicyEndpoint") -> None:
        from pulsarbox.protocol.policies.row import Blank, Silent

        with self.suggesting():
            if place.removed:
                self._report(row, "DELETE", replace(place, path=place.removal or place.path))
            elif place.blank is Blank.REMOVES:
                self._admin.ask(place.verb, f"{self.path}/{place.path}")
            else:
                if isinstance(place.unset, Silent) or place.unset == []:
                    raise Misused(f"{row.name} cannot be removed, only changed")
                self._admin.ask(place.verb, f"{self.path}/{place.path}", place.unset)

    def _report(self, row: "PolicyRow", method: str, place: "PolicyEndpoint", value: Any = None) -> None:
        if row.own:
            self._admin.own_policy(method, self._of, place.path, value)
        else:
            self._admin.ask(method, f"{self.path}/{place.path}", value)

    # Paths and names

    @property
    def path(self) -> str:
        """Path below /admin/v2."""
        from pulsarbox.client.admin import path_of, quoted

        if isinstance(self._of, TopicName):
            return path_of(self._of)
        return f"/namespaces/{quoted(*self._of.split('/'))}"

    def suggesting(self) -> Any:
        """Append name suggestions to errors; see ``admin_client.suggesting``."""
        topic = self._of if isinstance(self._of, TopicName) else topic_named(f"{self._of}/-")
        return suggesting(self._admin, topic)

    def _place(self, policy: str) -> "tuple[PolicyRow, PolicyEndpoint]":
        from pulsarbox.protocol.policies.table import BACKLOG_QUOTA

        row = self._row(policy)
        if row is BACKLOG_QUOTA:
            raise Misused(_QUOTAS)
        place = row.topic if isinstance(self._of, TopicName) else row.namespace
        if place is None:
            other = "namespaces" if isinstance(self._of, TopicName) else "topics"
            raise Misused(f"{policy} applies to {other} only")
        return row, place

    def _row(self, policy: str) -> "PolicyRow":
        from pulsarbox.protocol.policies.table import NAMES, row_of

        if policy not in NAMES:
            raise Misused(f"unknown policy '{policy}'{did_you_mean(policy, NAMES)}")
        return row_of(policy)


def _row(name: str, found: dict[str, Any]) -> Row:
    """Return a policy as a row: ``setting`` is its value as accepted by `policy`, ``applied`` whether it has effect."""
    from pulsarbox.protocol.policies.table import row_of

    setting = _shown(row_of(name), found["value"])
    return {"policy": name, "setting": setting, "applied": not found["stored_only"], **found}


def _shown(row: "PolicyRow", value: Any) -> str:
    from pulsarbox.protocol.policies.policy_values import meaningful

    return "" if value is None else row.shape.text(meaningful(value))


def _value(row: "PolicyRow", text: str) -> Any:
    """Parse a value: as JSON if it looks like JSON, otherwise by the policy's shape. Raises Misused.

    Rejects meaningless numbers that brokers accept.
    """
    from pulsarbox.protocol.policies.policy_values import problem

    try:
        value = json.loads(text) if text[:1] in ("{", "[", '"') else row.shape.parse(text)
    except ValueError as error:
        raise Misused(f"{row.name}: {error}") from None
    if isinstance(value, dict):
        missing = [name for name, default in row.typed.items() if default is None and name not in value]
        if missing:
            raise Misused(f"{row.name}: {missing[0]} is missing: specify {' and '.join(row.typed)}; -1 for no limit")
        value = {**row.typed, **value}
        wrong = next(filter(None, (problem(name, each) for name, each in value.items())), "")
        if wrong:
            raise Misused(f"{row.name}: {wrong}")
    elif type(value) is int and not row.sets(value):
        raise Misused(f"{row.name}: expected 0 or more, not {value}; to remove the policy, use --unset")
    return value


def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete policy names in a shell."""
    from pulsarbox.protocol.policies.table import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def called(
    subject: Subject, policy: str, value: str | None, *, unset: bool, dry_run: bool, output: OutputOptions
) -> None:
    """Show, set or unset a policy, depending on the arguments. Raises Misused."""
    if unset and (value is not None or not policy):
        raise Misused("--unset requires a policy and no value")
    if unset:
        subject.unset(policy, dry_run=dry_run)
    elif value is not None:
        subject.set(policy, value, dry_run=dry_run)
    else:
        subject.show(output, policy)

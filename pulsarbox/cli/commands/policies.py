"""Shared part of `ns policy` and `topic policy`: show, set and unset a policy by the policy table."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.commands.unsubscribed_text import rule_words
from pulsarbox.cli.common.confirmation import carry_out
from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.output import OutputOptions, Row, TableOutput, show
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.connect.admin_client import did_you_mean, short, suggesting, topic_named
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName

if TYPE_CHECKING:  # the table takes longer to import than `topic list` has to do
    from pulsarbox.client.admin import Admin
    from pulsarbox.protocol.policies.row import PolicyEndpoint, PolicyRow

_COLUMNS: Final = ("policy", "setting", "level", "applied")
_SETTING_MIN: Final = 12
"""Characters of a value that stay in a table that would not fit the terminal."""
_Step = tuple[str, str, Callable[[], object]]
"""A change as ``carry_out`` takes it: past-tense verb phrase, object name, callable."""


class Subject:
    """Policies of a topic or a namespace."""

    def __init__(self, admin: "Admin", of: TopicName | str) -> None:
        """``of`` is a topic, or ``tenant/namespace``."""
        self._admin = admin
        self._of = of
        self.name = short(of)

    # Reading

    def show(self, output: OutputOptions, policy: str) -> None:
        """Print all policies, or one, with value and level."""
        show(output, partial(self._one, policy) if policy else self._all)

    def _all(self) -> TableOutput:
        rows = [_row(name, found) for name, found in self._ask().items()]
        return TableOutput(rows, _COLUMNS, name="policy", cut={"setting": _SETTING_MIN}, least=("setting",))

    def _one(self, policy: str) -> TableOutput:
        self._row(policy)
        found = {name: each for name, each in self._ask().items() if policy in (name, name.partition(":")[0])}
        rows = [_row(name, each) for name, each in found.items()]
        if len(rows) > 1:
            return TableOutput(rows, _COLUMNS, name="policy", cut={"setting": _SETTING_MIN}, least=("setting",))
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

    def change(self, changes: Sequence[tuple[str, str]], *, dry_run: bool) -> None:
        """Set policies to values of command line arguments. Nothing is changed if one of them is invalid."""
        steps = [step for policy, text in changes for step in self._changes(policy, text)]
        carry_out(steps, dry_run=dry_run)

    def unset(self, policies: Sequence[str], *, dry_run: bool) -> None:
        """Remove policies; the values of the level above apply again."""
        carry_out([step for policy in policies for step in self._removals(policy)], dry_run=dry_run)

    def set_quota(self, kind: str, body: dict[str, Any]) -> None:
        """Set the backlog quota of a type."""
        with self.suggesting():
            self._admin.ask("POST", f"{self.path}/backlogQuota", body, backlogQuotaType=kind)

    def unset_quota(self, kind: str) -> None:
        """Remove the backlog quota of a type."""
        with self.suggesting():
            self._admin.ask("DELETE", f"{self.path}/backlogQuota", backlogQuotaType=kind)

    def _changes(self, policy: str, text: str) -> list[_Step]:
        from pulsarbox.protocol.policies.policy_values import quota_name
        from pulsarbox.protocol.policies.row import DEFAULT

        if text == DEFAULT:
            return self._removals(policy)
        row, place = self._place(policy)
        value = _value(row, text)
        if _quota_types(policy):
            bodies = _quotas(policy, value).items()
            return [self.quota_step(f"{quota_name(kind)} of", kind, body) for kind, body in bodies]
        return [(f"set {policy} of", f"{self.name} to {_shown(row, value)}", partial(self._set, row, place, value))]

    def quota_step(self, what: str, kind: str, body: dict[str, Any]) -> _Step:
        """Return the change to a backlog quota of a type, with its value; ``what``: the quota, in the report."""
        from pulsarbox.protocol.policies.table import BACKLOG_QUOTA

        return f"set {what}", f"{self.name} to {_shown(BACKLOG_QUOTA, body)}", partial(self.set_quota, kind, body)

    def _removals(self, policy: str) -> list[_Step]:
        from pulsarbox.protocol.policies.policy_values import quota_name

        row, place = self._place(policy)
        kinds = _quota_types(policy)
        if kinds:
            return [(f"unset {quota_name(kind)} of", self.name, partial(self.unset_quota, kind)) for kind in kinds]
        return [(f"unset {policy} of", self.name, partial(self._unset, row, place))]

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
                with self._naming_limit(row):
                    self._report(row, place.verb, place, value)
        if not row.sets(value):
            notify(f"{row.name}: this value sets no limit of its own: that of the next level applies")

    @contextlib.contextmanager
    def _naming_limit(self, row: "PolicyRow") -> Iterator[None]:
        """Append the broker's setting to its rejection of a value that must not exceed it."""
        from pulsarbox.client.admin import AdminRefused

        try:
            yield
        except AdminRefused as error:
            if row.name != "max-message-size" or error.status != 412:
                raise
            setting, reason = row.settings[0], str(error)
            with contextlib.suppress(PulsarBoxError, KeyError, ValueError):
                limit = row.shape.text(int(self._admin.ask("GET", "/brokers/configuration/runtime")[setting]))
                reason += f" ({setting} of the broker: {limit})"
            raise AdminRefused(error.status, reason, error.method, error.code) from None

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
        row = self._row(policy)
        place = row.topic if isinstance(self._of, TopicName) else row.namespace
        if place is None:
            other = "namespaces" if isinstance(self._of, TopicName) else "topics"
            raise Misused(f"{policy} applies to {other} only")
        return row, place

    def _row(self, policy: str) -> "PolicyRow":
        from pulsarbox.protocol.policies.table import NAMES, QUOTA_ROWS, row_of

        if policy not in NAMES and policy not in (row.name for row in QUOTA_ROWS):
            raise Misused(f"unknown policy '{policy}'{did_you_mean(policy, NAMES)}")
        return row_of(policy)


def _row(name: str, found: dict[str, Any]) -> Row:
    """Return a policy as a row: ``setting`` is its value as accepted by `policy`, ``applied`` whether it has effect."""
    from pulsarbox.protocol.policies.table import row_of

    setting = _shown(row_of(name), found["value"])
    return {"policy": name, "setting": setting, "applied": not found["stored_only"], **found}


def _shown(row: "PolicyRow", value: Any) -> str:
    from pulsarbox.protocol.policies.written_value import shown

    return "" if value is None else shown(row.shape, value)


def _value(row: "PolicyRow", text: str) -> Any:
    """Parse a value: as JSON if it looks like JSON, otherwise by the policy's shape. Raises Misused."""
    from pulsarbox.protocol.policies.written_value import OR_DEFAULT, check_members, completed, parsed
    from pulsarbox.quantities import InvalidText

    try:
        value = parsed(row.shape, text)
        check_members(value)
        if isinstance(value, dict):
            value = completed(row.shape, row.typed, value)
    except InvalidText as error:
        raise Misused(f"{row.name}: {error.or_also(OR_DEFAULT)}") from None
    except ValueError as error:
        raise Misused(f"{row.name}: {error}") from None
    if value is None or value == "":
        raise Misused(f"{row.name}: the value is empty; to remove the policy, specify default")
    if type(value) is int and not row.sets(value):
        raise Misused(f"{row.name}: expected 0 or more, not {value}; to remove the policy, use --unset")
    return value


def _quota_types(policy: str) -> Sequence[str]:
    """Return the types of backlog quota that a policy's name stands for; none for other policies."""
    from pulsarbox.protocol.policies.policy_values import BACKLOG_QUOTA_NAME, QUOTA_TYPES

    name, _, kind = policy.partition(":")
    if name != BACKLOG_QUOTA_NAME:
        return ()
    return (kind,) if kind else QUOTA_TYPES


def _quotas(policy: str, value: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the quota of each type that a value limits; of all types of the policy if it limits nothing.

    Raises Misused for a limit of another type than the policy names.
    """
    from pulsarbox.protocol.policies.policy_values import (
        QUOTA_AGE,
        QUOTA_SIZE,
        quota_action,
        quota_seconds,
        quota_size,
        quota_value,
    )
    from pulsarbox.protocol.policies.shapes import NO_LIMIT

    size, seconds = quota_size(value), quota_seconds(value)
    made = partial(quota_value, quota_action(value), exclude_delayed=bool(value.get("excludeDelayed")))
    bodies = {QUOTA_SIZE: made(size=size), QUOTA_AGE: made(seconds=seconds)}
    limited = {kind for kind, limit in ((QUOTA_SIZE, size), (QUOTA_AGE, seconds)) if limit != NO_LIMIT}
    kinds = _quota_types(policy)
    if not limited.issubset(kinds):
        limit = (
            "an age and an action, such as 7d,evict" if QUOTA_AGE in kinds else "a size and an action, such as 10G,hold"
        )
        raise Misused(f"{policy}: expected {limit}")
    return {kind: body for kind, body in bodies.items() if kind in (limited or kinds)}


def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of policies, and common values behind each name."""
    from pulsarbox.protocol.policies.row import DEFAULT
    from pulsarbox.protocol.policies.table import NAMES, row_of

    given: Sequence[str] = context.params.get(parameter.name or "") or ()
    if len(given) % 2 and not context.params.get("unset"):
        known = (*row_of(given[-1]).shape.examples, DEFAULT) if given[-1] in NAMES else ()
    else:
        known = tuple(name for name in NAMES if name not in given)
    return [each for each in known if each.startswith(incomplete)]


def called(subject: Subject, given: Sequence[str], *, unset: bool, dry_run: bool, output: OutputOptions) -> None:
    """Show, set or unset policies, depending on the arguments of a command. Raises Misused."""
    names = given if unset else given[::2]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise Misused(f"{twice[0]} is specified twice")
    if unset:
        if not names:
            raise Misused("--unset requires the name of a policy")
        subject.unset(names, dry_run=dry_run)
    elif len(given) < 2:
        subject.show(output, "".join(given))
    elif len(given) % 2:
        raise Misused(f"{given[-1]} has no value: specify a value for each policy, such as `retention 7d,10G`")
    else:
        subject.change(list(zip(given[::2], given[1::2], strict=True)), dry_run=dry_run)

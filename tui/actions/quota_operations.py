"""Deeds on quotas: change a limit at the level that sets it.

Each row from the box describes how to change its limit: the request with the current value, and the command.
"""

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from pulsarbox.protocol.policies.policy_values import problem
from pulsarbox.tui.actions.operation import OperationField, OperationSpec, Request, Row, Values, Wrong

if TYPE_CHECKING:  # dialogs are rare, and the table of policies takes time to import
    from pulsarbox.protocol.policies.shapes import WholeNumber


def _change(row: Row) -> Mapping[str, Any]:
    found = row.get("change")
    if not isinstance(found, Mapping):
        raise Wrong("this limit is a setting and changes at the next start: docs/configuration.md")
    return found


def stands(row: Row) -> str:
    """Return the current limit in its wire format. Raises Wrong."""
    change = _change(row)
    body, field = change.get("body"), change.get("field")
    if body is not None:
        value = body.get(field) if field is not None else body
        return value if isinstance(value, str) else json.dumps(value)
    if change.get("query"):
        return str(next(iter(change["query"].values())))
    return str(change["path"]).rpartition("/")[2]


def shown(row: Row) -> str:
    """Return the current limit as people write it. Raises Wrong."""
    number, shape = stands(row), _shape(row)
    return shape.text(int(number)) if shape is not None and _is_number(number) else number


def _shape(row: Row) -> "WholeNumber | None":
    """Return the shape of a limit, which knows its unit; None for limits that only count."""
    from pulsarbox.protocol.policies.policy_values import RESOURCE_GROUP
    from pulsarbox.protocol.policies.shapes import ObjectShape, WholeNumber
    from pulsarbox.protocol.policies.table import NAMES, row_of

    name, field = str(row.get("policy") or "").partition(":")[0], _change(row).get("field")
    shape = row_of(name).shape if name in NAMES else RESOURCE_GROUP
    if isinstance(shape, ObjectShape) and field in shape.members:
        shape = shape.members[str(field)][0]
    return shape if isinstance(shape, WholeNumber) else None


def _value(row: Row, values: Values) -> Any:
    text = values.get("limit", "").strip()
    if not text:
        raise Wrong("limit: a value is required; -1 means no limit")
    value = _parsed(row, text)
    if _is_number(stands(row)) and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise Wrong(f"limit: '{text}' is not a number")
    wrong = problem(str(_change(row).get("field") or ""), value)
    if wrong:
        raise Wrong(wrong)
    return value


def _parsed(row: Row, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    shape = _shape(row)
    if shape is None:
        return text
    try:
        return shape.parse(text)
    except ValueError as error:
        raise Wrong(f"limit: {error}") from None


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdigit()


def _requests(row: Row, values: Values) -> list[Request]:
    change, value = _change(row), _value(row, values)
    method, path, query = str(change["method"]), str(change["path"]), dict(change.get("query") or {})
    body, field = change.get("body"), change.get("field")
    if body is not None:
        return [Request(method, _with(path, query), {**body, field: value} if field is not None else value)]
    if query:
        return [Request(method, _with(path, {**query, next(iter(query)): str(value)}))]
    return [Request(method, f"{path.rpartition('/')[0]}/{value}")]


def _with(path: str, query: Mapping[str, Any]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _words(row: Row, values: Values) -> list[str]:
    """Return the command with the old value replaced by the new one."""
    change = _change(row)
    try:
        new = str(_value(row, values))
    except Wrong:  # still being typed
        new = values.get("limit", "").strip()
    old, field = stands(row), change.get("field")

    def renewed(word: str) -> str:
        if word in (old, f"{old}s"):
            return word.replace(old, new, 1)
        return ",".join(f"{field}={new}" if part == f"{field}={old}" else part for part in word.split(","))

    return [renewed(word) for word in shlex.split(str(change["command"]))[1:]]


def _subject(row: Row) -> str:
    of = (row.get("change") or {}).get("of") or row.get("scope")
    return f"{row.get('policy')} of {row.get('subject')} (for the {of})"


LIMITS: Final = (
    OperationSpec(
        "quota set",
        "Change the limit",
        ("quota",),
        _words,
        _requests,
        _subject,
        "Takes effect immediately. Values may have units: 7d, 1.5G. -1 means no limit, where supported.",
        (OperationField("limit", "Limit", shown),),
        fits=lambda row: isinstance(row.get("change"), Mapping),
    ),
)

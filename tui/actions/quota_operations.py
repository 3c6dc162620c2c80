"""Deeds on quotas: change a limit at the level that sets it.

Each row from the box describes how to change its limit: the request with the current value, and the command.
"""

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from pulsarbox.names import short_topic
from pulsarbox.protocol.policies.policy_values import problem
from pulsarbox.tui.actions.operation import OperationField, OperationSpec, Request, Row, Values, Wrong
from pulsarbox.tui.widgets.columns import policy_in_words, subscription_title

if TYPE_CHECKING:  # dialogs are rare, and the table of policies takes time to import
    from pulsarbox.protocol.policies.shapes import ValueShape, WholeNumber


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


def _policy_shape(row: Row) -> "ValueShape":
    """Return the shape of the policy of a limit, or of the resource group."""
    from pulsarbox.protocol.policies.policy_values import RESOURCE_GROUP
    from pulsarbox.protocol.policies.table import NAMES, row_of

    name = str(row.get("policy") or "").partition(":")[0]
    return row_of(name).shape if name in NAMES else RESOURCE_GROUP


def _shape(row: Row) -> "WholeNumber | None":
    """Return the shape of a limit, which knows its unit; None for a setting."""
    from pulsarbox.protocol.policies.shapes import ObjectShape, WholeNumber

    field, shape = _change(row).get("field"), _policy_shape(row)
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
    field = str(_change(row).get("field") or "")
    wrong = problem(field, value)
    if not wrong and field == "limitSize" and value == 0:
        wrong = f"limit: a size of 1 or more, or off for no limit, not '{text}'"
    if wrong:
        raise Wrong(wrong)
    return value


def _parsed(row: Row, text: str) -> Any:
    shape, is_rate = _shape(row), str(row.get("unit") or "").endswith("/s")
    try:
        if shape is not None:
            return shape.parse(text.removesuffix("/s").rstrip() if is_rate else text)
        return json.loads(text)
    except ValueError as error:
        if shape is None:  # a setting, which may be a word
            return text
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
    old = stands(row)
    try:
        texts = dict(zip(_texts(row, old), _texts(row, _value(row, values)), strict=True))
    except Wrong:  # still being typed
        texts = dict.fromkeys(_texts(row, old)[:2], values.get("limit", "").strip())
    return [texts.get(word, word) for word in command_words(row)]


def command_words(row: Row) -> list[str]:
    """Return the arguments of the command that sets the limit to its current value, with the short topic name."""
    return [short_topic(word) for word in shlex.split(str(_change(row)["command"]))[1:]]


def _texts(row: Row, value: Any) -> list[str]:
    """Return a limit as a command may have it: as a number, with its unit, and in the value of the whole policy."""
    change, shape = _change(row), _shape(row)
    found = [str(value), shape.text(int(value)) if shape is not None and _is_number(str(value)) else str(value)]
    body, field = change.get("body"), change.get("field")
    if isinstance(body, Mapping) and field is not None:
        found.append(_policy_shape(row).text({**body, field: int(value) if _is_number(str(value)) else value}))
    return found


def _subject(row: Row) -> str:
    """Return the limit with its object, and the larger object to which a change applies, if any."""
    name = subscription_title(row) if row.get("subscription") else short_topic(str(row.get("subject")))
    of = (row.get("change") or {}).get("of") or row.get("scope")
    wider = f"; a change applies to the whole {of}" if of != row.get("scope") else ""
    return f"{policy_in_words(str(row.get('policy')))} of {name}{wider}"


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

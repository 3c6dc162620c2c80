"""Values of policies as commands and declarations accept and show them: text, or JSON as in the Admin API.

Unlike brokers, they reject unknown members and numbers without meaning, which would silently remove a limit.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from pulsarbox.config.setting import did_you_mean
from pulsarbox.protocol.policies.policy_values import meaningful, problem
from pulsarbox.protocol.policies.row import DEFAULT
from pulsarbox.protocol.policies.shapes import ObjectShape, ValueShape

_JSON: Final = ("{", "[", '"')
OR_DEFAULT: Final = f"; or {DEFAULT}"


def parsed(shape: ValueShape, text: str) -> Any:
    """Return the JSON of a text: JSON if it looks like JSON, otherwise what the shape accepts. Raises ValueError."""
    if not text.strip():
        raise ValueError(f"the value is empty; to remove the policy, specify {DEFAULT}")
    return _from_json(text) if text[:1] in _JSON else shape.parse(text)


def completed(shape: ValueShape, defaults: Mapping[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return an object with the defaults of omitted members; a default of None requires the member.

    Raises ValueError for unknown and missing members and for meaningless numbers.
    """
    if isinstance(shape, ObjectShape):
        unknown = next((name for name in given if name not in shape.members), None)
        if unknown is not None:
            raise ValueError(f"unknown member '{unknown}'{_members(unknown, shape)}")
    missing = [name for name, default in defaults.items() if default is None and given.get(name) is None]
    if missing:
        raise ValueError(f"{missing[0]} is missing: specify {' and '.join(defaults)}; -1 for no limit")
    value = {**defaults, **given}
    wrong = next(filter(None, (problem(name, each) for name, each in value.items())), "")
    if wrong:
        raise ValueError(wrong)
    return value


def check_members(given: Any) -> None:
    """Raise ValueError for an object without a value, which a broker would read as no limit."""
    if isinstance(given, dict) and all(each is None for each in given.values()):
        raise ValueError(f"the object is empty; to remove the policy, specify {DEFAULT}")


def shown(shape: ValueShape, value: Any) -> str:
    """Return the text of a stored value, from which ``parsed`` returns it again."""
    text = shape.text(meaningful(value))
    return json.dumps(value) if text == DEFAULT or (text[:1] in _JSON and isinstance(value, str)) else text


def _members(name: str, shape: ObjectShape) -> str:
    return did_you_mean(name, shape.members) or f": expected {', '.join(shape.members)}"


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, character {error.colno}" if error.lineno > 1 else f"character {error.colno}"
        raise ValueError(f"invalid JSON at {place}: {error.msg[:1].lower()}{error.msg[1:]}") from None
    except RecursionError:
        raise ValueError("nested too deep") from None

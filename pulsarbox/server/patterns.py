"""What filters of requests are made of: patterns that match in linear time, and places within values."""

from typing import Any

from pulsarbox.expressions import Pattern
from pulsarbox.protocol.topics_pattern import PatternError
from pulsarbox.protocol.topics_pattern import compiled as _linear


def compiled(text: str) -> Pattern:
    """A pattern of RE2: it takes no longer than a text is long, whoever has sent it. Raises ValueError, in words."""
    try:
        found: Pattern = _linear(text)
    except PatternError as error:
        raise ValueError(f"'{text}' is no regular expression of RE2: {error}") from None
    return found


def at_path(value: Any, path: list[str]) -> Any:
    """What is at a path of names and numbers within objects and lists; None where there is nothing."""
    for name in path:
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value

"""Patterns in filters of requests: linear-time matching, with readable errors."""

from pulsarbox.expressions import Pattern
from pulsarbox.protocol.topics_pattern import PatternError, linear


def compiled(text: str) -> Pattern:
    """Compile an RE2 pattern, which matches in linear time. Raises ValueError with a readable message."""
    try:
        return linear(text)
    except PatternError as error:
        raise ValueError(f"'{text}' is no regular expression of RE2: {error}") from None

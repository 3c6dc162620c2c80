"""The patterns in filters of requests: they match in linear time, and what is wrong with them is said in words."""

from pulsarbox.expressions import Pattern
from pulsarbox.protocol.topics_pattern import PatternError, linear


def compiled(text: str) -> Pattern:
    """A pattern of RE2, which takes linear time. Raises ValueError, in words."""
    try:
        return linear(text)
    except PatternError as error:
        raise ValueError(f"'{text}' is no regular expression of RE2: {error}") from None

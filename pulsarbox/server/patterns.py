"""The patterns in filters of requests: they match in linear time, and what is wrong with them is said in words."""

from pulsarbox.expressions import Pattern
from pulsarbox.protocol.topics_pattern import PatternError, linear


def compiled(text: str) -> Pattern:
    """A pattern of RE2: it takes no longer than a text is long, whoever has sent it. Raises ValueError, in words."""
    try:
        found: Pattern = linear(text)
    except PatternError as error:
        raise ValueError(f"'{text}' is no regular expression of RE2: {error}") from None
    return found

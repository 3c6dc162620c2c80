"""What came from elsewhere, made fit for a terminal: by the commands, and by the dashboard."""

from typing import Any


def clean(text: str) -> str:
    """A text without anything that a terminal would obey, bidi controls too: such characters show as escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def cleaned(value: Any) -> Any:
    """The same for all texts of a JSON value, keys too."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [cleaned(each) for each in value]
    if isinstance(value, dict):
        return {clean(key): cleaned(each) for key, each in value.items()}
    return value

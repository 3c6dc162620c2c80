"""Escaping of untrusted text before it is written to a terminal."""

from typing import Any


def clean(text: str) -> str:
    """Return ``text`` with every non-printable character (control codes, bidi controls) shown as an escape sequence."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def cleaned(value: Any) -> Any:
    """Return a JSON value with every string in it cleaned, object keys included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [cleaned(each) for each in value]
    if isinstance(value, dict):
        return {clean(key): cleaned(each) for key, each in value.items()}
    return value

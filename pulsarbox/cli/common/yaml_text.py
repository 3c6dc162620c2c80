"""JSON values as YAML, in block style, limited to syntax that YAML 1.1 and 1.2 parsers read alike.

Importing a YAML library takes as long as the rest of a command. Ambiguous strings are quoted as in JSON.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

# No leading digit, sign, colon or space, so the text cannot be read as a number, a time or YAML syntax.
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_PART: Final = r"(?:(?:[0-9]+(?:\.[0-9]+)?(?:ms|[smhdw]|[KMGTP]iB|B))+(?:/[0-9]*s)?|[0-9]+/[0-9]*s)"
_AMOUNT: Final = re.compile(rf"{_PART}(?:,(?:{_PART}|[a-z-]+))*")
"""Amounts with a unit, such as ``7d,10GiB`` or ``100/s``: no parser reads them as numbers, unlike ``1e5``."""
_WORDS: Final = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def to_yaml(value: Any) -> str:
    """Return a JSON value as one YAML document, each line terminated."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            if isinstance(each, dict | list) and each:
                yield f"{_scalar(name)}:"
                indent = "  " if isinstance(each, dict) else ""
                yield from (indent + line for line in _lines(each))
            else:
                yield f"{_scalar(name)}: {_scalar(each)}"
    elif isinstance(value, list) and value:
        for each in value:
            first, *rest = list(_lines(each))
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        is_plain = _AMOUNT.fullmatch(value) or (_PLAIN.fullmatch(value) and value.lower() not in _WORDS)
        return value if is_plain else _quoted(value)
    if isinstance(value, float):
        text = repr(value)
        if text in ("inf", "-inf", "nan"):
            return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}[text]
        number, mark, exponent = text.partition("e")
        return text if not mark or "." in number else f"{number}.0e{exponent}"
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list):
        return "[]"
    return json.dumps(value)


def _quoted(text: str) -> str:
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))

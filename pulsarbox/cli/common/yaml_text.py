"""JSON values as YAML: block style, and only what every reader of YAML 1.1 or 1.2 reads the same way.

A library for it takes as long to import as all the rest of a command. Texts that could be taken for something else are
quoted, as JSON quotes them.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

# Without digits at the front, signs, colons, spaces: what is left cannot be a number, a time or a sign of YAML.
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS: Final = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def to_yaml(value: Any) -> str:
    """One document, each line ended. The value is made of what JSON is made of."""
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
        return value if _PLAIN.fullmatch(value) and value.lower() not in _WORDS else _quoted(value)
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

"""Parsing of Avro schema definitions into a graph of nodes."""

import json
import re
from collections.abc import Generator
from hashlib import sha256
from math import floor, log10
from typing import Any, Final, NamedTuple

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.schema.steps import Steps, completed, recursive
from pulsarbox.protocol.schema.types import DEFINITION_BYTES_MAX, JSON_STRUCTURE

ELEMENTS_MAX: Final = 30_000
"""Limit of brackets, commas and colons in a definition, plus a quarter of its digits and backslashes. The JSON parser
needs up to 4 ms for that many, in one call that cannot be suspended."""
_QUARTERS: Final = b"0123456789\\"
"""Characters of numbers and escapes; four of them cost as much as an element."""
DEPTH_MAX: Final = 200
"""Nesting depth of types in a definition."""
_CALLS_A_LEVEL: Final = 2
DIGITS_MAX: Final = 400
"""Digits of an integer: more than the largest double has. Parsing one takes quadratic time."""
_ELEMENTS_A_STEP: Final = 20
_BYTES_A_STEP: Final = 1000
_KEYS_A_STEP: Final = 4
_WORDS: Final = 100
"""Words of a value that are added to the digest in one step."""

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAME: Final = re.compile(r"(?!\d)[\w$]+")
_ORDERS: Final = (None, "ascending", "descending", "ignore")
_FIXED_MAX: Final = 2**31 - 1
_DEFINING: Final = frozenset(
    ("type", "name", "namespace", "doc", "aliases", "fields", "items", "values", "symbols", "size")
)
"""Properties that have their own field in a node; all others are added to the digest."""
_OF_FIELDS: Final = frozenset(("type", "name", "doc", "aliases"))
_LOGICAL: Final = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "uuid": ("string",),
    "decimal": ("bytes", "fixed"),
}
"""Logical types, and the types that each may annotate. Others are ignored, as the specification requires."""


class Real:
    """A fractional number in its text form: most are never used, and converting one takes a microsecond."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __float__(self) -> float:
        return float(self.text)


class Field(NamedTuple):
    """A field of a record."""

    name: str
    node: "Node"
    has_default: bool
    default: Any
    aliases: tuple[str, ...]


class Node:
    """A type. A named type has one node however often it is referenced, so the graph may have cycles."""

    __slots__ = (
        "_numbers", "aliases", "branches", "default", "fields", "kind", "logical", "name", "scale", "size", "symbols",
    )  # fmt: skip

    def __init__(self, kind: str, name: str = "") -> None:
        self.kind = kind
        """A primitive type, array, map, fixed, enum, record or union. An error type is a record."""
        self.name = name
        """The full name of a fixed, enum or record; the kind of any other type."""
        self.aliases: tuple[str, ...] = ()
        self.branches: tuple[Node, ...] = ()
        """The types of a union; the item type of an array, or the value type of a map."""
        self.fields: dict[str, Field] = {}
        self.symbols: tuple[str, ...] = ()
        self.size = 0
        self.default: object = None
        """The default symbol of an enum."""
        self.logical = ""
        self.scale = 0
        self._numbers: dict[str, int] | None = None

    def number_of(self, name: str) -> int | None:
        """Return the index of an enum symbol, or of a union branch by its name; None if there is none."""
        if self._numbers is None:
            self._numbers = {symbol: number for number, symbol in enumerate(self.symbols)}
            for number, each in enumerate(self.branches):
                for known in (each.kind, each.name, each.short_name):
                    self._numbers.setdefault(known, number)
        return self._numbers.get(name)

    @property
    def short_name(self) -> str:
        """The name without namespace."""
        return self.name.rpartition(".")[2]


class Definition(NamedTuple):
    """A parsed definition."""

    root: Node
    meaning: bytes
    """Digest. Definitions with the same digest have the same names, types, defaults, order and properties."""


def parse(data: bytes) -> Definition:
    """Parse a definition in one go. Raises InvalidSchema."""
    return completed(parsing(data))


def parsing(data: bytes) -> Steps[Definition]:
    """Parse a definition in steps. Raises InvalidSchema."""
    try:
        elements = _elements(data)
        yield len(data) // _BYTES_A_STEP
        document = json.loads(data, parse_int=_whole, parse_float=Real)
        yield elements // _ELEMENTS_A_STEP + 1
        parser = _Parser()
        # Each element of the document costs at most a few calls.
        root = yield from recursive(parser.node(document, ""), 4 * ELEMENTS_MAX, _CALLS_A_LEVEL * DEPTH_MAX)
    except (ValueError, ArithmeticError) as error:
        raise InvalidSchema(f"not an Avro definition: {str(error)[:200]}") from None
    except RecursionError:
        raise InvalidSchema(f"not an Avro definition: types are nested more than {DEPTH_MAX} levels deep") from None
    return Definition(root, parser.meaning.digest())


def _elements(data: bytes) -> int:
    """Return the number of elements as defined for ``ELEMENTS_MAX``. Raises ValueError if the definition is too
    large."""
    size = len(data)
    if size > DEFINITION_BYTES_MAX:
        raise ValueError(f"it has {size} bytes, the maximum is {DEFINITION_BYTES_MAX}")
    # bytes.translate takes half the time of bytes.count for each character.
    structure, quarters = (size - len(data.translate(None, each)) for each in (JSON_STRUCTURE, _QUARTERS))
    count = structure + quarters // 4
    if count > ELEMENTS_MAX:
        raise ValueError(
            f"it has {count} elements (brackets, commas and colons; four digits or backslashes count as one), the"
            f" maximum is {ELEMENTS_MAX}"
        )
    return count


def _whole(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise ValueError(f"a number has more than {DIGITS_MAX} digits")
    return int(text)


_to_json: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), default=lambda real: ["real", real.text]
).encode


class _Parser:
    """Builds the nodes of one definition in document order: a name must be defined before it is referenced."""

    def __init__(self) -> None:
        self.meaning = sha256()
        self._names: dict[str, Node] = {}
        self._primitives = {kind: Node(kind, kind) for kind in PRIMITIVES}

    def node(self, value: Any, space: str) -> "Generator[Any, Any, Node]":
        """Build the node that a JSON value defines or references, in a namespace."""
        if isinstance(value, str):
            return self._reference(value, space)
        if isinstance(value, list):
            made: Node = yield self._union(value, space)
            return made
        if not isinstance(value, dict):
            raise ValueError(f"{_shown(value)} is not a type")
        kind = value.get("type")
        if not isinstance(kind, str):
            raise ValueError(f"the type of {_shown(value)} is not a string")
        if kind in ("record", "error"):
            made = yield self._record(value, space)
            return made
        if kind in ("array", "map"):
            made = yield self._collection(kind, value, space)
            return made
        if kind == "enum":
            made = yield self._enum(value, space)
            return made
        if kind == "fixed":
            made = yield self._fixed(value, space)
            return made
        others = _others(value, _DEFINING)
        found = self._reference(kind, space, len(others))
        if others:
            yield self._value(others)
        return _annotated(found, value) if found.kind in PRIMITIVES else found

    def _digest_words(self, *words: object) -> None:
        """Add words to the digest."""
        self.meaning.update(_to_json(words).encode("utf-8", "surrogatepass"))

    def _value(self, value: Any) -> "Generator[int, None, None]":
        """Add a JSON value to the digest in steps; object members are added in order of their names."""
        rest, words = [value], []
        while rest:
            each = rest.pop()
            if isinstance(each, dict):
                words.append(["{", len(each)])  # a list cannot occur among a value's words
                yield len(each) // _KEYS_A_STEP
                for key in sorted(each, reverse=True):
                    rest += (each[key], key)
            elif isinstance(each, list):
                words.append(["[", len(each)])
                rest.extend(reversed(each))
            else:
                words.append(each)
            if len(words) >= _WORDS:
                self._digest_words(*words)
                words.clear()
                yield _WORDS // 2
        self._digest_words(*words)

    def _reference(self, name: str, space: str, others: int = 0) -> Node:
        """Return the node of a named type; ``others`` is the number of properties added to the digest next."""
        found = self._primitives.get(name) or self._names.get(_full(name, space)) or self._names.get(name)
        if found is None:
            raise ValueError(f"the type {_shown(name)} is not defined before it is used")
        self._digest_words(found.name, others)
        return found

    def _union(self, branches: list[Any], space: str) -> "Generator[Any, Any, Node]":
        made, found, names = Node("union", "union"), [], set()
        self._digest_words("union", len(branches))
        for each in branches:
            node = yield self.node(each, space)
            if node.kind == "union":
                raise ValueError("a union contains a union directly")
            if node.name in names:
                raise ValueError(f"a union contains {_shown(node.name)} twice")
            names.add(node.name)
            found.append(node)
        made.branches = tuple(found)
        return made

    def _collection(self, kind: str, value: dict[str, Any], space: str) -> "Generator[Any, Any, Node]":
        made, of = Node(kind, kind), "items" if kind == "array" else "values"
        if of not in value:
            raise ValueError(f"{kind} without {of}")
        others = _others(value, _DEFINING)
        self._digest_words(kind, len(others))
        if others:
            yield self._value(others)
        node = yield self.node(value[of], space)
        made.branches = (node,)
        return made

    def _record(self, value: dict[str, Any], space: str) -> "Generator[Any, Any, Node]":
        made = self._named("record", value, space)
        fields, within = value.get("fields"), made.name.rpartition(".")[0]
        if not isinstance(fields, list):
            raise ValueError(f"the fields of {_shown(made.name)} are not a list")
        others = _others(value, _DEFINING)
        self._digest_words(value["type"], made.name, len(fields), len(others))
        if others:
            yield self._value(others)
        for each in fields:
            if not isinstance(each, dict):
                raise ValueError(f"a field of {_shown(made.name)} is not an object: {_shown(each)}")
            name = each.get("name")
            if not isinstance(name, str):
                raise ValueError(f"a field of {_shown(made.name)} has no name")
            _check_name(name)
            if name in made.fields:
                raise ValueError(f"{_shown(made.name)} has two fields named {_shown(name)}")
            if each.get("order") not in _ORDERS:
                raise ValueError(f"the order of {_shown(name)} is not ascending, descending or ignore")
            others = _others(each, _OF_FIELDS)
            self._digest_words("field", name, len(others))
            if others:
                yield self._value(others)
            node = yield self.node(each.get("type"), within)
            made.fields[name] = Field(name, node, "default" in each, each.get("default"), _aliases(each))
        return made

    def _enum(self, value: dict[str, Any], space: str) -> "Generator[Any, Any, Node]":
        made, symbols = self._named("enum", value, space), value.get("symbols")
        cost = len(symbols) // _ELEMENTS_A_STEP if isinstance(symbols, list) else 0
        if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
            raise ValueError(f"the symbols of {_shown(made.name)} are not a list of strings")
        yield cost
        if len(set(symbols)) < len(symbols):
            raise ValueError(f"{_shown(made.name)} has a duplicate symbol")
        default = value.get("default")
        if default is not None and default not in symbols:
            raise ValueError(f"the default of {_shown(made.name)} is not one of its symbols")
        made.symbols, made.default = tuple(symbols), default
        yield cost
        others = _others(value, _DEFINING)
        self._digest_words("enum", made.name, symbols, len(others))
        if others:
            yield self._value(others)
        return made

    def _fixed(self, value: dict[str, Any], space: str) -> "Generator[Any, Any, Node]":
        made, size = self._named("fixed", value, space), value.get("size")
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= _FIXED_MAX:
            raise ValueError(f"the size of {_shown(made.name)} is not a whole number from 0 to {_FIXED_MAX}")
        made.size = size
        others = _others(value, _DEFINING)
        self._digest_words("fixed", made.name, size, len(others))
        if others:
            yield self._value(others)
        most = floor(log10(2) * (8 * size - 1)) if size else 0
        if value.get("logicalType") == "decimal" and (scale := _scale(value, most)) is not None:
            made.logical, made.scale = "decimal", scale
        return made

    def _named(self, kind: str, value: dict[str, Any], space: str) -> Node:
        name, own = value.get("name"), value.get("namespace", space)
        if not isinstance(name, str) or not isinstance(own, str | None):
            raise ValueError(f"{kind}: the name is missing, or the name or namespace is not a string")
        full = _full(name, own or "")
        for part in full.split("."):
            _check_name(part)
        if full in PRIMITIVES:
            raise ValueError(f"{_shown(full)} is the name of a primitive type")
        if full in self._names:
            raise ValueError(f"{_shown(full)} is defined twice")
        made = self._names[full] = Node(kind, full)
        within = full.rpartition(".")[0]
        made.aliases = tuple(_full(each, within) for each in _aliases(value))
        return made


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{_shown(name)} is not a valid name")


def _aliases(value: dict[str, Any]) -> tuple[str, ...]:
    found = value.get("aliases")
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def _others(value: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key not in known}


def _annotated(primitive: Node, value: dict[str, Any]) -> Node:
    """Return a primitive type annotated with its logical type."""
    logical = value.get("logicalType")
    if not isinstance(logical, str) or primitive.kind not in _LOGICAL.get(logical, ()):
        return primitive
    made = Node(primitive.kind, primitive.name)
    if logical == "decimal":
        scale = _scale(value, _FIXED_MAX)
        if scale is None:
            return primitive
        made.scale = scale
    made.logical = logical
    return made


def _scale(value: dict[str, Any], most: int) -> int | None:
    """Return the scale of a decimal of at most ``most`` digits; None if it is invalid and must be ignored."""
    precision, scale = value.get("precision"), value.get("scale", 0)
    valid = isinstance(precision, int) and isinstance(scale, int) and 0 < precision <= most and 0 <= scale <= precision
    return scale if valid else None


def _shown(value: object) -> str:
    """Return a value for an error message, without formatting all of a large one."""
    if isinstance(value, str):
        return repr(value[:60])
    if isinstance(value, dict):
        return f"an object of {len(value)} properties"
    return f"a list of {len(value)}" if isinstance(value, list) else repr(value)[:60]

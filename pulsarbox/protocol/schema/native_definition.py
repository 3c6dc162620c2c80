"""Definitions of PROTOBUF_NATIVE schemas: Protobuf descriptors and the name of the root message.

Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/#struct-schema.
"""

import json
from base64 import b64decode
from binascii import Error as NoBase64
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.schema.steps import CHUNK, Steps, completed
from pulsarbox.protocol.schema.types import DEFINITION_BYTES_MAX, JSON_STRUCTURE

DEFINITIONS_MAX: Final = 5000
"""Limit of messages, fields, enums, enum values and services in one file. Protobuf adds a file in one call, 2 us for
each."""
NAMES_MAX: Final = 500_000
"""Characters of their full names: Protobuf builds each name and resolves field types in every enclosing scope."""
ELEMENTS_MAX: Final = 1000
"""Limit of brackets, commas and colons in the enclosing JSON, which has two or three properties and is parsed in one
step."""
_BYTES_A_STEP: Final = 2000
_WRONG: Final = (ValueError, KeyError, TypeError, AttributeError, NoBase64, DecodeError, RecursionError)


def parse(data: bytes) -> Descriptor:
    """Return the root message of a definition in one go. Raises InvalidSchema."""
    return completed(parsing(data))


def parsing(data: bytes) -> Steps[Descriptor]:
    """Return the root message of a definition in steps. Raises InvalidSchema."""
    if len(data) > DEFINITION_BYTES_MAX:
        raise InvalidSchema(f"it has {len(data)} bytes, the maximum is {DEFINITION_BYTES_MAX}")
    count = len(data) - len(data.translate(None, JSON_STRUCTURE))
    if count > ELEMENTS_MAX:
        raise InvalidSchema(f"it has {count} brackets, commas and colons, the maximum is {ELEMENTS_MAX}")
    try:
        told = json.loads(data)
        files = FileDescriptorSet.FromString(b64decode(told["fileDescriptorSet"], validate=True))
        name, root = told["rootMessageTypeName"], told.get("rootFileDescriptorName")
    except _WRONG as error:
        raise InvalidSchema(
            "it must be a JSON object with fileDescriptorSet (in base64), rootMessageTypeName and"
            f" rootFileDescriptorName: {str(error)[:200]}"
        ) from None
    yield len(data) // _BYTES_A_STEP + 1
    if root is not None and not any(each.name == root for each in files.file):
        raise InvalidSchema(f"fileDescriptorSet does not contain {str(root)[:100]!r}")
    try:
        pool = yield from _pool(files)
        return pool.FindMessageTypeByName(name)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidSchema(
            f"fileDescriptorSet does not define the message {str(name)[:100]!r}: {str(error)[:300]}"
        ) from None


def _pool(files: FileDescriptorSet) -> Steps[DescriptorPool]:
    """Return a pool of the descriptors; files are added after their imports, because clients send them in any order."""
    waiting = {each.name: each for each in files.file}
    missing, needed_by = {}, defaultdict(list)
    for each in waiting.values():
        imports = {needed for needed in each.dependency if needed in waiting}
        missing[each.name] = len(imports)
        for needed in imports:
            needed_by[needed].append(each.name)
        yield len(each.dependency) // CHUNK + 1
    pool = DescriptorPool()
    ready = [name for name, count in missing.items() if not count]
    while ready:
        name = ready.pop()
        yield from _checking_size(waiting[name])
        pool.Add(waiting.pop(name))
        for other in needed_by[name]:
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    if waiting:
        raise ValueError(f"{', '.join(each[:100] for each in sorted(waiting)[:3])} need one another")
    return pool


def _checking_size(file: FileDescriptorProto) -> Steps[None]:
    """Check the size of a file before Protobuf adds it. Raises ValueError. The steps include the cost of adding it."""
    count, names, told = 0, 0, 0
    scopes: list[tuple[int, Any]] = [(len(file.package), file)]
    while scopes:
        length, scope = scopes.pop()
        parts = _parts(scope)
        count += sum(map(len, parts))
        if count <= DEFINITIONS_MAX:
            names += sum(length + 1 + len(each.name) for part in parts for each in part)
        if count > DEFINITIONS_MAX or names > NAMES_MAX:
            raise ValueError(
                f"{file.name[:100]!r} has more than {DEFINITIONS_MAX} definitions, or {NAMES_MAX} characters of names"
            )
        scopes += [(length + 1 + len(each.name), each) for each in parts[0]]
        if count - told >= CHUNK:
            yield 3 * (count - told)
            told = count
    yield CHUNK


def _parts(scope: Any) -> list[Sequence[Any]]:
    """Return the definitions in a file or message, its messages first."""
    enums = scope.enum_type
    if len(enums) > DEFINITIONS_MAX:
        return [enums]
    values = [each.value for each in enums]
    if isinstance(scope, FileDescriptorProto):
        services = scope.service[: DEFINITIONS_MAX + 1]
        return [scope.message_type, enums, *values, scope.extension, services, *(each.method for each in services)]
    return [scope.nested_type, enums, *values, scope.field, scope.extension, scope.oneof_decl]

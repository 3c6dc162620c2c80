"""Definitions of PROTOBUF_NATIVE schemas: Protobuf's own descriptors, and which message of them is meant.

Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/#struct-schema.
"""

import json
from base64 import b64decode
from binascii import Error as NoBase64

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from pulsarbox.errors import InvalidSchema


def parse(data: bytes) -> Descriptor:
    """The message that a definition means. Raises InvalidSchema."""
    try:
        told = json.loads(data)
        files = FileDescriptorSet.FromString(b64decode(told["fileDescriptorSet"], validate=True))
        name, root = told["rootMessageTypeName"], told.get("rootFileDescriptorName")
    except (ValueError, KeyError, TypeError, AttributeError, NoBase64, DecodeError, RecursionError) as error:
        raise InvalidSchema(
            "it must be a JSON object of fileDescriptorSet (in base64), rootMessageTypeName and"
            f" rootFileDescriptorName: {str(error)[:200]}"
        ) from None
    if root is not None and not any(each.name == root for each in files.file):
        raise InvalidSchema(f"its file descriptors have no {str(root)[:100]!r}")
    try:
        return _pool(files).FindMessageTypeByName(name)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidSchema(f"its file descriptors do not make a message {str(name)[:100]!r}: {error}") from None


def _pool(files: FileDescriptorSet) -> DescriptorPool:
    """The descriptors, those that others need first: clients write them in any order."""
    pool, waiting = DescriptorPool(), {each.name: each for each in files.file}
    while waiting:
        ready = [each for each in waiting.values() if not any(needed in waiting for needed in each.dependency)]
        if not ready:
            raise ValueError(f"{', '.join(sorted(waiting)[:3])} need one another")
        for each in ready:
            pool.Add(each)
            del waiting[each.name]
    return pool

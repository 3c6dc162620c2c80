"""Decompression of entries in an inspected data directory."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pulsarbox.errors import PersistenceError
from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.plugins.registry import get
from pulsarbox.storage.compression.decoder import Dictionary, RestUnpacker
from pulsarbox.storage.format import DICTIONARY_KEY, META, NEED
from pulsarbox.storage.inspection.box import Box, OpenEnvironment
from pulsarbox.storage.lmdb.meta_environment import unpack_dictionary


class _Stored:
    """StoredCodecs of an open meta environment."""

    def __init__(self, meta: OpenEnvironment) -> None:
        self._meta = meta

    def name_of(self, tag: bytes) -> str:
        """See StoredCodecs."""
        return next((name.decode() for key, name in self._meta.rows(b"needs") if NEED.unpack(key)[0] == tag), "")

    def dictionary(self, number: int) -> Dictionary | None:
        """See StoredCodecs."""
        value = self._meta.value(b"dictionaries", DICTIONARY_KEY.pack(number))
        return None if value is None else unpack_dictionary(number, value)


@contextmanager
def unpacking(box: Box, options: dict[str, Any]) -> Iterator[RestUnpacker | None]:
    """Yield the decompressor of a box's entries, or None if the tables of dictionaries cannot be opened.

    ``plugins`` of the options is a directory of plugins to use besides the installed ones.
    """
    directory = options.get("plugins")
    codecs = RestCodecs(partial(get, directory=Path(directory) if directory else None))
    with ExitStack() as stack:
        try:
            meta = stack.enter_context(box.open(META, growing=True))
        except PersistenceError:  # reported by the examination of meta itself
            yield None
        else:
            yield RestUnpacker(codecs, _Stored(meta))

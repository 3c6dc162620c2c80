"""Decompression of entries in an inspected data directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.plugins.registry import get
from pulsarbox.storage.compression.decoder import Dictionary, RestUnpacker
from pulsarbox.storage.format import DICTIONARY_KEY, NEED
from pulsarbox.storage.inspection.box import META, Box, OpenEnvironment
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
    """Yield the decompressor of a box's entries, or None if its format has no compressed entries.

    ``plugins`` of the options is a directory of plugins to use besides the installed ones.
    """
    if box.format < 3:
        yield None
        return
    directory = options.get("plugins")
    codecs = RestCodecs(partial(get, directory=Path(directory) if directory else None))
    with box.open(META, growing=True) as meta:
        yield RestUnpacker(codecs, _Stored(meta))

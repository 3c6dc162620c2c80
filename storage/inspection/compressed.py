"""Giving back what is compressed in a data directory that is looked at from outside."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.plugins.registry import get
from pulsarbox.storage.compression.decoder import Dictionary, RestUnpacker
from pulsarbox.storage.format import DICTIONARY_KEY, NEED
from pulsarbox.storage.inspection.box import META, Box, Environment
from pulsarbox.storage.lmdb.meta_environment import unpack_dictionary


class _Stored:
    """StoredCodecs of an open meta environment."""

    def __init__(self, meta: Environment) -> None:
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
    """What unpacks the entries of a box; None where nothing is compressed.

    ``plugins`` of the options is the directory where plugins are, beside those that are installed.
    """
    if box.format < 3:
        yield None
        return
    directory = options.get("plugins")
    codecs = RestCodecs(partial(get, directory=Path(directory) if directory else None))
    with box.open(META, growing=True) as meta:
        yield RestUnpacker(codecs, _Stored(meta))

"""Codec names and dictionaries from the tables of the meta environment."""

from pulsarbox.storage.compression.decoder import Dictionary
from pulsarbox.storage.lmdb.volume_set import VolumeSet


class MetaCodecs:
    """StoredCodecs backed by the tables of the meta environment."""

    def __init__(self, volumes: VolumeSet) -> None:
        self._volumes = volumes
        self._names: dict[bytes, str] = {}

    def name_of(self, tag: bytes) -> str:
        """See StoredCodecs."""
        if tag not in self._names:
            with self._volumes.metas.using(0) as meta:
                self._names.update({known: name for (known, _), name in meta.needs().items()})
        return self._names.get(tag, "")

    def dictionary(self, number: int) -> Dictionary | None:
        """See StoredCodecs."""
        with self._volumes.metas.using(0) as meta:
            return meta.dictionary(number)

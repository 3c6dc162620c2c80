"""Listing of a complete packed volume in the tables."""

from collections.abc import Callable

import lmdb

from pulsarbox.storage.lmdb.meta_environment import MetaEnvironment
from pulsarbox.storage.lmdb.volume_set import VolumeSet


def list_packed(volumes: VolumeSet, number: int, write: Callable[[MetaEnvironment], None]) -> None:
    """Write the rows of a packed volume; if that fails, remove the volume. Raises lmdb.Error, OSError."""
    try:
        with volumes.metas.using(0) as meta:
            write(meta)
    except (lmdb.Error, OSError):
        volumes.metas.drop(0)
        with volumes.metas.using(0) as meta:
            known = number in meta.contents()
        if not known:  # otherwise it is durable, though LMDB reported an error
            volumes.directory.remove(number)
            raise

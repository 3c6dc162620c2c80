"""The engine of a box with several data directories, with threads and real clocks."""

import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pulsarbox.config import Settings
from pulsarbox.config.data_directories import data_directories
from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.storage.ensemble.engine import EnsembleEngine, EnsembleLimits
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.keeping.maintenance import MaintenanceRates
from pulsarbox.storage.ensemble.member_writers import ThreadWriters


def ensemble_engine(settings: Settings, sizes: dict[str, Any], accept_loss_of: Sequence[str] = ()) -> EnsembleEngine:
    """Return the engine of the settings' data directories, each opened with ``sizes``."""
    codecs = RestCodecs()
    paths = [Path(path).absolute() for path in data_directories(settings)]
    return EnsembleEngine(
        [LmdbMember(path, codecs=codecs, **sizes) for path in paths],
        limits=EnsembleLimits(settings.journalSegmentMbytes << 20, settings.ensembleLateSeconds),
        writers=ThreadWriters(),
        codecs=codecs,
        accept_loss_of=[str(Path(path).absolute()) for path in accept_loss_of],
        monotonic=time.monotonic,
        wall=lambda: time.time_ns() // 1_000_000,
        new_id=lambda: str(uuid.uuid4()),
    )


def rates_of(settings: Settings) -> MaintenanceRates:
    """Return the limits of maintenance."""
    return MaintenanceRates(
        repair_bytes_per_second=settings.ensembleRepairMbytesPerSecond << 20,
        scrub_bytes_per_second=settings.ensembleScrubMbytesPerSecond << 20,
        scrub_days=settings.ensembleScrubDays,
    )

"""The engine of a box with several data directories, with threads and real clocks."""

import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pulsarbox.broker.policies.wanted_copies import WantedCopies
from pulsarbox.config import Settings
from pulsarbox.config.data_directories import data_directories
from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.storage.ensemble.engine import EnsembleEngine, EnsembleLimits
from pulsarbox.storage.ensemble.keeping.lmdb_directories import LmdbDirectories
from pulsarbox.storage.ensemble.keeping.maintenance import MaintenanceRates
from pulsarbox.storage.ensemble.keeping.operations import member_names
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.member_writers import ThreadWriters


def ensemble_engine(settings: Settings, sizes: dict[str, Any], accept_loss_of: Sequence[str] = ()) -> EnsembleEngine:
    """Return the engine of the settings' data directories, each opened with ``sizes``."""
    codecs = RestCodecs()
    directories = LmdbDirectories(lambda name: LmdbMember(name, codecs=codecs, **sizes))
    engine = EnsembleEngine(
        [directories.member(name) for name in _names(settings, directories)],
        limits=EnsembleLimits(settings.journalSegmentMbytes << 20, settings.ensembleLateSeconds),
        writers=ThreadWriters(),
        codecs=codecs,
        accept_loss_of=[str(Path(path).absolute()) for path in accept_loss_of],
        directories=directories,
        rates=rates_of(settings),
        monotonic=time.monotonic,
        wall=lambda: time.time_ns() // 1_000_000,
        new_id=lambda: str(uuid.uuid4()),
    )
    assert engine.keeper is not None
    engine.keeper.wanted = WantedCopies(settings)
    return engine


def _names(settings: Settings, directories: LmdbDirectories) -> list[str]:
    """Return the data directories of the settings, and those that were added while the box ran."""
    configured = [str(Path(path).absolute()) for path in data_directories(settings)]
    known = [found for name in configured if (found := directories.membership(name)) is not None]
    newest = max(known, key=lambda each: each.generation, default=None)
    recorded = [] if newest is None else [(record.name, record.state) for record in newest.members]
    return member_names(configured, recorded)


def rates_of(settings: Settings) -> MaintenanceRates:
    """Return the limits of maintenance."""
    return MaintenanceRates(
        repair_bytes_per_second=settings.ensembleRepairMbytesPerSecond << 20,
        scrub_bytes_per_second=settings.ensembleScrubMbytesPerSecond << 20,
        scrub_days=settings.ensembleScrubDays,
    )

"""The engine of a box with several data directories, with threads and real clocks."""

import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulsarbox.broker.policies.wanted_copies import WantedCopies
from pulsarbox.config import Settings
from pulsarbox.config.data_directories import data_directories
from pulsarbox.config.replica_address import is_replica
from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.storage.ensemble.engine import EnsembleEngine, EnsembleLimits
from pulsarbox.storage.ensemble.keeping.directories import Directories
from pulsarbox.storage.ensemble.keeping.lmdb_directories import LmdbDirectories
from pulsarbox.storage.ensemble.keeping.maintenance import MaintenanceRates
from pulsarbox.storage.ensemble.keeping.operations import member_names
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.member import Member
from pulsarbox.storage.ensemble.member_writers import ThreadWriters
from pulsarbox.storage.ensemble.membership import Membership

if TYPE_CHECKING:
    from pulsarbox.storage.ensemble.remote.replica_directories import ReplicaDirectories


def ensemble_engine(settings: Settings, sizes: dict[str, Any], accept_loss_of: Sequence[str] = ()) -> EnsembleEngine:
    """Return the engine of the settings' data directories, each opened with ``sizes``."""
    codecs = RestCodecs()
    local = LmdbDirectories(lambda name: LmdbMember(name, codecs=codecs, **sizes))
    reachable = _with_replicas(settings, local) if settings.ensembleReplicaSecretFile else None
    directories = local if reachable is None else reachable
    known = _memberships(settings, directories)
    engine = EnsembleEngine(
        _members(settings, directories, known),
        limits=EnsembleLimits(settings.journalSegmentMbytes << 20, settings.ensembleLateSeconds),
        writers=ThreadWriters(),
        codecs=codecs,
        accept_loss_of=[_absolute(name) for name in accept_loss_of],
        directories=directories,
        rates=rates_of(settings),
        monotonic=time.monotonic,
        wall=lambda: time.time_ns() // 1_000_000,
        new_id=lambda: str(uuid.uuid4()),
    )
    assert engine.keeper is not None
    engine.keeper.wanted = WantedCopies(settings)
    if reachable is not None:
        at_start = max((each.generation for each in known), default=0)
        reachable.generation = lambda: max(at_start, engine.table.membership.generation)
    return engine


def _with_replicas(settings: Settings, local: LmdbDirectories) -> "ReplicaDirectories":
    """Return the directories of this machine together with replicas. Nothing of it is loaded without a secret."""
    from pulsarbox.server.replica.box_side import replica_directories

    return replica_directories(settings, local)


def _absolute(name: str) -> str:
    return name if is_replica(name) else str(Path(name).absolute())


def _configured(settings: Settings) -> list[str]:
    return [_absolute(name) for name in data_directories(settings)]


def _memberships(settings: Settings, directories: Directories) -> list[Membership]:
    """Return the memberships that the data directories of the settings have."""
    found = [directories.membership(name) for name in _configured(settings)]
    return [each for each in found if each is not None]


def _members(settings: Settings, directories: Directories, known: Sequence[Membership]) -> list[Member]:
    """Return the members of the data directories of the settings, and of those that were added while the box ran.

    The latter are not created if they are missing: they can be of another machine.
    """
    configured = _configured(settings)
    newest = max(known, key=lambda each: each.generation, default=None)
    own = {each.member_id for each in known}
    others = [] if newest is None else [each for each in newest.members if each.member_id not in own]
    names = member_names(configured, [(record.name, record.state) for record in others])
    members = [directories.member(name) for name in names]
    for member in members[len(configured) :]:
        if isinstance(member, LmdbMember):
            member.must_exist = True
    return members


def rates_of(settings: Settings) -> MaintenanceRates:
    """Return the limits of maintenance."""
    return MaintenanceRates(
        repair_bytes_per_second=settings.ensembleRepairMbytesPerSecond << 20,
        scrub_bytes_per_second=settings.ensembleScrubMbytesPerSecond << 20,
        scrub_days=settings.ensembleScrubDays,
    )

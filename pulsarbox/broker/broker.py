"""The broker: eight inputs, six outputs, no clock, no thread, no socket.

Inputs: ``connected(outbox, ...)``, ``cnx.receive(frame, now)``, ``cnx.closed(now)``, ``committed(batch, now)``,
``read_done(token, entries, now)``, ``chore_done(chore, now)``, ``plugin_brought(key, found, now)``, ``on_timer(now)``.
Outputs: ``outbox.send``, ``take_batch()``, ``take_reads()``, ``take_chore()``, ``take_plugins()``, ``next_timer()``.

Backpressure is two booleans: an outbox that is full (the dispatcher stops; ``cnx.writable`` starts it
again), and ``full``, the open batch (the shell stops reading).
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulsarbox.broker.cnx import ServerCnx
from pulsarbox.broker.command_table import CommandRow, command_table
from pulsarbox.broker.compaction.topic_compaction import drop_leftovers
from pulsarbox.broker.core import Core
from pulsarbox.broker.dead_letter.router import DeadLetterOffice
from pulsarbox.broker.dispatch import plugin_hash_registry
from pulsarbox.broker.dynamic_configuration import DynamicConfiguration
from pulsarbox.broker.endpoints import Endpoints
from pulsarbox.broker.health import HealthCheck
from pulsarbox.broker.housekeeping import Chore
from pulsarbox.broker.outbox import Outbox
from pulsarbox.broker.plugins import Key, Plugins
from pulsarbox.broker.replay.job_registry import Jobs
from pulsarbox.broker.security.authentication import Authentication
from pulsarbox.broker.security.configured import authentication_of
from pulsarbox.broker.security.credential_expiry import look_again
from pulsarbox.broker.security.permissions import Permissions
from pulsarbox.broker.security.refusals import Refusals
from pulsarbox.broker.stats.pipeline_status import Pipelines
from pulsarbox.broker.stats.sampler import Samples
from pulsarbox.broker.tenants import Tenants
from pulsarbox.broker.topic.bulk_deletion import Removal
from pulsarbox.broker.topic.partition_routing import Routing
from pulsarbox.broker.topic.registry import Topics
from pulsarbox.broker.topic.topic_schemas import Schemas
from pulsarbox.broker.virtual_clock import VirtualClock, offset_of
from pulsarbox.clock import Deadlines, Now, in_words
from pulsarbox.config import Settings
from pulsarbox.storage.engine import ReadRequest, Reclaimed, Recovery, Whereabouts
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Entry
from pulsarbox.storage.recovery import Store

if TYPE_CHECKING:
    from pulsarbox.broker.faults.faults import Faults

Beside = Callable[[str, Callable[[], Any], Callable[[Any, Exception | None], None]], None]
"""A name, the work, and who is told in the loop what it has given or raised."""

_ROUNDS_MAX = 100
"""What is due behind so many rounds of deadlines comes with the next turns, at once as well."""


class Broker:
    """The pure core of the box."""

    folder: Path | None = None
    """The data directory, set by the shell; None where there is none."""
    standing: Callable[[], dict[str, Any]] | None = None
    """What the store takes and holds, for ``beside``; None where it is in memory."""
    whereabouts: Callable[[Sequence[int]], Whereabouts] | None = None
    """In which volumes ledgers stand, for ``beside``; None where the store is in memory."""
    faults: "Faults | None" = None
    """Rules of faults to inject; None where the box was not made for it."""
    on_shutdown: Callable[[str], None] | None = None
    """Ends the process in order, for a reason that is logged; None where the process is not the box's own."""

    def __init__(
        self,
        settings: Settings,
        recovery: Recovery,
        endpoints: Endpoints,
        now: Now,
        authentication: Authentication | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        """``now`` is real time: what the virtual clock adds stands with the data.

        ``authentication``: where it has been made already, of these settings. Raises PersistenceError where the data is
        ahead of the real time and the clock is not virtual, or where a hash is missing that subscriptions go by;
        ConfigError where authentication cannot work.
        """
        self.authentication = authentication or authentication_of(settings)
        """Who clients are; None where authentication is off, and nobody is anybody."""
        self.endpoints = endpoints
        store = Store(recovery)
        offset = offset_of(store, settings.brokerClock)
        self.core = Core(settings, store, now.wall + offset, plugins)
        self.clock = VirtualClock(self.core, offset)
        self._tell_start(store, self.core.started, now)
        self.core.commits.times.begin(now)
        self.core.cache_use.begin(now)
        self.configuration = DynamicConfiguration(self.core)
        plugin_hash_registry.check(self.core.plugins, settings, self.core.commits, self.core.catalog)
        self.tenants = Tenants(self.core)
        self.schemas = Schemas(self.core)
        self.permissions = Permissions(self.tenants)
        self.topics = Topics(self.core, self.tenants, self.schemas, self.permissions)
        self.removal = Removal(self.core, self.topics, self.tenants)
        self.routing = Routing(self.core, self.topics)
        self.core.office = DeadLetterOffice(self.core, self.topics, self.schemas, self.routing)
        self.core.plugins.prepare(settings)
        self.samples = Samples(self.topics, store, self.core.commits.times)
        self.core.jobs = Jobs(self.core, self.topics, self.schemas)
        self.pipelines = Pipelines()
        """What runners of pipelines tell of themselves."""
        self.health = HealthCheck(self.core, self.topics)
        drop_leftovers(self.core, now)
        if self.authentication is not None:
            look_again(self.authentication, self.core, now)
        box_now = Now(now.monotonic, now.wall + offset, offset)
        self.core.walks.start(self.core.settings, box_now)
        self.core.jobs.start(box_now)
        self.command_table: dict[int, CommandRow] = command_table(self.core.authorization)
        self.refusals = Refusals(self.core.events)
        """What clients were refused, for the log."""
        self.beside: Beside = _at_once
        """Has work done that is no turn's: reading files, taking apart what clients have packed."""
        self._outbox_of: type[Outbox] = Outbox
        self._cnx_of: type[ServerCnx] = ServerCnx
        if settings.faultInjectionEnabled:
            self._take_faults()
        self.cnxs: dict[ServerCnx, None] = {}
        self.connections_made = 0
        """By clients since the start."""
        self._waiting: list[Outbox] = []

    def _take_faults(self) -> None:
        from pulsarbox.broker.faults.faults import Faults
        from pulsarbox.broker.faults.faulty import FaultyCnx, FaultyOutbox

        self.faults, self._outbox_of, self._cnx_of = Faults(), FaultyOutbox, FaultyCnx

    def _tell_start(self, store: Store, wall: int, now: Now) -> None:
        if store.replayed_bytes:
            text = f"the box had not been stopped: {store.replayed_bytes:,} bytes of the log were read again"
            self.core.events.tell("recovered", "", text, now._replace(wall=wall), bytes=store.replayed_bytes)

    # Inputs

    def new_outbox(self) -> Outbox:
        """An outbox for a connection to come."""
        return self._outbox_of(self._waiting, self.core.settings.maxConnectionOutboundBufferBytes)

    def connected(
        self,
        outbox: Outbox,
        address: str,
        now: Now,
        *,
        reached: str = "",
        listener: str = "",
        secure: bool = False,
        certificate: str = "",
    ) -> ServerCnx:
        """A client has connected, from ``address``, to ``reached`` (both ``host:port``) on a listener's own port.

        ``secure``: over TLS. ``certificate``: the common name of the certificate that it has shown, if one.
        """
        self.connections_made += 1
        cnx = self._cnx_of(self, outbox, address, now)
        cnx.number = self.connections_made
        cnx.reached, cnx.listener = reached, listener
        cnx.secure, cnx.certificate = secure, certificate
        self.cnxs[cnx] = None
        return cnx

    def committed(self, batch: Batch, now: Now, error: Exception | None = None) -> None:
        """The batch is durable; with ``error``, nothing of it is stored."""
        if error is None:
            self.core.commits.committed(batch, now)
        else:
            self.core.commits.failed(batch, now, error)

    def read_done(self, token: int, entries: list[Entry], now: Now, error: Exception | None = None) -> None:
        """A read has brought its entries; with ``error``, none."""
        self.core.reads.done(token, entries, now, error)

    def chore_done(
        self, chore: Chore, now: Now, error: Exception | None = None, reclaimed: Reclaimed | None = None
    ) -> None:
        """A chore is carried out; with ``error`` it is not."""
        self.core.commits.housekeeping.done(chore, now, error, reclaimed)

    def plugin_brought(self, key: Key, found: object, now: Now) -> None:
        """A plugin is there, or the PluginError that says why not."""
        self.core.plugins.brought(key, found, now)

    def on_timer(self, now: Now) -> None:
        """A deadline of ``next_timer`` has come."""
        self.core.timers.run(now)

    def advance_clock(self, by: int, now: Now) -> Now:
        """Move the virtual clock forward by ``by`` milliseconds and do what is due then; this instant as it is then.

        Raises Conflict where the clock is not virtual, BadRequest where it cannot be moved so.
        """
        now = self.clock.advance(by, now)
        text = f"the clock was moved forward by {in_words(by)}"
        self.core.events.tell("clock-moved", "", text, now, by=by, offset=now.offset)
        for _ in range(_ROUNDS_MAX):  # what is done may set a deadline that has passed as well
            wall = self.next_timer().wall
            if wall is None or wall > now.wall:
                break
            self.on_timer(now)
        return now

    def is_catching_up(self, now: Now) -> bool:
        """Whether anything that is due by the wall clock, or follows from a changed policy, is still to be done."""
        wall = self.next_timer().wall
        core = self.core
        return (
            (wall is not None and wall <= now.wall) or core.under_way > 0 or core.walks.running or core.policies.telling
        )

    # Outputs

    def take_waiting(self) -> list[Outbox]:
        """The outboxes that have something to send, or to close."""
        waiting = self._waiting.copy()
        self._waiting.clear()
        return waiting

    def take_batch(self, now: Now) -> Batch | None:
        """The next batch to commit, None while one is under way or nothing is due."""
        return self.core.commits.take(now)

    def take_reads(self) -> list[ReadRequest]:
        """Reads to carry out."""
        return self.core.reads.take()

    def take_chore(self, now: Now) -> Chore | None:
        """A checkpoint to write, or disk to give back; None while one is under way or nothing is to be done."""
        return self.core.commits.housekeeping.take(now)

    def take_plugins(self) -> list[Key]:
        """Plugins to load, see ``plugin_brought``."""
        return self.core.plugins.take_wanted()

    def next_timer(self) -> Deadlines:
        """When ``on_timer`` is to be called next."""
        return self.core.timers.next()

    @property
    def committing(self) -> bool:
        """A batch is under way: ``take_batch`` gives no other before it is committed."""
        return self.core.commits.in_flight is not None

    @property
    def is_worth_a_commit(self) -> bool:
        """So much has gathered that a sync for it alone does not count."""
        return self.core.commits.is_worth_a_sync

    @property
    def full(self) -> bool:
        """The open batch is full: read nothing more from clients."""
        return self.core.commits.full

    # For the rooms above

    def when_durable(self, callback: Callable[[Now], None], now: Now) -> None:
        """Call back when every change of the metadata made so far is durable; at once where none is pending."""
        commits = self.core.commits
        if commits.metadata_pending:
            commits.after_commit(callback)
        else:
            callback(now)

    def look(self, now: Now) -> None:
        """Keep the counters of the box as a whole; see Meter.look. Topics are looked at one by one."""
        self.core.commits.times.look(now)
        self.core.cache_use.look(now)

    def drain(self, now: Now) -> None:
        """Prepare to stop: let clients go, write the checkpoint."""
        self.core.events.tell("stopping", "", "the box stops: clients are let go, a checkpoint is written", now)
        self.core.at_rest.held = True
        self.core.jobs.rest()
        for topic in self.topics:
            topic.close(now)
        self.core.commits.ask_checkpoint()


def _at_once(name: str, work: Callable[[], Any], done: Callable[[Any, Exception | None], None]) -> None:
    """Where there is no shell with threads."""
    try:
        result = work()
    except Exception as error:
        done(None, error)
    else:
        done(result, None)

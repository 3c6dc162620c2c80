"""The broker: nine inputs, seven outputs, no clock, no thread, no socket.

Inputs: ``connected(outbox, ...)``, ``cnx.receive(frame, now)``, ``cnx.closed(now)``, ``committed(batch, now)``,
``read_done(token, entries, now)``, ``chore_done(chore, now)``, ``plugin_brought(key, found, now)``,
``password_checked(check, matches, now)``, ``on_timer(now)``.
Outputs: ``outbox.send``, ``take_batch()``, ``take_reads()``, ``take_chore()``, ``take_plugins()``,
``take_password_checks()``, ``next_timer()``.

Backpressure is two booleans. A full outbox stops the dispatcher until ``cnx.writable``. A full open batch (``full``)
makes the shell stop reading sockets.
"""

from collections.abc import Callable, Sequence
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
from pulsarbox.broker.security.permissions import Permissions
from pulsarbox.broker.security.provider import LongCheck
from pulsarbox.broker.security.refusals import Refusals
from pulsarbox.broker.stats.pipeline_status import PipelineStatuses
from pulsarbox.broker.stats.sampler import Samples
from pulsarbox.broker.tenants import Tenants
from pulsarbox.broker.topic.bulk_deletion import Removal
from pulsarbox.broker.topic.partition_routing import PartitionRouting
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
"""Runs a named piece of work outside the turn, then calls back in the loop with its result or exception."""

_ROUNDS_MAX = 100
"""Rounds of due deadlines that ``advance_clock`` runs at once; the following turns run the rest."""


class Broker:
    """The pure core of the box."""

    folder: str | None = None
    """Path of the data directory, set by the shell; None without one."""
    standing: Callable[[], dict[str, Any]] | None = None
    """Returns the store's disk usage and volumes; called through ``beside``. None for an in-memory store."""
    whereabouts: Callable[[Sequence[int]], Whereabouts] | None = None
    """Returns the volumes that hold given ledgers; called through ``beside``. None for an in-memory store."""
    faults: "Faults | None" = None
    """Fault injection rules; None if fault injection is disabled."""
    on_shutdown: Callable[[str], None] | None = None
    """Shuts the process down in order and logs the given reason; None if the box does not own its process."""

    def __init__(
        self,
        settings: Settings,
        recovery: Recovery,
        endpoints: Endpoints,
        now: Now,
        authentication: Authentication | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        """Create the broker on the recovered store; ``now`` is real time, without the virtual clock's stored offset.

        ``authentication``: required with authenticationEnabled. Raises PersistenceError if the data is ahead of real
        time and the clock is not virtual, or if the hashing plugin of an existing subscription is missing.
        """
        if settings.authenticationEnabled and authentication is None:
            raise ValueError("authenticationEnabled is set, and the broker was given no authentication")
        self.authentication = authentication
        """Authenticates clients; None if authentication is disabled."""
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
        self.routing = PartitionRouting(self.core, self.topics)
        self.core.office = DeadLetterOffice(self.core, self.topics, self.schemas, self.routing)
        self.core.plugins.prepare(settings)
        self.samples = Samples(self.topics, store, self.core.commits.times)
        self.core.jobs = Jobs(self.core, self.topics, self.schemas)
        self.pipelines = PipelineStatuses()
        """Status reports of running pipelines."""
        self.health = HealthCheck(self.core, self.topics)
        drop_leftovers(self.core, now)
        box_now = Now(now.monotonic, now.wall + offset, offset)
        self.core.walks.start(self.core.settings, box_now)
        self.core.jobs.start(box_now)
        self.command_table: dict[int, CommandRow] = command_table(self.core.authorization)
        self.refusals = Refusals(self.core.events)
        """Aggregates refused client requests for the log."""
        self.beside: Beside = _at_once
        """Runs slow work outside the turn, such as reading files or decompressing client data."""
        self._outbox_of: type[Outbox] = Outbox
        self._cnx_of: type[ServerCnx] = ServerCnx
        if settings.faultInjectionEnabled:
            self._take_faults()
        self.cnxs: dict[ServerCnx, None] = {}
        self.connections_made = 0
        """Client connections since the start."""
        self._waiting: list[Outbox] = []

    def _take_faults(self) -> None:
        from pulsarbox.broker.faults.faults import Faults
        from pulsarbox.broker.faults.faulty import FaultyCnx, FaultyOutbox

        self.faults, self._outbox_of, self._cnx_of = Faults(), FaultyOutbox, FaultyCnx

    def _tell_start(self, store: Store, wall: int, now: Now) -> None:
        if store.replayed_bytes:
            text = f"the box was not stopped cleanly: {store.replayed_bytes:,} bytes of the log were replayed"
            self.core.events.tell("recovered", "", text, now._replace(wall=wall), bytes=store.replayed_bytes)

    # Inputs

    def new_outbox(self) -> Outbox:
        """Return an outbox for a new connection."""
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
        """Register a client connection from ``address`` to ``reached`` (both ``host:port``).

        ``listener``: the listener whose own port (bindAddresses) accepted it, empty for the shared port. ``secure``:
        over TLS. ``certificate``: the common name of the client certificate, if any.
        """
        self.connections_made += 1
        cnx = self._cnx_of(self, outbox, address, now)
        cnx.number = self.connections_made
        cnx.reached, cnx.listener = reached, listener
        cnx.secure, cnx.certificate = secure, certificate
        self.cnxs[cnx] = None
        return cnx

    def committed(self, batch: Batch, now: Now, error: Exception | None = None) -> None:
        """Complete a commit: the batch is durable, or with ``error`` nothing of it is stored."""
        if error is None:
            self.core.commits.committed(batch, now)
        else:
            self.core.commits.failed(batch, now, error)

    def read_done(self, token: int, entries: list[Entry], now: Now, error: Exception | None = None) -> None:
        """Complete a read with its entries, or with ``error`` and none."""
        self.core.reads.done(token, entries, now, error)

    def chore_done(
        self, chore: Chore, now: Now, error: Exception | None = None, reclaimed: Reclaimed | None = None
    ) -> None:
        """Complete a chore; with ``error`` it failed."""
        self.core.commits.housekeeping.done(chore, now, error, reclaimed)

    def plugin_brought(self, key: Key, found: object, now: Now) -> None:
        """Complete the loading of a plugin; ``found`` is the plugin or a PluginError."""
        self.core.plugins.brought(key, found, now)

    def password_checked(self, check: LongCheck, matches: bool, now: Now, error: Exception | None = None) -> None:
        """Complete the verification of a password; with ``error`` it failed."""
        assert self.authentication is not None
        self.authentication.checks.done(check, matches, now, error)

    def on_timer(self, now: Now) -> None:
        """Run everything that is due."""
        self.core.timers.run(now)

    def advance_clock(self, by: int, now: Now) -> Now:
        """Move the virtual clock forward by ``by`` milliseconds, run what is then due, and return the new time.

        Raises Conflict if the clock is not virtual, BadRequest if it cannot be moved that far.
        """
        now = self.clock.advance(by, now)
        text = f"the clock was moved forward by {in_words(by)}"
        self.core.events.tell("clock-moved", "", text, now, by=by, offset=now.offset)
        for _ in range(_ROUNDS_MAX):  # an action may set a deadline that is already due
            wall = self.next_timer().wall
            if wall is None or wall > now.wall:
                break
            self.on_timer(now)
        return now

    def is_catching_up(self, now: Now) -> bool:
        """Whether due wall-clock work or the effects of a changed policy are still outstanding."""
        wall = self.next_timer().wall
        core = self.core
        return (
            (wall is not None and wall <= now.wall) or core.under_way > 0 or core.walks.running or core.policies.telling
        )

    # Outputs

    def take_waiting(self) -> list[Outbox]:
        """Return the outboxes that have bytes to send or a connection to close."""
        waiting = self._waiting.copy()
        self._waiting.clear()
        return waiting

    def take_batch(self, now: Now) -> Batch | None:
        """Return the next batch to commit; None while one is in flight or nothing is due."""
        return self.core.commits.take(now)

    def take_reads(self) -> list[ReadRequest]:
        """Return the reads to carry out."""
        return self.core.reads.take()

    def take_chore(self, now: Now) -> Chore | None:
        """Return the next checkpoint or reclaim; None while one is under way or nothing is due."""
        return self.core.commits.housekeeping.take(now)

    def take_plugins(self) -> list[Key]:
        """Return the plugins to load; the shell answers with ``plugin_brought``."""
        return self.core.plugins.take_wanted()

    def take_password_checks(self) -> list[LongCheck]:
        """Return the passwords to verify in threads; the shell answers each with ``password_checked``."""
        return self.authentication.checks.take() if self.authentication is not None else []

    def next_timer(self) -> Deadlines:
        """Return when to call ``on_timer`` next."""
        return self.core.timers.next()

    @property
    def committing(self) -> bool:
        """Whether a batch is in flight; ``take_batch`` returns None until it completes."""
        return self.core.commits.in_flight is not None

    @property
    def is_worth_a_commit(self) -> bool:
        """Whether the open batch is large enough to justify a sync before the turn ends."""
        return self.core.commits.is_worth_a_sync

    @property
    def full(self) -> bool:
        """Whether the open batch is full; the shell then stops reading from clients."""
        return self.core.commits.full

    # For the rooms above

    def when_durable(self, callback: Callable[[Now], None], now: Now) -> None:
        """Call back once all metadata changes so far are durable; immediately if none is pending."""
        commits = self.core.commits
        if commits.metadata_pending:
            commits.after_commit(callback)
        else:
            callback(now)

    def look(self, now: Now) -> None:
        """Sample the box-wide counters; see Meter.look. Topics are sampled one by one."""
        self.core.commits.times.look(now)
        self.core.cache_use.look(now)

    def drain(self, now: Now) -> None:
        """Prepare to stop: disconnect clients and request a checkpoint."""
        self.core.events.tell(
            "stopping", "", "the box is stopping: clients are disconnected and a checkpoint is written", now
        )
        self.core.at_rest.held = True
        self.core.jobs.rest()
        for topic in self.topics:
            topic.close(now)
        self.core.commits.ask_checkpoint()


def _at_once(name: str, work: Callable[[], Any], done: Callable[[Any, Exception | None], None]) -> None:
    """Run work synchronously: the default without a shell that has threads."""
    try:
        result = work()
    except Exception as error:
        done(None, error)
    else:
        done(result, None)

"""The broker: ten inputs, seven outputs, no clock, no thread, no socket.

Inputs: ``connected(outbox, ...)``, ``cnx.receive(frame, now)``, ``cnx.closed(now)``, ``committed(batch, now)``,
``copies_durable(batch, copies, now)``, ``read_done(token, entries, now)``, ``chore_done(chore, now)``,
``plugin_loaded(key, found, now)``, ``password_checked(check, matches, now)``, ``on_timer(now)``.
Outputs: ``outbox.send``, ``take_batch()``, ``take_reads()``, ``take_chore()``, ``take_plugins()``,
``take_password_checks()``, ``next_timer()``.

Backpressure is two booleans. A full outbox stops the dispatcher until ``cnx.writable``. A full open batch (``full``)
makes the shell stop reading sockets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pulsarbox.broker.connection.cnx import ConnectionOrigin, ServerCnx
from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.clock import Deadlines, Now, in_words

if TYPE_CHECKING:
    from pulsarbox.broker.backlog.backlog_removals import BacklogRemovals
    from pulsarbox.broker.backlog.unsubscribed_index import UnsubscribedIndex
    from pulsarbox.broker.cluster.clusters import Clusters
    from pulsarbox.broker.compaction.compaction_history import Compactions
    from pulsarbox.broker.compression_policy import CompressionPolicy
    from pulsarbox.broker.connection.command_row import CommandRow
    from pulsarbox.broker.current_settings import CurrentSettings
    from pulsarbox.broker.dead_letter.router import DeadLetterRouter
    from pulsarbox.broker.dispatch.read_limits import ReadLimits
    from pulsarbox.broker.dispatch.unacked_limits import BrokerUnacked
    from pulsarbox.broker.dynamic_configuration import DynamicConfiguration
    from pulsarbox.broker.endpoints import Endpoints
    from pulsarbox.broker.events import Events
    from pulsarbox.broker.faults.faults import Faults
    from pulsarbox.broker.health import HealthCheck
    from pulsarbox.broker.host import Host
    from pulsarbox.broker.limits.box_limits import BoxLimits
    from pulsarbox.broker.long_computation import Computations
    from pulsarbox.broker.packages.packages import Packages
    from pulsarbox.broker.persistence.group_commit import GroupCommit
    from pulsarbox.broker.persistence.housekeeping import Chore
    from pulsarbox.broker.persistence.read_queue import ReadQueue
    from pulsarbox.broker.plugins import Key, Plugins
    from pulsarbox.broker.policies.policies import Policies
    from pulsarbox.broker.policies.unloaded_topics import PolicyWalks
    from pulsarbox.broker.replay.job_registry import JobRegistry
    from pulsarbox.broker.security.authentication import Authentication
    from pulsarbox.broker.security.authorization import Authorization
    from pulsarbox.broker.security.permissions import Permissions
    from pulsarbox.broker.security.provider import LongCheck
    from pulsarbox.broker.security.refusals import Refusals
    from pulsarbox.broker.stats.cache_hit_rate import CacheHitRate
    from pulsarbox.broker.stats.pipeline_status import PipelineStatuses
    from pulsarbox.broker.stats.sampler import Sampler
    from pulsarbox.broker.tenants import Tenants
    from pulsarbox.broker.timers import Timers
    from pulsarbox.broker.topic.maintenance.bulk_deletion import BulkDeletion
    from pulsarbox.broker.topic.partition_routing import PartitionRouting
    from pulsarbox.broker.topic.registry import Topics
    from pulsarbox.broker.topic.topic_schemas import Schemas
    from pulsarbox.broker.transactions.coordinator import Coordinator
    from pulsarbox.broker.transactions.epoch_commit import Epochs
    from pulsarbox.broker.transactions.transaction_table import TransactionTable
    from pulsarbox.broker.virtual_clock import VirtualClock
    from pulsarbox.config import Settings
    from pulsarbox.storage.catalog import Catalog, Row
    from pulsarbox.storage.engine import ReadRequest, Reclaimed
    from pulsarbox.storage.journal import Batch
    from pulsarbox.storage.record import Entry
    from pulsarbox.storage.recovery import Store

_ROUNDS_MAX = 100
"""Rounds of due deadlines that ``advance_clock`` runs at once; the following turns run the rest."""


@dataclass(eq=False, kw_only=True, repr=False)
class Broker:
    """The pure core of the box. ``composition.compose`` builds it and its parts."""

    # Services, most of which topics use as well

    current_settings: CurrentSettings
    started: int
    """When the box started, in milliseconds since 1970."""
    store: Store
    catalog: Catalog
    timers: Timers
    computations: Computations
    reads: ReadQueue
    commits: GroupCommit
    events: Events
    """Operator-facing events."""
    policies: Policies
    limits: BoxLimits
    bounds: ReadLimits
    unacked: BrokerUnacked
    plugins: Plugins
    authentication: Authentication | None
    """Authenticates clients; None if authentication is disabled."""
    authorization: Authorization
    transactions: TransactionTable
    compactions: Compactions
    unsubscribed: UnsubscribedIndex
    at_rest: CompressionPolicy
    removals: BacklogRemovals
    cache_use: CacheHitRate
    samples: Sampler
    endpoints: Endpoints
    host: Host
    """Services of the process that hosts the broker."""
    clock: VirtualClock
    faults: Faults | None
    """Fault injection rules; None if fault injection is disabled."""

    # Registries and what uses them

    configuration: DynamicConfiguration
    tenants: Tenants
    schemas: Schemas
    permissions: Permissions
    topics: Topics
    coordinator: Coordinator
    epochs: Epochs
    packages: Packages
    removal: BulkDeletion
    routing: PartitionRouting
    dead_letters: DeadLetterRouter
    walks: PolicyWalks
    jobs: JobRegistry
    pipelines: PipelineStatuses
    """Status reports of running pipelines."""
    health: HealthCheck
    command_table: dict[int, CommandRow]
    refusals: Refusals
    """Aggregates refused client requests for the log."""

    # State

    outbox_of: type[Outbox] = Outbox
    cnx_of: type[ServerCnx] = ServerCnx
    cnxs: dict[ServerCnx, None] = field(default_factory=dict, init=False)
    connections_made: int = field(default=0, init=False)
    """Client connections since the start."""
    waiting: list[Outbox] = field(default_factory=list, init=False)
    """Outboxes that have bytes to send or a connection to close."""
    _producer_names: int = field(default=0, init=False)

    @property
    def settings(self) -> Settings:
        """The settings in effect."""
        return self.current_settings.current

    @property
    def clusters(self) -> Clusters:
        """The clusters that tenants may use, with their metadata."""
        return self.tenants.clusters

    def read_records_in(self, folder: str) -> None:
        """Read events and the history in another data directory, because the former one is lost."""
        self.host = replace(self.host, folder=folder)

    # Inputs

    def new_outbox(self) -> Outbox:
        """Return an outbox for a new connection."""
        return self.outbox_of(self.waiting, self.settings.maxConnectionOutboundBufferBytes)

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
        origin = ConnectionOrigin(self.connections_made, address, reached, listener, secure, certificate)
        cnx = self.cnx_of(self, outbox, origin, now)
        self.cnxs[cnx] = None
        return cnx

    def committed(self, batch: Batch, now: Now, error: Exception | None = None) -> None:
        """Complete a commit: the batch is durable, or with ``error`` nothing of it is stored."""
        if error is None:
            self.commits.committed(batch, now)
        else:
            self.commits.failed(batch, now, error)

    def copies_durable(self, batch: Batch, copies: int, now: Now) -> None:
        """Handle that so many copies of the batch in flight are durable, fewer than its commit waits for."""
        self.commits.copies_durable(batch, copies, now)

    def read_done(self, token: int, entries: list[Entry], now: Now, error: Exception | None = None) -> None:
        """Complete a read with its entries, or with ``error`` and none."""
        self.reads.done(token, entries, now, error)

    def chore_done(
        self, chore: Chore, now: Now, error: Exception | None = None, reclaimed: Reclaimed | None = None
    ) -> None:
        """Complete a chore; with ``error`` it failed."""
        self.commits.housekeeping.done(chore, now, error, reclaimed)

    def plugin_loaded(self, key: Key, found: object, now: Now) -> None:
        """Complete the loading of a plugin; ``found`` is the plugin or a PluginError."""
        self.plugins.loaded(key, found, now)

    def password_checked(self, check: LongCheck, matches: bool, now: Now, error: Exception | None = None) -> None:
        """Complete the verification of a password; with ``error`` it failed."""
        assert self.authentication is not None
        self.authentication.checks.done(check, matches, now, error)

    def on_timer(self, now: Now) -> None:
        """Run everything that is due."""
        self.timers.run(now)

    def advance_clock(self, by: int, now: Now) -> Now:
        """Move the virtual clock forward by ``by`` milliseconds, run what is then due, and return the new time.

        Raises Conflict if the clock is not virtual, BadRequest if it cannot be moved that far.
        """
        now = self.clock.advance(by, now)
        text = f"the clock was moved forward by {in_words(by)}"
        self.events.report("clock-moved", "", text, now, by=by, offset=now.offset)
        for _ in range(_ROUNDS_MAX):  # an action may set a deadline that is already due
            wall = self.next_timer().wall
            if wall is None or wall > now.wall:
                break
            self.on_timer(now)
        return now

    def is_catching_up(self, now: Now) -> bool:
        """Whether due wall-clock work or the effects of a changed policy are still outstanding."""
        wall = self.next_timer().wall
        is_due = wall is not None and wall <= now.wall
        return is_due or self.removals.running > 0 or self.walks.running or self.policies.telling

    # Outputs

    def take_waiting(self) -> list[Outbox]:
        """Return the outboxes that have bytes to send or a connection to close."""
        waiting = self.waiting.copy()
        self.waiting.clear()
        return waiting

    def take_batch(self, now: Now) -> Batch | None:
        """Return the next batch to commit; None while one is in flight or nothing is due."""
        return self.commits.take(now)

    def take_reads(self) -> list[ReadRequest]:
        """Return the reads to carry out."""
        return self.reads.take()

    def take_chore(self, now: Now) -> Chore | None:
        """Return the next checkpoint or reclaim; None while one is under way or nothing is due."""
        return self.commits.housekeeping.take(now)

    def take_plugins(self) -> list[Key]:
        """Return the plugins to load; the shell answers with ``plugin_loaded``."""
        return self.plugins.take_wanted()

    def take_password_checks(self) -> list[LongCheck]:
        """Return the passwords to verify in threads; the shell answers each with ``password_checked``."""
        return self.authentication.checks.take() if self.authentication is not None else []

    def next_timer(self) -> Deadlines:
        """Return when to call ``on_timer`` next."""
        return self.timers.next()

    @property
    def committing(self) -> bool:
        """Whether a batch is in flight; ``take_batch`` returns None until it completes."""
        return self.commits.in_flight is not None

    @property
    def is_worth_a_commit(self) -> bool:
        """Whether the open batch is large enough to justify a sync before the turn ends."""
        return self.commits.is_worth_a_sync

    @property
    def full(self) -> bool:
        """Whether the open batch is full; the shell then stops reading from clients."""
        return self.commits.full

    # For the rooms above

    def producer_name(self) -> str:
        """Return a producer name that is unique across restarts."""
        self._producer_names += 1
        return f"{self.settings.clusterName}-{self.commits.boot}-{self._producer_names - 1}"

    def put_resource_group(self, name: str, row: Row | None, now: Now) -> None:
        """Write a resource group, or delete it with None; attached namespaces are affected at once."""
        self.limits.put_group(name, row, now)
        self.policies.apply_settings(self.settings, now)

    def when_durable(self, callback: Callable[[Now], None], now: Now) -> None:
        """Call back once all metadata changes so far are durable; immediately if none is pending."""
        commits = self.commits
        if commits.metadata_pending:
            commits.after_metadata(callback)
        else:
            callback(now)

    def sample(self, now: Now) -> None:
        """Sample the box-wide counters; see RateWindow.sample. Topics are sampled one by one."""
        self.commits.times.sample_rates(now)
        self.cache_use.sample(now)

    def drain(self, now: Now) -> None:
        """Prepare to stop: disconnect clients and request a checkpoint."""
        self.events.report(
            "stopping", "", "the box is stopping: clients are disconnected and a checkpoint is written", now
        )
        self.at_rest.hold()
        self.jobs.rest()
        for topic in self.topics:
            topic.close(now)
        self.commits.ask_checkpoint()

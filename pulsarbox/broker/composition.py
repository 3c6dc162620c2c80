"""Composition of the broker: one function builds every part, in the order of dependencies.

Every part is complete when its constructor returns. Where two parts need each other, the earlier one owns a list of
callbacks (``Callbacks``), and the later one adds itself.
"""

from typing import TYPE_CHECKING, Final

from pulsarbox.broker.backlog.backlog_removals import BacklogRemovals
from pulsarbox.broker.backlog.unsubscribed_index import UnsubscribedIndex
from pulsarbox.broker.backlog.unsubscribed_trimming import UnsubscribedTrimming
from pulsarbox.broker.broker import Broker
from pulsarbox.broker.callbacks import Callbacks
from pulsarbox.broker.cluster.clusters import Clusters
from pulsarbox.broker.compaction.compaction_history import Compactions
from pulsarbox.broker.compaction.topic_compaction import drop_leftovers
from pulsarbox.broker.compression_policy import CompressionPolicy
from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.connection.command_table import command_table
from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.broker.core import Core
from pulsarbox.broker.current_settings import CurrentSettings
from pulsarbox.broker.dead_letter.router import DeadLetterRouter
from pulsarbox.broker.dispatch import plugin_hash_registry
from pulsarbox.broker.dispatch.read_limits import ReadLimits
from pulsarbox.broker.dispatch.unacked_limits import BrokerUnacked
from pulsarbox.broker.dynamic_configuration import DynamicConfiguration, with_stored
from pulsarbox.broker.endpoints import Endpoints
from pulsarbox.broker.events import Events
from pulsarbox.broker.health import HealthCheck
from pulsarbox.broker.host import Host
from pulsarbox.broker.limits.box_limits import BoxLimits
from pulsarbox.broker.long_computation import Computations
from pulsarbox.broker.packages.packages import Packages
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.persistence.read_queue import ReadQueue
from pulsarbox.broker.persistence.replication import Replication
from pulsarbox.broker.plugins import Plugins
from pulsarbox.broker.policies.policies import Policies
from pulsarbox.broker.policies.unloaded_topics import PolicyWalks
from pulsarbox.broker.replay.job_claims import JobClaims
from pulsarbox.broker.replay.job_registry import JobRegistry
from pulsarbox.broker.replay.job_services import JobServices
from pulsarbox.broker.security.authentication import Authentication
from pulsarbox.broker.security.authorization import Authorization
from pulsarbox.broker.security.permissions import Permissions
from pulsarbox.broker.security.refusals import Refusals
from pulsarbox.broker.stats.cache_hit_rate import CacheHitRate
from pulsarbox.broker.stats.oldest_message_age import OldestMessageAges
from pulsarbox.broker.stats.pipeline_status import PipelineStatuses
from pulsarbox.broker.stats.sampler import Sampler
from pulsarbox.broker.tenants import Tenants
from pulsarbox.broker.timers import Timers
from pulsarbox.broker.topic.maintenance.bulk_deletion import BulkDeletion
from pulsarbox.broker.topic.maintenance.deadline_index import TopicDeadlines
from pulsarbox.broker.topic.partition_routing import PartitionRouting
from pulsarbox.broker.topic.quarantine import Quarantine
from pulsarbox.broker.topic.registry import Topics
from pulsarbox.broker.topic.topic_schemas import Schemas
from pulsarbox.broker.transactions.coordinator import Coordinator
from pulsarbox.broker.transactions.epoch_commit import Epochs
from pulsarbox.broker.transactions.transaction_table import TransactionTable
from pulsarbox.broker.virtual_clock import VIRTUAL, VirtualClock, offset_of
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.storage.engine import Recovery
from pulsarbox.storage.recovery import Store

if TYPE_CHECKING:
    from pulsarbox.broker.faults.faults import Faults

ALONE: Final = Host()


def compose(
    settings: Settings,
    recovery: Recovery,
    endpoints: Endpoints,
    now: Now,
    authentication: Authentication | None = None,
    plugins: Plugins | None = None,
    host: Host = ALONE,
) -> Broker:
    """Build the broker on the recovered store; ``now`` is real time, without the virtual clock's stored offset.

    ``authentication``: required with authenticationEnabled. Raises PersistenceError if the data is ahead of real time
    and the clock is not virtual, or if the hashing plugin of an existing subscription is missing.
    """
    if settings.authenticationEnabled and authentication is None:
        raise ValueError("authenticationEnabled is set, and the broker was given no authentication")
    store = Store(recovery)
    offset = offset_of(store, settings.brokerClock)
    box_now = Now(now.monotonic, now.wall + offset, offset)
    current = CurrentSettings(with_stored(settings, store.catalog))
    plugins = plugins or Plugins()
    at_rest = CompressionPolicy(current.current, lambda: plugins.disabled)
    core = compose_core(store, current, plugins, at_rest, box_now, host)
    _report_replay(store, core.events, box_now)
    plugin_hash_registry.check(plugins, settings, core.commits, core.catalog)
    broker = _compose_broker(settings, core, at_rest, endpoints, authentication, host, box_now)
    _connect_settings(broker)
    plugins.prepare(settings)
    drop_leftovers(core.catalog, core.commits, box_now)
    broker.packages.drop_leftovers(box_now)
    broker.walks.start(current.current, box_now)
    broker.jobs.start(box_now)
    return broker


def _compose_broker(
    settings: Settings,
    core: Core,
    at_rest: CompressionPolicy,
    endpoints: Endpoints,
    authentication: Authentication | None,
    host: Host,
    now: Now,
) -> Broker:
    """Build the registries and what uses them. ``settings`` are those of configuration files and options."""
    catalog, commits, timers, current = core.catalog, core.commits, core.timers, core.current_settings
    computations = Computations(timers)
    tenants = Tenants(catalog, commits, core.policies, current, Clusters(catalog, commits, settings, endpoints))
    schemas = Schemas(catalog, commits, core.policies, computations)
    permissions = Permissions(tenants)
    topics = Topics(core, tenants, schemas, permissions)
    _enforce_unsubscribed_limit(core, topics)
    coordinator = Coordinator(core.transactions, commits, timers, topics.persistent)
    epochs = Epochs(catalog, commits, core.authorization, core.transactions, coordinator)
    size, packages = settings.maxMessageSize, Packages(catalog, commits, core.reads, current, tenants)
    routing = PartitionRouting(settings, core.plugins, topics)
    dead_letters = DeadLetterRouter(catalog, commits, topics, schemas, routing, core.dead_letters, size)
    faults, outbox_of, cnx_of = _connection_classes(settings)
    return Broker(
        current_settings=current,
        started=core.started,
        store=core.store,
        catalog=catalog,
        timers=timers,
        computations=computations,
        reads=core.reads,
        commits=commits,
        events=core.events,
        policies=core.policies,
        limits=core.limits,
        bounds=core.bounds,
        unacked=core.unacked,
        plugins=core.plugins,
        authentication=authentication,
        authorization=core.authorization,
        transactions=core.transactions,
        compactions=core.compactions,
        unsubscribed=core.unsubscribed,
        at_rest=at_rest,
        removals=core.removals,
        cache_use=CacheHitRate(commits.tail_cache, core.reads, now),
        samples=Sampler(topics, core.store, commits.times),
        endpoints=endpoints,
        host=host,
        clock=VirtualClock(commits, now.offset, is_virtual=settings.brokerClock == VIRTUAL),
        configuration=DynamicConfiguration(settings, current, catalog, commits, core.plugins),
        tenants=tenants,
        schemas=schemas,
        permissions=permissions,
        topics=topics,
        coordinator=coordinator,
        epochs=epochs,
        packages=packages,
        removal=BulkDeletion(catalog, core.policies, topics, tenants, epochs, packages),
        routing=routing,
        dead_letters=dead_letters,
        walks=PolicyWalks(catalog, commits, timers, core.policies, topics.apply_policies),
        jobs=_jobs(core, topics, schemas, dead_letters, size),
        pipelines=PipelineStatuses(),
        health=HealthCheck(commits, timers, topics),
        command_table=command_table(core.authorization),
        refusals=Refusals(core.events),
        faults=faults,
        outbox_of=outbox_of,
        cnx_of=cnx_of,
    )


def compose_core(
    store: Store,
    current: CurrentSettings,
    plugins: Plugins,
    at_rest: CompressionPolicy,
    now: Now,
    host: Host = ALONE,
) -> Core:
    """Build the services that topics share."""
    settings, catalog = current.current, store.catalog
    events = Events(store.ids()["boot"] + 1)
    plugins.failed.add(events.plugin_failed)
    plugins.apply_settings(settings)
    timers, reads = Timers(), ReadQueue()
    bookies = host.bookies
    replication = None if bookies is None else Replication(bookies, settings, events, host.run_in_thread)
    commits = GroupCommit(store, settings, timers, events, at_rest, now, replication)
    policies = Policies(catalog, settings, commits.put_row, timers)
    policies.row_changed.add(lambda name, before, row, when: at_rest.policies_changed(before, row))
    authorization = Authorization(settings, catalog, policies)
    return Core(
        current_settings=current,
        started=now.wall,
        store=store,
        catalog=catalog,
        timers=timers,
        reads=reads,
        commits=commits,
        events=events,
        policies=policies,
        limits=BoxLimits(settings, catalog, timers, commits.put_row),
        bounds=ReadLimits(settings),
        unacked=BrokerUnacked(settings),
        plugins=plugins,
        authorization=authorization,
        transactions=TransactionTable(catalog, commits, current, authorization),
        quarantine=Quarantine(catalog, commits, events),
        compactions=Compactions(),
        ages=OldestMessageAges(),
        deadlines=TopicDeadlines(catalog, timers),
        unsubscribed=UnsubscribedIndex(catalog, commits, timers, settings),
        removals=BacklogRemovals(),
        job_claims=JobClaims(),
        inactive=Callbacks(),
        dead_letters=Callbacks(),
    )


def _jobs(core: Core, topics: Topics, schemas: Schemas, dead_letters: DeadLetterRouter, size: int) -> JobRegistry:
    """Build the registry of jobs; ``size`` is the maximum of a message in bytes."""
    services = JobServices(
        catalog=core.catalog,
        commits=core.commits,
        timers=core.timers,
        reads=core.reads,
        authorization=core.authorization,
        quarantine=core.quarantine,
        topics=topics,
        schemas=schemas,
        dead_letters=dead_letters,
        max_message_size=size,
    )
    return JobRegistry(services, core.events, core.job_claims)


def _enforce_unsubscribed_limit(core: Core, topics: Topics) -> None:
    replayed = [stored.name for stored in core.store.topics.values()]
    trim, count = topics.trim_unsubscribed, topics.count_unsubscribed
    UnsubscribedTrimming(core.unsubscribed, core.catalog, core.timers, trim, count, replayed)


def _connect_settings(broker: Broker) -> None:
    """Have the parts that derive values from dynamic settings apply each change."""

    def apply(settings: Settings, now: Now) -> None:
        broker.limits.apply_settings(settings, now)
        broker.policies.apply_settings(settings, now)
        broker.unsubscribed.apply_settings(settings, now)
        broker.walks.settings_changed(settings, now)
        broker.bounds.apply_settings(settings)
        broker.plugins.apply_settings(settings)
        broker.at_rest.apply_settings(settings)
        broker.commits.tail_cache.resize(settings.managedLedgerCacheSizeMB << 20)

    broker.current_settings.changed.add(apply)


def _connection_classes(settings: Settings) -> "tuple[Faults | None, type[Outbox], type[ServerCnx]]":
    """Return the fault injection rules, and the classes of outboxes and connections."""
    if not settings.faultInjectionEnabled:
        return None, Outbox, ServerCnx
    from pulsarbox.broker.faults.faults import Faults
    from pulsarbox.broker.faults.faulty_connection import FaultyCnx, FaultyOutbox

    return Faults(), FaultyOutbox, FaultyCnx


def _report_replay(store: Store, events: Events, now: Now) -> None:
    if store.replayed_bytes:
        text = f"the box was not stopped cleanly: {store.replayed_bytes:,} bytes of the log were replayed"
        events.report("recovered", "", text, now, bytes=store.replayed_bytes)

"""Deletion of namespaces and partitioned topics, topic by topic so that other clients are served in between.

Each step is durable with its batch. After a stop in between, a repeated request deletes the rest. Meanwhile no topic
can be created in the namespace or partitioned topic; Pulsar marks it as deleted for that, in the namespace's policies
or with the number of partitions.
"""

from collections.abc import Callable, Iterator
from functools import partial

from pulsarbox.broker.packages.packages import Packages
from pulsarbox.broker.policies.policies import Policies
from pulsarbox.broker.tenants import Tenants
from pulsarbox.broker.topic.maintenance.deletion_report import Deletion
from pulsarbox.broker.topic.registry import Topics
from pulsarbox.broker.transactions.epoch_commit import Epochs
from pulsarbox.clock import Now
from pulsarbox.errors import Conflict, NotFound
from pulsarbox.names import NON_PERSISTENT, PERSISTENT, TopicName, parse_topic
from pulsarbox.storage.catalog import Catalog, policies_key

Step = Callable[[Now], None]


class BulkDeletion:
    """Returns deletions as steps, for the caller to run in order, some per turn."""

    def __init__(
        self,
        catalog: Catalog,
        policies: Policies,
        topics: Topics,
        tenants: Tenants,
        epochs: Epochs,
        packages: Packages,
    ) -> None:
        self._catalog = catalog
        self._policies = policies
        self._topics = topics
        self._tenants = tenants
        self._epochs = epochs
        self._packages = packages

    def of_partitioned(self, name: TopicName, *, force: bool) -> Iterator[Step]:
        """Delete a partitioned topic, its partitions and their subscriptions.

        Raises NotFound; Conflict if it is not partitioned or is being deleted; without ``force`` PreconditionFailed
        while clients are connected. A step raises PreconditionFailed if a client has connected since.
        """
        topics = self._topics
        count = topics.partitions(name)
        if not count:
            if topics.exists(name):
                raise Conflict(
                    f"{name} is a non-partitioned topic. Instead of calling delete-partitioned-topic"
                    " please call delete."
                )
            raise NotFound(f"Topic {name} not found.")
        if str(name) in topics.leaving:
            raise Conflict(f"Topic {name} is being deleted")
        partitions = [name.partition(number) for number in range(count)]
        for partition in () if force else partitions:
            topic = topics.loaded(partition)
            if topic is not None:
                topic.check_idle()
        return self._partitions(name, partitions, force=force)

    def _partitions(self, name: TopicName, partitions: list[TopicName], *, force: bool) -> Iterator[Step]:
        self._topics.leaving.add(str(name))
        try:
            for partition in partitions:
                if self._topics.exists(partition):
                    yield partial(self._delete, partition, force=force)
            yield partial(self._topics.forget_partitioned, name)
        finally:
            self._topics.leaving.discard(str(name))

    def of_namespace(self, namespace: str, *, force: bool) -> Iterator[Step]:
        """Delete a namespace with all its topics and packages.

        Raises NotFound; Conflict if it is being deleted or, without ``force``, has topics.
        """
        if namespace in self._tenants.leaving:
            raise Conflict(f"Namespace {namespace} is being deleted")
        filled = any(self._topics.pages(namespace, system=True)) or any(self._partitioned(namespace))
        if filled and not force:
            raise Conflict("Cannot delete non empty namespace")
        return self._namespace(namespace)

    def _namespace(self, namespace: str) -> Iterator[Step]:
        self._tenants.leaving.add(namespace)
        try:
            for page in self._topics.pages(namespace, system=True):
                for name in page:
                    yield partial(self._delete, parse_topic(name), force=True, why=Deletion.NAMESPACE)
            for name in self._partitioned(namespace):
                yield partial(self._topics.forget_partitioned, parse_topic(name))
            for key in self._packages.keys_of(namespace):
                yield partial(self._packages.delete_key, key)
            yield partial(self._forget_namespace, namespace)
        finally:
            self._tenants.leaving.discard(namespace)

    def _delete(self, name: TopicName, now: Now, *, force: bool, why: Deletion = Deletion.REQUEST) -> None:
        if self._topics.exists(name):
            self._topics.delete(name, now, force=force, why=why)

    def _partitioned(self, namespace: str) -> Iterator[str]:
        for domain in (PERSISTENT, NON_PERSISTENT):
            yield from self._topics.partitioned_names(namespace, domain)

    def _forget_namespace(self, namespace: str, now: Now) -> None:
        for domain in (PERSISTENT, NON_PERSISTENT):  # the policies of a non-persistent topic may outlive it
            for key in self._catalog.keys(policies_key(f"{domain}://{namespace}/")):
                self._policies.put_topic(parse_topic(key.partition("/")[2]), None, now)
        self._epochs.forget_namespace(namespace)
        self._tenants.delete_namespace(namespace)

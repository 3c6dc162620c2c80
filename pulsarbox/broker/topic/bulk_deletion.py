"""Deleting what holds many topics: a namespace, or a partitioned topic. Topic by topic, so that others are served.

Each step is durable with the batch that it is in, so a stop in between leaves what is still to be deleted; asked once
more, the rest goes. Nothing comes into being meanwhile in what is on its way out, as in Pulsar, where a mark stands in
the policies of the namespace, or with the number of partitions.
"""

from collections.abc import Callable, Iterator
from functools import partial

from pulsarbox.broker.core import Core
from pulsarbox.broker.tenants import Tenants
from pulsarbox.broker.topic.deletion_report import Deletion
from pulsarbox.broker.topic.registry import Topics
from pulsarbox.clock import Now
from pulsarbox.errors import Conflict, NotFound
from pulsarbox.names import NON_PERSISTENT, PERSISTENT, TopicName, parse_topic
from pulsarbox.storage.catalog import policies_key

Step = Callable[[Now], None]


class Removal:
    """Both are given as steps, which are to be taken one after another, some in a turn."""

    def __init__(self, core: Core, topics: Topics, tenants: Tenants) -> None:
        self._core = core
        self._topics = topics
        self._tenants = tenants

    def of_partitioned(self, name: TopicName, *, force: bool) -> Iterator[Step]:
        """Delete a partitioned topic, its partitions and their subscriptions.

        Raises NotFound, Conflict where it is not partitioned or being deleted; without ``force`` PreconditionFailed
        while anybody is connected. A step raises that for who has come since.
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
        """Delete a namespace with all that is in it.

        Raises NotFound; Conflict where it is being deleted, and without ``force`` where it has topics.
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
        for domain in (PERSISTENT, NON_PERSISTENT):  # a topic that is not persistent may be gone before its policies
            for key in self._core.catalog.keys(policies_key(f"{domain}://{namespace}/")):
                self._core.policies.put_topic(parse_topic(key.partition("/")[2]), None, now)
        self._core.epochs.forget_namespace(namespace)
        self._tenants.delete_namespace(namespace)

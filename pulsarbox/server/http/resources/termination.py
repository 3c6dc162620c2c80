"""Termination of topics, after which nothing can be published to them."""

from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import NotAcceptable, NotAllowed, NotFound
from pulsarbox.names import TopicName
from pulsarbox.server.http.framework.cooperative_work import in_turns, when_all
from pulsarbox.server.http.framework.message_id_json import shown
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, answer
from pulsarbox.server.http.framework.resource_lookup import find_topic, persistent, require_namespace
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.storage.record import Position

AT_ONCE = 20
"""Partitions processed per turn."""


def terminate(call: HttpRequest) -> DeferredAnswer:
    """Terminate a topic; return the id of its last message. Idempotent."""
    name = call.topic()
    if not name.persistent:
        raise NotAcceptable("Need to provide a persistent topic name")
    require_namespace(call, name)
    if is_system(str(name)):
        raise NotAllowed("Termination of a system topic is not allowed")
    if call.topics.partitions(name):
        raise NotAllowed("Termination of a partitioned topic is not allowed")
    topic = _stored(call, name, call.now)
    later = DeferredAnswer()
    topic.termination.begin(lambda at, now: later.complete(answer(shown(at, -1))), later.failed, call.now)
    return later


def terminate_partitions(call: HttpRequest) -> DeferredAnswer:
    """Terminate all partitions of a topic; return the id of each last message. None terminates if one is missing."""
    name, topics = call.topic(), call.topics
    require_namespace(call, name)
    count = topics.partitions(name)
    if not count:
        raise NotAllowed(
            "Termination of a non-partitioned topic is not allowed using partitioned-terminate,"
            " please use terminate commands"
        )
    if not name.persistent:
        raise NotAcceptable("Need to provide a persistent topic name")
    parts = [name.partition(index) for index in range(count)]
    missing = next((part for part in parts if not topics.exists(part)), None)
    if missing is not None:
        raise NotFound(f"Topic {missing} not found: create it first, with createMissedPartitions")
    ends: dict[int, Position] = {}
    later = DeferredAnswer()
    done, failed = when_all(
        later, count, lambda: answer({str(index): shown(ends[index], -1) for index in sorted(ends)})
    )

    def begin(part: TopicName, now: Now) -> None:
        def ended(at: Position, when: Now) -> None:
            ends[part.partition_index] = at
            done(when)

        _stored(call, part, now).termination.begin(ended, failed, now)

    in_turns(call, parts, begin, lambda now, _: None, AT_ONCE).on_complete(later.complete)
    return later


def _stored(call: HttpRequest, name: TopicName, now: Now) -> PersistentTopic:
    return persistent(find_topic(call, name, now), "Termination")


_TOPIC = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}/terminate"

ROUTES = (
    HttpRoute("POST", _TOPIC, Permission.TENANT_ADMIN, terminate),
    HttpRoute("POST", f"{_TOPIC}/partitions", Permission.TENANT_ADMIN, terminate_partitions),
)

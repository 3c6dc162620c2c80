"""Topics, of both domains."""

from pulsarbox.errors import NotFound
from pulsarbox.names import parse_topic
from pulsarbox.server.http.bundles import bundle_of
from pulsarbox.server.http.call import DONE, Answer, Call, answer, texts
from pulsarbox.server.http.routes import Permission, Route

_MODES = {"persistent": "PERSISTENT", "non-persistent": "NON_PERSISTENT"}


def topics(call: Call) -> Answer:
    """The topics of a namespace, partitions one by one; of one bundle, where it is named."""
    mode = _MODES[call.path["domain"]]
    names = call.broker.topics.names(call.namespace(), mode, system=call.flag("includeSystemTopic"))
    bundle = call.query.get("bundle")
    if bundle:
        names = [name for name in names if bundle_of(call.broker.tenants, parse_topic(name)) == bundle]
    return answer(names)


def create(call: Call) -> Answer:
    """Create a topic that is not partitioned. The body holds its properties, or nothing."""
    call.broker.topics.create(call.topic(), call.now, texts(call.json(), "Properties of a topic"))
    return DONE


def delete(call: Call) -> Answer:
    """Delete a topic; while anybody is connected, by force only."""
    topic = call.topic()
    missing = not call.broker.topics.exists(topic) and not call.broker.topics.partitions(topic)
    if missing and not topic.persistent:
        return DONE  # it is gone with the last restart at the latest: as in Pulsar, not worth an error
    call.broker.topics.delete(topic, call.now, force=call.flag("force"))
    return DONE


def subscriptions(call: Call) -> Answer:
    """The names of the subscriptions, those of readers too; of a partitioned topic those of all its partitions."""
    topic = call.topic()
    partitions = call.broker.topics.partitions(topic)
    found = [
        call.broker.topics.find(name, call.now) for name in (topic, *(topic.partition(i) for i in range(partitions)))
    ]
    if not partitions and found == [None]:
        raise NotFound(f"Topic {topic} not found")
    return answer(sorted({each.name for one in found if one is not None for each in one.all_subscriptions()}))


_NAMESPACE = "/admin/v2/{domain}/{tenant}/{namespace}"

ROUTES = (
    Route("GET", _NAMESPACE, Permission.NAMESPACE_USER, topics),
    Route("PUT", f"{_NAMESPACE}/{{topic}}", Permission.TENANT_ADMIN, create),
    Route("DELETE", f"{_NAMESPACE}/{{topic}}", Permission.TENANT_ADMIN, delete),
    Route("GET", f"{_NAMESPACE}/{{topic}}/subscriptions", Permission.TOPIC_USER, subscriptions),
)

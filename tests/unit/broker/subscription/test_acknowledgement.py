"""``pulsarbox.broker.subscription.acknowledgement``: acknowledgements that wait for a read."""

import pytest

from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.errors import PersistenceError
from pulsarbox.names import parse_topic
from tests.unit.broker.playbook import TOPIC, Box, Client


def unread_backlog() -> tuple[Box, Client, list[tuple[int, int]], Subscription]:
    """Build a box with five messages on disk only, and a consumer to which none are dispatched."""
    before = Box()
    sent = before.client().publish(5)
    before.client().subscribe()
    box = before.restart()
    client = box.client()
    client.subscribe()
    topic = box.broker.topics.find(parse_topic(TOPIC), box.now)
    assert isinstance(topic, PersistentTopic)
    subscription = topic.subscriptions["s"]
    assert isinstance(subscription, Subscription)
    box.auto = False
    return box, client, sent, subscription


@pytest.mark.parametrize("error", [None, PersistenceError("bad disk")], ids=["read", "unreadable"])
def test_an_acknowledgement_counts_from_when_its_last_read_ends(error: PersistenceError | None) -> None:
    box, client, sent, subscription = unread_backlog()
    client.ack(*sent[:2])
    first, second = box.broker.take_reads()
    box._set_time(box.time + 5)
    box.broker.read_done(first.token, box.engine.read(first), box.now)
    box._set_time(box.time + 7)
    entries = [] if error is not None else box.engine.read(second)
    box.broker.read_done(second.token, entries, box.now, error)
    (consumer,) = subscription.consumers
    assert subscription.cursor.mark_delete == (sent[0] if error is not None else sent[1])
    assert consumer.last_acked == subscription.mark_moved == box.now.wall
    box.auto = True
    box.turn()
    assert client.take("ackResponse").HasField("error") == (error is not None)


def test_an_acknowledgement_of_an_entry_that_is_trimmed_while_it_is_read() -> None:
    box, client, sent, subscription = unread_backlog()
    client.ack(sent[0])
    (request,) = box.broker.take_reads()
    box._set_time(box.time + 5)
    del subscription.ledger.ledgers[sent[0][0]]
    box.broker.read_done(request.token, [], box.now, PersistenceError("trimmed"))
    (consumer,) = subscription.consumers
    assert consumer.last_acked == box.now.wall

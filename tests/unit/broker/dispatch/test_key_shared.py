"""Key_Shared: ``broker.dispatch.key_shared``."""

from collections.abc import Iterable
from typing import Any

from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.dispatch.key_shared import KeySharedDispatcher
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import (
    CommandAck,
    CommandSubscribe,
    KeySharedMeta,
    KeySharedMode,
    MessageIdData,
    ServerError,
)
from pulsarbox.server.http.statistics.topic_stats import StatsOptions, subscription_stats
from tests.unit.broker.playbook import TOPIC, Box, Client

KEY_SHARED = CommandSubscribe.Key_Shared
At = tuple[int, int]


class Party:
    """Consumers of one Key_Shared subscription, each on its own connection, and a producer."""

    def __init__(self, box: Box, **fields: Any) -> None:
        self.box = box
        self.fields = fields
        self.clients: dict[str, Client] = {}
        self.producer = box.client()
        self.producer.producer(1)
        self.keys: dict[At, str] = {}
        self._sequence = 0

    def join(self, name: str, permits: int = 1000, **fields: Any) -> Client:
        client = self.clients[name] = self.box.client()
        reply = client.subscribe("s", consumer_name=name, subType=KEY_SHARED, **(self.fields | fields))
        assert not hasattr(reply, "error"), reply
        if permits:
            client.flow(permits)
        return client

    def publish(self, *keys: str) -> list[At]:
        sent = []
        for key in keys:
            self.producer.send(self._sequence, partition_key=key)
            self._sequence += 1
            receipt = self.producer.take("send_receipt").message_id
            sent.append((receipt.ledgerId, receipt.entryId))
            self.keys[sent[-1]] = key
        return sent

    def got(self, name: str) -> list[str]:
        """Return the keys of the received messages, in order."""
        return [self.keys[at] for at in self.clients[name].received()]

    def stats(self) -> dict[str, Any]:
        """Return the statistics of the subscription."""
        topic = self.box.broker.topics.find(parse_topic(TOPIC), self.box.now)
        assert isinstance(topic, PersistentTopic)
        return subscription_stats(topic.subscriptions["s"], StatsOptions(self.box.now, "h:1"))

    @property
    def dispatcher(self) -> KeySharedDispatcher:
        found = self.box.broker.topics.find(parse_topic(TOPIC), self.box.now)
        dispatcher = found.subscriptions["s"].dispatcher  # type: ignore[union-attr]
        assert isinstance(dispatcher, KeySharedDispatcher)
        return dispatcher


def keys(numbers: Iterable[int]) -> list[str]:
    return [f"key{number}" for number in numbers]


ALPHA = keys((2, 5, 7, 10, 13, 14, 15, 16, 18, 21, 22, 23))
"""The keys from key0 to key23 that Pulsar 4.2.4 assigns to alpha beside beta with consistent hashing."""
BETA = keys(number for number in range(24) if f"key{number}" not in ALPHA)
ALL = keys(range(24))


def test_keys_go_to_the_consumers_that_pulsar_gives_them_to() -> None:
    party = Party(Box())
    party.join("alpha")
    party.join("beta")
    party.publish(*ALL)
    assert (party.got("alpha"), party.got("beta")) == (ALPHA, BETA)


def test_a_key_keeps_its_order_while_a_consumer_joins() -> None:
    party = Party(Box())
    alpha = party.join("alpha")
    first = party.publish(*ALL)
    assert alpha.received() == first
    beta = party.join("beta")
    second = party.publish(*ALL)
    assert party.got("alpha") == ALPHA, "its own keys go on"
    assert beta.received() == [], "alpha has its keys unacknowledged"
    assert set(party.dispatcher.draining_slots().values()) == {alpha.cnx.consumers[1]}
    assert party.dispatcher.blocked_reason() == Reason.DRAINING
    alpha.ack(first[0])
    assert beta.received() == [second[0]]
    alpha.ack(*first[1:])
    assert party.got("beta") == BETA[1:]
    assert party.dispatcher.blocked_reason() == Reason.END_OF_LOG


def test_what_a_leaver_held_goes_on_in_order_without_a_count() -> None:
    party = Party(Box())
    alpha = party.join("alpha")
    party.publish(*ALL, *ALL)
    party.join("beta")
    alpha.request("close_consumer", consumer_id=1)
    beta = party.clients["beta"]
    counts = []
    came = []
    while beta.inbox:
        message = beta.take("message")
        counts.append(message.redelivery_count)
        came.append(party.keys[message.message_id.ledgerId, message.message_id.entryId])
    assert came == ALL + ALL
    assert set(counts) == {0}


def test_a_connection_that_is_lost_counts() -> None:
    party = Party(Box())
    alpha = party.join("alpha")
    party.publish("a")
    alpha.cnx.closed(party.box.now)
    beta = party.join("beta")
    assert beta.take("message").redelivery_count == 1


def test_a_consumer_without_permits_holds_back_its_keys_only() -> None:
    party = Party(Box())
    alpha = party.join("alpha", permits=1)
    party.join("beta")
    party.publish(*ALL, *ALL)
    assert party.got("alpha") == ALPHA[:1]
    assert party.got("beta") == BETA + BETA
    assert party.dispatcher.blocked_reason() == Reason.KEY_BLOCKED
    alpha.flow(1000)
    assert party.got("alpha") == ALPHA[1:] + ALPHA


def test_look_ahead_is_bounded() -> None:
    party = Party(Box(keySharedLookAheadMsgInReplayThresholdPerConsumer=3))
    alpha = party.join("alpha", permits=0)
    party.join("beta")
    party.publish(*keys([2] * 10), *BETA)
    assert party.got("beta") == [], "six entries of alpha wait, more are not looked at"
    assert party.dispatcher.blocked_reason() == Reason.KEY_BLOCKED
    alpha.flow(6)
    assert len(party.got("alpha")) == 6
    assert party.got("beta") == BETA


def test_redelivery_goes_to_the_same_consumer_in_the_order_of_entries() -> None:
    party = Party(Box())
    alpha = party.join("alpha")
    sent = party.publish("a", "b", "a")
    alpha.received()
    for at in reversed(sent):
        ids = [MessageIdData(ledgerId=at[0], entryId=at[1])]
        alpha.ask("redeliverUnacknowledgedMessages", consumer_id=1, message_ids=ids)
    assert alpha.received() == sent[::-1], "asked for one by one"
    alpha.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    messages = [alpha.take("message") for _ in sent]
    assert [(each.message_id.ledgerId, each.message_id.entryId) for each in messages] == sent
    assert {each.redelivery_count for each in messages} == {2}


def test_a_negative_acknowledgement_of_a_draining_key_waits_for_the_others() -> None:
    party = Party(Box())
    alpha = party.join("alpha")
    sent = party.publish("key0", "key0", "key0")
    alpha.received()
    beta = party.join("beta")
    ids = [MessageIdData(ledgerId=sent[0][0], entryId=sent[0][1])]
    alpha.ask("redeliverUnacknowledgedMessages", consumer_id=1, message_ids=ids)
    assert beta.received() == alpha.received() == []
    alpha.ack(sent[1])
    assert beta.received() == []
    alpha.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    assert beta.received() == [sent[0], sent[2]]


def test_out_of_order_delivery_does_not_wait() -> None:
    meta = KeySharedMeta(keySharedMode=KeySharedMode.AUTO_SPLIT, allowOutOfOrderDelivery=True)
    party = Party(Box(), keySharedMeta=meta)
    party.join("alpha")
    party.publish(*ALL)
    party.join("beta")
    party.publish(*ALL)
    assert party.got("beta") == BETA


def test_keys_of_ranges_that_nobody_has_wait() -> None:
    def sticky(start: int, end: int) -> KeySharedMeta:
        meta = KeySharedMeta(keySharedMode=KeySharedMode.STICKY)
        meta.hashRanges.add(start=start, end=end)
        return meta

    party = Party(Box())
    low = party.join("low", keySharedMeta=sticky(0, 300))
    sent = party.publish("key1", "key2", "key1", "key2")  # slots 293 and 14772
    assert low.received() == sent[::2]
    assert party.dispatcher.blocked_reason() == Reason.KEY_BLOCKED
    high = party.join("high", keySharedMeta=sticky(301, 65535))
    assert high.received() == sent[1::2]


def test_entries_without_keys_spread() -> None:
    party = Party(Box())
    party.join("alpha")
    party.join("beta")
    for sequence in range(40):
        party.producer.send(sequence)
    shares = [len(party.clients[name].received()) for name in ("alpha", "beta")]
    assert sum(shares) == 40
    assert min(shares) > 5


def test_cumulative_acknowledgements_mean_nothing() -> None:
    party = Party(Box())
    alpha = party.join("alpha")
    sent = party.publish("a", "b")
    alpha.received()
    assert not alpha.ack(sent[1], ack_type=CommandAck.Cumulative).HasField("error")
    alpha.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    assert alpha.received() == sent


def test_an_unacknowledged_limit_holds_one_consumer() -> None:
    party = Party(Box(maxUnackedMessagesPerConsumer=4))
    alpha = party.join("alpha")
    party.join("beta")
    sent = party.publish(*ALL)
    got = alpha.received()
    assert len(got) == 4
    assert len(party.got("beta")) == 4
    assert party.dispatcher.blocked_reason() == Reason.UNACKED_LIMIT
    alpha.ack(*got[:2])
    assert party.got("alpha") == ALPHA[4:6]
    assert party.got("beta") == []
    assert sent


def test_a_backlog_from_the_disk_after_a_restart() -> None:
    box = Box(dispatcherMaxReadBatchSize=10)
    party = Party(box)
    party.join("alpha", permits=0)
    sent = party.publish(*(f"key{i % 24}" for i in range(200)))
    again = Party(box.restart())
    again.keys = party.keys
    alpha = again.join("alpha", permits=0)
    again.join("beta", permits=200)
    for _ in range(50):
        alpha.flow(3)
    shares = again.got("alpha"), again.got("beta")
    assert sorted(shares[0] + shares[1]) == sorted(party.keys[at] for at in sent)
    assert set(shares[0]) == set(ALPHA)


def test_everything_comes_once_while_consumers_come_and_go() -> None:
    party = Party(Box())
    seen: dict[str, list[At]] = {}
    names = [f"c{i}" for i in range(12)]
    sent: list[At] = []
    for turn in range(60):
        name = names[turn % len(names)]
        if name in party.clients:
            party.clients.pop(name).request("close_consumer", consumer_id=1)
        else:
            party.join(name, permits=turn % 7)
        sent += party.publish(*keys(range(turn % 24)))
        for client in party.clients.values():
            for at in client.received():
                order = seen.setdefault(party.keys[at], [])
                assert not order or at > order[-1] or at in order, "a key is out of order"
                order.append(at)
                if turn % 3:
                    client.ack(at)
            client.flow(5)
    left = party.join("last", permits=10_000)
    for name in [each for each in party.clients if each != "last"]:
        party.clients[name].request("close_consumer", consumer_id=1)
    for at in left.received():
        seen.setdefault(party.keys[at], []).append(at)
    assert {at for order in seen.values() for at in order} == set(sent)


def test_all_consumers_want_the_same_policy() -> None:
    in_order = KeySharedMeta(keySharedMode=KeySharedMode.AUTO_SPLIT)
    any_order = KeySharedMeta(keySharedMode=KeySharedMode.AUTO_SPLIT, allowOutOfOrderDelivery=True)
    sticky = KeySharedMeta(keySharedMode=KeySharedMode.STICKY)
    sticky.hashRanges.add(start=0, end=10)
    different = "Subscription is of different type. Active subscription "
    refusals = (
        (
            in_order,
            sticky,
            "key_shared mode of 'AUTO_SPLIT' is different than the connecting consumer's key_shared mode 'STICKY'.",
        ),
        (in_order, any_order, "does not allow out of order delivery while the connecting consumer allows it."),
        (any_order, in_order, "allows out of order delivery while the connecting consumer does not allow it."),
    )
    for first, second, text in refusals:
        box = Box()
        Party(box).join("first", keySharedMeta=first)
        reply = box.client().subscribe("s", consumer_name="second", subType=KEY_SHARED, keySharedMeta=second)
        assert (reply.error, reply.message) == (ServerError.ConsumerBusy, different + text)


def test_the_limit_of_a_subscription_holds_among_the_consumers_of_one_read() -> None:
    party = Party(Box(maxUnackedMessagesPerSubscription=4))
    alpha, beta = party.join("alpha", permits=0), party.join("beta", permits=0)
    party.box.auto = False
    alpha.flow(1000)
    beta.flow(1000)
    for sequence, key in enumerate(ALL):
        party.producer.send(sequence, partition_key=key)
    party.box.auto = True
    party.box.turn()
    got = [len(each.received()) for each in (alpha, beta)]
    assert min(got) == 0, "who came first has reached the limit"
    assert party.dispatcher.blocked_reason() == Reason.UNACKED_LIMIT


def test_a_key_that_comes_back_to_who_has_it_waits_no_longer() -> None:
    party = Party(Box())
    alpha = party.join("alpha")
    party.publish("key0")
    beta = party.join("beta")
    party.publish("key0", "key0")
    assert (party.got("alpha"), party.got("beta")) == (["key0"], [])
    beta.request("close_consumer", consumer_id=1)
    assert alpha.received(), "it was to wait for itself"
    assert party.dispatcher.blocked_reason() == Reason.END_OF_LOG


def test_what_is_acknowledged_while_it_waits_makes_room_for_looking_ahead() -> None:
    party = Party(Box(keySharedLookAheadMsgInReplayThresholdPerConsumer=1))
    party.join("alpha", permits=0)
    beta = party.join("beta")
    sent = party.publish("key2", "key2", "key2", "key0")
    assert beta.received() == [], "two entries of alpha wait, more may not"
    beta.ack(sent[1])
    assert party.dispatcher.blocked_reason() == Reason.KEY_BLOCKED
    beta.ack(sent[0])
    assert beta.received() == [sent[3]]


def test_what_a_limit_stopped_goes_on_when_another_consumer_releases_it() -> None:
    party = Party(Box(maxUnackedMessagesPerSubscription=2, dispatcherMaxReadBatchSize=1))
    alpha, beta = party.join("alpha"), party.join("beta", permits=0)
    sent = party.publish("key2", "key0", "key1")
    assert alpha.received() == sent[:1]
    beta.flow(10)
    assert beta.received() == sent[1:2], "the limit is reached"
    alpha.ack(sent[0])
    assert beta.received() == sent[2:]


def test_a_range_of_a_connection_that_is_dead_goes_to_who_tries_again() -> None:
    meta = KeySharedMeta(keySharedMode=KeySharedMode.STICKY)
    meta.hashRanges.add(start=0, end=65535)
    party = Party(Box(connectionLivenessCheckTimeoutMillis=1000), keySharedMeta=meta)
    party.join("dead")
    again = party.box.client()
    assert again.subscribe("s", subType=KEY_SHARED, keySharedMeta=meta).error == 19
    party.box.advance(1.1)
    assert not hasattr(again.subscribe("s", subType=KEY_SHARED, keySharedMeta=meta), "error")


def test_what_drains_is_told_as_by_pulsar() -> None:
    party = Party(Box())
    alpha = party.join("alpha")
    sent = party.publish(*keys(range(8)))
    assert party.got("alpha") == keys(range(8))
    beta = party.join("beta")
    party.publish(*keys(range(8)))
    stats = party.stats()
    ours, theirs = stats["consumers"]
    moved = [7357, 4514]
    draining = ours["drainingHashes"]
    assert [each["hash"] for each in draining] == sorted(each["hash"] for each in draining)
    assert {each["hash"] for each in draining} >= set(moved), "key1 and the first that Pulsar 4.2.4 names"
    assert [(each["unackMsgs"], each["blockedAttempts"] > 0) for each in draining] == [(1, True)] * 5
    assert (theirs["drainingHashesCount"], theirs["drainingHashes"]) == (0, [])
    names = ("drainingHashesCount", "drainingHashesClearedTotal", "drainingHashesUnackedMessages")
    for each in (ours, stats):
        assert [each[name] for name in names] == [5, 0, 5]
    for number in (0, 1, 2):  # alpha still owns key2
        alpha.ack(sent[number])
    stats = party.stats()
    assert [stats["consumers"][0][name] for name in names] == [3, 2, 3]
    assert party.got("beta") == keys((0, 1))
    beta.request("close_consumer", consumer_id=1)
    assert party.stats()["drainingHashesCount"] == 0, "alpha has its keys again"
    assert party.stats()["drainingHashesClearedTotal"] == 2


def test_nothing_drains_where_order_does_not_matter() -> None:
    party = Party(
        Box(), keySharedMeta=KeySharedMeta(keySharedMode=KeySharedMode.AUTO_SPLIT, allowOutOfOrderDelivery=True)
    )
    party.join("alpha")
    party.publish(*keys(range(8)))
    party.join("beta")
    assert party.stats()["drainingHashesCount"] == 0

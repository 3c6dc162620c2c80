"""Transactions: responses of the coordinator, visibility, and conflicting acknowledgements."""

import http.client
import json
import re
import urllib.parse
from collections.abc import Sequence
from typing import Any, Final

from pulsarbox.protocol import PulsarApi_pb2 as api
from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData
from tests.differences.broker import HTTP_SECONDS, Broker, path_of
from tests.differences.messages import Draft, at, batch, numbered
from tests.differences.scenario import Steps, scenario, slow_scenario
from tests.differences.telling import scrub
from tests.differences.wire import Wire

COORDINATOR: Final = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"
NEVER: Final[dict[str, Any]] = {"txnid_most_bits": 0, "txnid_least_bits": 1 << 40}
"""ID of a transaction that does not exist."""
MINUTES: Final = 600_000

Bits = dict[str, Any]


def coordinator(broker: Broker, label: str = "t") -> Wire:
    """Connect to the coordinator, as clients do."""
    made = broker.wire(label)
    made.look_up(COORDINATOR)
    connect(made)
    broker.until(lambda: _is_ready(made), 20)
    broker.forget()
    made.begun.clear()
    return made


def _is_ready(wire: Wire) -> bool:
    """Return whether the coordinator is ready: an unused coordinator of Pulsar needs a moment."""
    if not wire.begun:
        connect(wire)
        begin(wire)
    return bool(wire.begun)


def connect(wire: Wire, number: int = 0) -> None:
    part = api.CommandTcClientConnectRequest(request_id=0, tc_id=number)
    wire.ask("TC_CLIENT_CONNECT_REQUEST", part, str(number))


def begin(wire: Wire, milliseconds: int = MINUTES, number: int = 0) -> Bits:
    """Send NEW_TXN; return the fields that identify the transaction in other commands."""
    wire.ask("NEW_TXN", api.CommandNewTxn(request_id=0, txn_ttl_seconds=milliseconds, tc_id=number))
    if not wire.begun:
        return NEVER
    most, least = wire.begun[-1]
    return {"txnid_most_bits": most, "txnid_least_bits": least}


def publishes(wire: Wire, bits: Bits, *topics: str) -> None:
    part = api.CommandAddPartitionToTxn(request_id=0, partitions=topics, **bits)
    wire.ask("ADD_PARTITION_TO_TXN", part)


def acknowledges(wire: Wire, bits: Bits, topic: str, sub: str = "s") -> None:
    where = api.Subscription(topic=topic, subscription=sub)
    part = api.CommandAddSubscriptionToTxn(request_id=0, subscription=[where], **bits)
    wire.ask("ADD_SUBSCRIPTION_TO_TXN", part)


def end(wire: Wire, bits: Bits, *, commit: bool) -> None:
    action: Any = api.TxnAction.Value("COMMIT" if commit else "ABORT")
    label = "commit" if commit else "abort"
    wire.ask("END_TXN", api.CommandEndTxn(request_id=0, txn_action=action, **bits), label)


def inside(bits: Bits, texts: Sequence[str]) -> list[Draft]:
    """Publish messages in a transaction."""
    return [Draft(each, metadata=dict(bits)) for each in texts]


@scenario
def the_coordinator(broker: Broker) -> Steps:
    t = coordinator(broker)
    topic = broker.topic()
    connect(t, 7)
    yield "a coordinator that is not there", broker.frames()
    begin(t, number=99)
    yield "a transaction of another", broker.frames()
    bits = begin(t)
    yield "one of ours", broker.frames()
    publishes(t, bits, topic, topic)
    publishes(t, bits, topic)
    acknowledges(t, bits, topic)
    yield "a topic twice, a subscription that is not there", broker.frames()
    end(t, bits, commit=True)
    yield "committed", broker.frames()
    for name, add in (("publish", publishes), ("acknowledge", acknowledges)):
        add(t, bits, topic)
        yield f"{name} in one that has ended", broker.frames()
        add(t, NEVER, topic)
        yield f"{name} in one that was never begun", broker.frames()
    for commit in (True, False):
        end(t, bits, commit=commit)
        yield f"ended once more, {'commit' if commit else 'abort'}", broker.frames()
        end(t, NEVER, commit=commit)
        yield f"one that was never begun, {'commit' if commit else 'abort'}", broker.frames()
    bits = begin(t)
    end(t, bits, commit=False)
    yield "one without anything, aborted", broker.frames()


@scenario
def published(broker: Broker) -> Steps:
    """Messages in two topics: invisible before the commit and after an abort; later messages wait."""
    t = coordinator(broker)
    for commit in (True, False):
        word = "commit" if commit else "abort"
        one, two = broker.topic(f"{word}-1"), broker.topic(f"{word}-2")
        p, a = broker.wire(f"p-{word}"), broker.wire("a")
        for number, topic in enumerate((one, two), 1):
            p.producer(topic, number)
            a.subscribe(topic, number, "Exclusive")
            a.flow(100, number)
        broker.forget()
        bits = begin(t)
        publishes(t, bits, one, two)
        for number in (1, 2):
            p.publish(["before"], number)
            p.publish(inside(bits, numbered(2)), number)
            p.publish(["behind"], number)
        yield f"{word}: open", broker.shares(2)
        a.last_message_id()
        yield f"{word}: the last message, while it is open", broker.frames()
        end(t, bits, commit=commit)
        yield f"{word}: ended", broker.shares(8 if commit else 2)
        broker.settle()
        a.last_message_id()
        yield f"{word}: the last message", broker.frames()
        p.publish(["after"], 1)
        yield f"{word}: and goes on", broker.shares(1)
        a.close()


@scenario
def two_side_by_side(broker: Broker) -> Steps:
    t, topic = coordinator(broker), broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic)
    a.subscribe(topic)
    a.flow(100)
    first, second, third = begin(t), begin(t), begin(t)
    for bits in (first, second, third):
        publishes(t, bits, topic)
    for number, bits in enumerate((first, second, third, first)):
        p.publish(inside(bits, [f"m{number}"]))
    broker.forget()
    end(t, second, commit=True)
    yield "the second is committed", broker.shares()
    end(t, first, commit=False)
    yield "the first is aborted", broker.shares(1)
    end(t, third, commit=True)
    yield "the third is committed", broker.shares(1)


def filled(broker: Broker, kind: str, word: str = "t") -> tuple[str, Wire, Wire]:
    """Return a topic with m0 to m4 and a batch, all dispatched to a consumer; the coordinator; and the consumer."""
    t, topic = coordinator(broker, f"t-{word}"), broker.topic(word)
    p, a = broker.wire(f"p-{word}"), broker.wire("a")
    p.producer(topic)
    a.subscribe(topic, 1, kind)
    a.flow(100)
    p.publish([*numbered(5), batch("b0", "b1", "b2")])
    broker.shares(6)
    broker.forget()
    return topic, t, a


def opened(t: Wire, topic: str, count: int = 1) -> list[Bits]:
    """Open transactions that acknowledge on a topic's subscription."""
    found = [begin(t) for _ in range(count)]
    for bits in found:
        acknowledges(t, bits, topic)
    return found


@scenario
def acknowledged_one_by_one(broker: Broker) -> Steps:
    for kind in ("Shared", "Exclusive", "Key_Shared"):
        topic, t, a = filled(broker, kind, kind.lower())
        first, second = opened(t, topic, 2)
        broker.forget()
        a.ack([a.ids["m0"], a.ids["m2"]], receipt=True, **first)
        yield f"{kind}: two of them", broker.frames()
        a.ack([a.ids["m0"]], receipt=True, **second)
        yield f"{kind}: one of these by another", broker.frames()
        a.ack([a.ids["m1"], a.ids["m0"]], receipt=True, **second)
        yield f"{kind}: one that is free and one that is not", broker.frames()
        a.ack([a.ids["m1"]], receipt=True, **first)
        yield f"{kind}: the one that was free", broker.frames()
        a.redeliver()
        yield f"{kind}: redelivered meanwhile", broker.shares()
        end(t, first, commit=False)
        yield f"{kind}: the first is aborted", broker.shares()
        a.redeliver()
        yield f"{kind}: and all of it asked for again", broker.shares(6)
        broker.forget()
        (third,) = opened(t, topic)
        broker.forget()
        a.ack([a.ids["m0"], a.ids["m1"]], receipt=True, **third)
        end(t, third, commit=True)
        yield f"{kind}: a third is committed", broker.frames()
        (fourth,) = opened(t, topic)
        broker.forget()
        a.ack([a.ids["m0"]], receipt=True, **fourth)
        yield f"{kind}: what is acknowledged, once more", broker.frames()
        a.close()


@scenario
def acknowledged_up_to(broker: Broker) -> Steps:
    for kind in ("Exclusive", "Failover"):
        topic, t, a = filled(broker, kind, kind.lower())
        first, second, third = opened(t, topic, 3)
        broker.forget()
        a.ack([a.ids["m1"]], cumulative=True, receipt=True, **first)
        yield f"{kind}: up to m1", broker.frames()
        a.ack([a.ids["m2"]], cumulative=True, receipt=True, **second)
        yield f"{kind}: another up to m2", broker.frames()
        a.ack([a.ids["m0"]], receipt=True, **second)
        yield f"{kind}: another m0", broker.frames()
        a.ack([a.ids["m2"]], receipt=True, **second)
        yield f"{kind}: another m2", broker.frames()
        a.ack([a.ids["m3"]], cumulative=True, receipt=True, **first)
        yield f"{kind}: the same up to m3", broker.frames()
        end(t, first, commit=True)
        yield f"{kind}: committed", broker.frames()
        a.ack([a.ids["m4"]], cumulative=True, receipt=True, **third)
        yield f"{kind}: one more up to m4, beside one of m2", broker.frames()
        a.close()
    topic, t, a = filled(broker, "Shared", "shared")
    (first,) = opened(t, topic)
    broker.forget()
    a.ack([a.ids["m1"]], cumulative=True, receipt=True, **first)
    yield "Shared: up to m1", broker.frames()


@scenario
def parts_of_a_batch(broker: Broker) -> Steps:
    topic, t, a = filled(broker, "Shared")
    first, second = opened(t, topic, 2)
    broker.forget()
    whole = a.ids["[b0 b1 b2]"]
    without: dict[int, MessageIdData] = {
        each: at(whole, ack_set=[0b111 & ~(1 << each)], batch_size=3) for each in range(3)
    }
    a.ack([without[0]], receipt=True, **first)
    yield "b0 by the first", broker.frames()
    a.ack([without[0]], receipt=True, **second)
    yield "b0 by the second", broker.frames()
    a.ack([without[1]], receipt=True, **second)
    yield "b1 by the second", broker.frames()
    a.ack([whole], receipt=True, **second)
    yield "all of it by the second", broker.frames()
    end(t, first, commit=True)
    end(t, second, commit=False)
    broker.forget()
    a.redeliver()
    yield "one is committed, the other aborted, all comes again", broker.frames(1)


@scenario
def what_was_never_begun(broker: Broker) -> Steps:
    topic, _, a = filled(broker, "Shared")
    a.ack([a.ids["m0"]], receipt=True, **NEVER)
    yield "an acknowledgement", broker.frames()
    p = broker.wire("p")
    p.producer(topic)
    p.publish(inside(NEVER, ["x"]))
    yield "a message", broker.frames()
    p.publish(["y"])
    yield "and one outside of any", broker.frames()


@slow_scenario
def one_that_times_out(broker: Broker) -> Steps:
    t, topic = coordinator(broker), broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic)
    a.subscribe(topic)
    a.flow(100)
    bits = begin(t, 1000)
    publishes(t, bits, topic)
    p.publish([*inside(bits, ["m0"]), "m1"])
    broker.forget()
    a.until_messages(1)
    yield "what was behind it", broker.shares(1)
    publishes(t, bits, topic)
    yield "publishing in it", broker.frames()
    end(t, bits, commit=True)
    yield "committing it", broker.frames()
    end(t, bits, commit=False)
    yield "aborting it", broker.frames()


@scenario
def ended_on_topics(broker: Broker) -> Steps:
    """Transaction commands between brokers, sent by a client."""
    topic, t, a = filled(broker, "Shared")
    p = broker.wire("p")
    p.producer(topic)
    where = api.Subscription(topic=topic, subscription="s")
    for commit in (True, False):
        action: Any = api.TxnAction.Value("COMMIT" if commit else "ABORT")
        word = "commit" if commit else "abort"
        bits = begin(t)
        publishes(t, bits, topic)
        acknowledges(t, bits, topic)
        p.publish(inside(bits, [f"in-{word}"]))
        a.ack([a.ids[f"m{int(commit)}"]], receipt=True, **bits)
        broker.forget()
        partition = api.CommandEndTxnOnPartition(request_id=0, topic=topic, txn_action=action, **bits)
        p.ask("END_TXN_ON_PARTITION", partition)
        yield f"{word}: on the topic", broker.frames(1)
        subscription = api.CommandEndTxnOnSubscription(request_id=0, subscription=where, txn_action=action, **bits)
        a.ask("END_TXN_ON_SUBSCRIPTION", subscription)
        yield f"{word}: on the subscription", broker.frames(1)
        p.ask("END_TXN_ON_PARTITION", partition)
        a.ask("END_TXN_ON_SUBSCRIPTION", subscription)
        yield f"{word}: once more", broker.frames(1)
        end(t, bits, commit=commit)
        yield f"{word}: everywhere", broker.frames(1)
    never: dict[str, Any] = {"request_id": 0, "txn_action": api.TxnAction.COMMIT, **NEVER}
    p.ask("END_TXN_ON_PARTITION", api.CommandEndTxnOnPartition(topic=topic, **never))
    yield "one that was never begun, on a topic", broker.frames()
    p.ask("END_TXN_ON_SUBSCRIPTION", api.CommandEndTxnOnSubscription(subscription=where, **never))
    yield "one that was never begun, on a subscription", broker.frames()
    nowhere = topic + "-nowhere"
    p.ask("END_TXN_ON_PARTITION", api.CommandEndTxnOnPartition(topic=nowhere, **never))
    yield "a topic that is not there", broker.frames()
    where = api.Subscription(topic=nowhere, subscription="s")
    p.ask("END_TXN_ON_SUBSCRIPTION", api.CommandEndTxnOnSubscription(subscription=where, **never))
    yield "a subscription of a topic that is not there", broker.frames()
    where = api.Subscription(topic=topic, subscription="none")
    p.ask("END_TXN_ON_SUBSCRIPTION", api.CommandEndTxnOnSubscription(subscription=where, **never))
    yield "a subscription that is not there", broker.frames()


# Admin API ---------------------------------------------------------------------------------------------------------

_NUMBERS: Final = re.compile("(?i).*(timestamp|time|timeoutAt|leastSigBits|lowWaterMark|sigbits)")


def shown(broker: Broker, method: str, path: str) -> list[Any]:
    """Return the status and response of a request below /admin/v3/transactions, without values that differ between
    brokers.
    """
    where = urllib.parse.urlsplit(broker.web_url)
    link = http.client.HTTPConnection(where.netloc, timeout=HTTP_SECONDS)
    try:
        link.request(method, f"/admin/v3/transactions/{path}")
        answer = link.getresponse()
        text = answer.read().decode(errors="replace")
    finally:
        link.close()
    try:
        told = json.loads(text) if text else None
    except ValueError:
        told = scrub(text)
    if isinstance(told, dict) and set(told) == {"reason"}:
        told = "an unexpected error" if "An unexpected error" in told["reason"] else scrub(told["reason"])
    return [answer.status, _comparable(told, broker)]


def _comparable(value: Any, broker: Broker, name: str = "") -> Any:
    if isinstance(value, dict):
        return {_comparable(key, broker): _comparable(each, broker, key) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return [_comparable(each, broker, name) for each in value]
    if isinstance(value, str):
        place = re.fullmatch(r"(-?\d+):(-?\d+)", value)
        if place:
            return broker.ledgers.position(MessageIdData(ledgerId=int(place[1]) % 2**64, entryId=int(place[2]) % 2**64))
        return scrub(value)
    if isinstance(value, int) and not isinstance(value, bool) and _NUMBERS.match(name):
        return "number"
    return value


def id_of(bits: Bits) -> str:
    return f"{bits['txnid_most_bits']}/{bits['txnid_least_bits']}"


@scenario
def shown_while_open(broker: Broker) -> Steps:
    topic, t, a = filled(broker, "Exclusive")
    p = broker.wire("p")
    p.producer(topic)
    (bits,) = opened(t, topic)
    publishes(t, bits, topic)
    p.publish(inside(bits, ["x", "y"]))
    a.ack([a.ids["m0"]], receipt=True, **bits)
    broker.forget()
    yield from looked(broker, topic, bits, "open")
    end(t, bits, commit=False)
    broker.forget()
    yield from looked(broker, topic, bits, "aborted")
    (bits,) = opened(t, topic)
    a.ack([a.ids["m1"]], cumulative=True, receipt=True, **bits)
    yield from looked(broker, topic, bits, "up to m1")
    yield "abort it", shown(broker, "POST", f"abortTransaction/{id_of(bits)}")
    yield "abort it once more", shown(broker, "POST", f"abortTransaction/{id_of(bits)}")


def looked(broker: Broker, topic: str, bits: Bits, when: str) -> Steps:
    where, one = path_of(topic).partition("/")[2], id_of(bits)
    for path in (
        f"transactionMetadata/{one}",
        f"transactionInBufferStats/{where}/{one}",
        f"transactionInPendingAckStats/{where}/s/{one}",
        f"transactionBufferStats/{where}",
        f"transactionBufferStats/{where}?lowWaterMarks=true&segmentStats=true",
        f"pendingAckStats/{where}/s",
        f"pendingAckStats/{where}/s?lowWaterMarks=true",
    ):
        name = path.replace(one, "ID").replace(where, "TOPIC")
        yield f"{when}: {name}", shown(broker, "GET", path)
    stats = broker.stats(topic)
    names = ("ongoingTxnCount", "abortedTxnCount", "committedTxnCount", "msgInCounter")
    yield f"{when}: stats", {name: stats.get(name, "absent") for name in names}
    yield (
        f"{when}: subscription",
        broker.subscription(topic, "msgBacklog", "unackedMessages", "consumers.unackedMessages"),
    )


@scenario
def places_in_pending_acks(broker: Broker) -> Steps:
    topic, t, a = filled(broker, "Exclusive")
    where = path_of(topic).partition("/")[2]
    (bits,) = opened(t, topic)
    a.ack([a.ids["m0"]], receipt=True)
    a.ack([a.ids["m2"]], receipt=True, **bits)
    broker.forget()
    first = a.ids["m0"]
    for entry in (0, 1, 2, 5, 50):
        path = f"positionStatsInPendingAck/{where}/s/{first.ledgerId}/{entry}"
        yield f"entry {entry}", shown(broker, "GET", path)
    path = f"positionStatsInPendingAck/{where}/s/{first.ledgerId + 77777}/0"
    yield "a ledger that is not there", shown(broker, "GET", path)
    whole = a.ids["[b0 b1 b2]"]
    a.ack([at(whole, ack_set=[0b110], batch_size=3)], receipt=True, **bits)
    broker.forget()
    for index in range(2):
        path = f"positionStatsInPendingAck/{where}/s/{whole.ledgerId}/{whole.entryId}?batchIndex={index}"
        yield f"message {index} of the batch", shown(broker, "GET", path)


@scenario
def shown_of_what_is_not_there(broker: Broker) -> Steps:
    topic, t, _ = filled(broker, "Exclusive")
    where = path_of(topic).partition("/")[2]
    never = id_of(NEVER)
    for path in (
        f"transactionMetadata/{never}",
        "transactionMetadata/55/1",
        f"transactionInBufferStats/{where}/{never}",
        f"transactionInBufferStats/{where}-none/{never}",
        f"transactionInPendingAckStats/{where}/s/{never}",
        f"transactionInPendingAckStats/{where}/none/{never}",
        f"transactionBufferStats/{where}-none",
        f"pendingAckStats/{where}/none",
        f"pendingAckStats/{where}-none/s",
        "coordinatorStats?coordinatorId=55",
        "slowTransactions/100000000",
        "slowTransactions/100000000?coordinatorId=55",
    ):
        name = path.replace(where, "TOPIC").replace(never, "NEVER")
        yield name, shown(broker, "GET", path)
    yield "abort NEVER", shown(broker, "POST", f"abortTransaction/{never}")
    yield "abort one of no coordinator", shown(broker, "POST", "abortTransaction/55/1")
    status, found = shown(broker, "GET", "coordinatorStats?coordinatorId=0")
    yield "coordinatorStats", [status, sorted(found) if isinstance(found, dict) else found]
    status, found = shown(broker, "GET", "coordinatorStats")
    yield "of all", [status, sorted(found) if isinstance(found, dict) else found]
    bits = begin(t)
    status, found = shown(broker, "GET", "slowTransactions/0?coordinatorId=0")
    yield "slow ones", [status, sorted(found)[:1] if isinstance(found, dict) else found]
    end(t, bits, commit=True)

"""Histories of retention: policies change while clients publish, consume and disconnect, and the power fails.

A history has one topic and one seed. Time is virtual; commits, reads and chores complete at random times. The box may
acknowledge, trim and suspend by itself. Client observations and the policy history determine what is permitted,
independently of the code under test.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import COMMANDS, parse_command
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, CommandSubscribe, MessageIdData
from tests.simulation.model.history import Violation
from tests.unit.broker.playbook import TOPIC, Box, Client

NAME = parse_topic(TOPIC)
SUBSCRIPTIONS = ("one", "two")
SLACK_MS = 2500
"""Maximum delay after a deadline, in ms: expirations are batched for a second, and reads are queued."""
FOLLOWS = ("producer_request_hold", "producer_exception", "consumer_backlog_eviction")
METADATA = 20
"""Minimum size of an entry without its body, in bytes."""
Place = tuple[int, int]


class Sent(NamedTuple):
    """A message with a receipt."""

    place: Place
    size: int
    at: int
    """Publish time (ms)."""
    seen: int
    """Time of the receipt (ms); the message may not be durable before."""


class Rule(NamedTuple):
    """The policies in effect from a point in time."""

    since: int
    ttl: int
    size: int
    size_follows: str
    age: int
    age_follows: str


class KeptRun:
    """The retention history of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.settings: dict[str, Any] = {
            "managedLedgerMaxEntriesPerLedger": random.choice((1, 5, 30)),
            "managedLedgerMinLedgerRolloverTimeMinutes": random.choice((0, 1)),
            "brokerUnloadIdleTopicsAfterSeconds": random.choice((0, 2)),
            "keepAliveIntervalSeconds": 1_000_000,
        }
        self.box = Box(auto=False, **self.settings)
        self.producer: Client | None = None
        self.open = self.asking = False
        self.consumers: dict[str, Client] = {}
        self.received: dict[str, list[Place]] = {name: [] for name in SUBSCRIPTIONS}
        self.unsettled: list[tuple[int, int, int]] = []
        """Messages without a receipt: sequence ID, body size, time of the first send."""
        self.sequence = self.epoch = 0
        self.log: list[Sent] = []
        self.stored: dict[int, Place] = {}
        self.acked: dict[str, set[Place]] = {name: set() for name in SUBSCRIPTIONS}
        self.gone: dict[str, set[Place]] = {name: set() for name in SUBSCRIPTIONS}
        """Messages known to be acknowledged by the box itself."""
        self.levels: dict[str, dict[str, Any]] = {"namespace": {}, "topic": {}}
        self.rules: list[Rule] = []
        self.done = dict.fromkeys(("expired", "evicted", "held", "went on", "refused", "trimmed", "crash", "unload"), 0)
        self.hurried = False
        """Whether time has advanced without processing of due work."""
        self.read_at = self.box.wall
        """Time up to which clients have processed their inbound commands (ms)."""
        self._rule()
        client = self.box.client()
        for number, name in enumerate(SUBSCRIPTIONS):
            self._ask(client, "subscribe", topic=TOPIC, subscription=name, consumer_id=number,
                      subType=CommandSubscribe.Shared, initialPosition=CommandSubscribe.Earliest)  # fmt: skip
        self.settle()
        client.cnx.closed(self.box.now)

    # Steps

    def run(self, steps: int) -> None:
        """Run ``steps`` random steps, then settle and check. Raises Violation."""
        moves = (
            (self._publish, 30), (self._consume, 12), (self._come_and_go, 8), (self._pass_time, 20), (self._set, 8),
            (self._crash, 1), (self.settle, 15),
        )  # fmt: skip
        for _ in range(steps):
            (move,) = self.random.choices([move for move, _ in moves], [weight for _, weight in moves])
            move()
            self._work(self.random.randrange(3))
            self._read_producer()
            for name, client in list(self.consumers.items()):
                self._read_consumer(name, client)
            self.read_at = self.box.wall
        self._finish()

    def _work(self, count: int) -> None:
        """Complete up to ``count`` commits, reads and chores at random."""
        for _ in range(count):
            self.box.flush()
            self.random.choice((self.box.commit, self.box.read, self.box.chore))()

    def settle(self) -> None:
        """Complete all due work, and check the state against the policies."""
        box = self.box
        while True:
            box.flush()
            busy = box.commit() or box.read() or box.chore()
            monotonic, wall = box.broker.next_timer()
            if (monotonic is not None and monotonic <= box.time) or (wall is not None and wall <= box.now.wall):
                box.broker.on_timer(box.now)
                busy = True
            if not busy and not self._read_producer():
                break
        self.hurried = False
        self._judge()

    def _ask(self, client: Client, field: str, **fields: Any) -> None:
        client._request_id += 1
        client.ask(field, request_id=client._request_id, **fields)

    def _publish(self) -> None:
        if self.producer is None or self.producer.closed:
            self.producer, self.open, self.asking = self.box.client(), False, False
            self._read_producer()
        if not self.open:
            if not self.asking:
                self.asking, self.epoch = True, self.epoch + 1
                self._ask(self.producer, "producer", topic=TOPIC, producer_id=1, producer_name="p", epoch=self.epoch)
            return
        for _ in range(self.random.choice((1, 1, 3, 8))):
            self.unsettled.append((self.sequence, self.random.choice((10, 100, 400)), self.box.wall))
            self.sequence += 1
            self._send(self.unsettled[-1])

    def _send(self, message: tuple[int, int, int]) -> None:
        assert self.producer is not None
        topic, rule = self.topic, self.rules[-1]
        before = topic.ledger.total_bytes if topic is not None else 0
        full = topic is not None and rule.size >= 0 and self._used(topic) >= rule.size
        self.producer.send(message[0], b"x" * message[1], publish_time=message[2])
        if topic is not None and full and rule.size_follows != FOLLOWS[2]:
            self._check("full", topic.ledger.total_bytes == before, "taken beyond the quota:", message, rule)

    def _read_producer(self) -> bool:
        """Process the producer's inbound commands; return whether there were any."""
        self.box.flush()
        if self.producer is None:
            return False
        frames, self.producer.inbox = self.producer.inbox, []
        for data, _ in frames:
            command = parse_command(data)
            name = COMMANDS[command.type].field
            body = getattr(command, name)
            if name == "send_receipt":
                self._receipt(body.sequence_id, (body.message_id.ledgerId, body.message_id.entryId))
            elif name == "close_producer":
                self.open = False
            elif name == "error" and self.asking:
                self.asking = False
                self.done["refused"] += body.error in (7, 8)
            elif name == "producer_success" and not body.producer_ready:
                self.done["held"] += 1
            elif name == "producer_success":
                self.done["went on"] += self.asking
                self.open, self.asking = True, False
                for message in self.unsettled:
                    self._send(message)
        return bool(frames)

    def _receipt(self, sequence_id: int, place: Place) -> None:
        self._check("once", sequence_id not in self.stored, "a message is stored twice:", sequence_id, place)
        first = self.unsettled.pop(0)
        self._check("once", first[0] == sequence_id, "a receipt out of order:", sequence_id, first)
        self.stored[sequence_id] = place
        self.log.append(Sent(place, first[1] + METADATA, first[2], self.box.wall))

    def _consume(self) -> None:
        name = self.random.choice(SUBSCRIPTIONS)
        client = self.consumers.get(name)
        if client is None or client.closed:
            client = self.consumers[name] = self.box.client()
            self._ask(client, "subscribe", topic=TOPIC, subscription=name, consumer_id=1,
                      subType=CommandSubscribe.Shared)  # fmt: skip
            return
        client.flow(self.random.choice((1, 5, 50)))
        self._read_consumer(name, client)
        held = self.received[name]
        count = self.random.randrange(len(held) + 1)
        if count:
            named, self.received[name] = held[:count], held[count:]
            self.acked[name].update(named)
            ids = [MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in named]
            self._ask(client, "ack", consumer_id=1, ack_type=CommandAck.Individual, message_id=ids)

    def _read_consumer(self, name: str, client: Client) -> None:
        self.box.flush()
        frames, client.inbox = client.inbox, []
        for data, _ in frames:
            command = parse_command(data)
            if COMMANDS[command.type].field == "message":
                at = command.message.message_id
                self._delivered(name, (at.ledgerId, at.entryId))
            elif COMMANDS[command.type].field == "close_consumer":
                self.consumers.pop(name, None)

    def _come_and_go(self) -> None:
        who = self.random.choice(("producer", *SUBSCRIPTIONS))
        if who == "producer" and self.producer is not None:
            self._read_producer()
            self._lost(self.producer)
            self.producer = None
        elif who in self.consumers:
            client = self.consumers.pop(who)
            self._read_consumer(who, client)
            self._lost(client)
            self.received[who].clear()

    def _lost(self, client: Client) -> None:
        """Close a connection. Messages without a receipt may be resent: only responses are certain."""
        self.settle()
        client.cnx.closed(self.box.now)
        client.closed = True

    def _pass_time(self) -> None:
        seconds = self.random.choice((0.01, 0.5, 5, 20, 100, 1000))
        box = self.box
        if self.random.random() < 0.7:
            box.auto = True
            box.advance(seconds)
            box.auto = False
            self.done["unload"] += box.broker.topics.loaded(NAME) is None
        else:  # deadlines pass unprocessed
            box.time += seconds
            box.wall += round(seconds * 1000)
            self.hurried = True
            box.broker.on_timer(box.now)

    def _crash(self) -> None:
        self.settle()
        disk, wall = self.box.disk, self.box.wall
        self.box = Box(disk, auto=False, wall=wall, **self.settings)
        self.producer, self.open, self.asking = None, False, False
        self.consumers.clear()
        for held in self.received.values():
            held.clear()
        self.done["crash"] += 1

    # Policies

    def _set(self) -> None:
        level = self.random.choice(tuple(self.levels))
        keys = {
            "namespace": ("retention_policies", "message_ttl_in_seconds", "backlog_quota_map"),
            "topic": ("retentionPolicies", "messageTTLInSeconds", "backLogQuotaMap"),
        }[level]
        kind = self.random.randrange(3)
        value = self.random.choice((None, (self._retention, self._ttl, self._quotas)[kind]()))
        self.levels[level][str(kind)] = value
        if level == "namespace":
            self.box.broker.tenants.set_policy("public/default", keys[kind], value, self.box.now)
        else:
            self.box.broker.policies.set_topic(NAME, keys[kind], value, self.box.now)
        self._rule()

    def _retention(self) -> dict[str, int]:
        minutes, megabytes = self.random.choice(((0, 0), (1, -1), (30, 1), (-1, -1)))
        return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}

    def _ttl(self) -> int:
        return self.random.choice((0, 10, 60, 600))

    def _quotas(self) -> dict[str, Any]:
        quotas = {
            "destination_storage": {
                "limitSize": self.random.choice((500, 2000, 10_000)),
                "limitTime": -1,
                "policy": self.random.choice(FOLLOWS),
            },
            "message_age": {
                "limitSize": -1,
                "limitTime": self.random.choice((30, 300)),
                "policy": self.random.choice(FOLLOWS),
            },
        }
        return {kind: quotas[kind] for kind in self.random.choice((list(quotas), ["destination_storage"]))}

    def _rule(self) -> None:
        namespace, topic = self.levels["namespace"], self.levels["topic"]
        ttl = next((each["1"] for each in (topic, namespace) if each.get("1") is not None), 0)
        found: dict[str, tuple[int, str]] = {}
        for kind, limit in (("destination_storage", "limitSize"), ("message_age", "limitTime")):
            quotas = [(each.get("2") or {}).get(kind) for each in (topic, namespace)]
            quota = next((each for each in quotas if each is not None), None)
            found[kind] = (quota[limit], quota["policy"]) if quota is not None else (-1, "")
        (size, size_follows), (age, age_follows) = found.values()
        ms = age * 1000 if age > 0 else -1
        self.rules.append(Rule(self.box.wall, ttl * 1000, size, size_follows, ms, age_follows))

    # Checks

    def _check(self, rule: str, holds: bool, *what: object) -> None:
        if not holds:
            raise Violation(rule, " ".join(map(str, what)))

    @property
    def topic(self) -> PersistentTopic | None:
        """The topic if it is loaded."""
        found = self.box.broker.topics.loaded(NAME)
        return found if isinstance(found, PersistentTopic) else None

    def _judge(self) -> None:
        """Check the state after all due work is complete."""
        store = self.box.broker.store
        stored = store.topic(str(NAME))
        assert stored is not None
        now, rule = self.box.wall, self.rules[-1]
        steady = now - rule.since > SLACK_MS
        ledgers = set(stored.ledger.ledgers)
        for cursor in stored.cursors.values():
            for sent in self.log:
                if cursor.is_acked(*sent.place):
                    self._gone(cursor.name, sent, now)
                    continue
                late = rule.ttl and steady and now > max(sent.at + rule.ttl, sent.seen) + SLACK_MS
                self._check("expired", not late, "still there", now - sent.at, "ms after", sent, rule)
        self.done["trimmed"] += self.log[0].place[0] not in ledgers if self.log else 0
        topic = self.topic
        if topic is None:
            if not stored.in_use:
                self.box.broker.commits.unload(stored)
            return
        used = self._used(topic)
        full = rule.size >= 0 and used >= rule.size
        old = rule.age > 0 and any(now - sent.at >= rule.age for sent in self._backlog(topic))
        if self.asking and self.producer is not None and topic.backlog.waiting:
            held = (full and rule.size_follows == FOLLOWS[0]) or (old and rule.age_follows == FOLLOWS[0])
            self._check("held", held, "a producer waits for nothing:", used, rule)
        if full and rule.size_follows == FOLLOWS[2]:
            self._check("quota", False, "nothing was evicted:", used, rule)
        if steady and old and rule.age_follows == FOLLOWS[2]:
            behind = [each for each in self._backlog(topic) if now > max(each.at + rule.age, each.seen) + SLACK_MS]
            self._check("quota", not behind, "too old, and not evicted:", behind[:3], rule)

    def _slowest(self, topic: PersistentTopic) -> int:
        return min(cursor.mark_bytes for cursor in topic.stored.cursors.values())

    def _used(self, topic: PersistentTopic) -> int:
        return topic.ledger.bytes_behind(self._slowest(topic))

    def _backlog(self, topic: PersistentTopic) -> list[Sent]:
        cursors = topic.stored.cursors.values()
        return [sent for sent in self.log if not all(cursor.is_acked(*sent.place) for cursor in cursors)]

    def _gone(self, name: str, sent: Sent, now: int) -> None:
        """Check that an acknowledgement has a cause: a consumer, expiry or eviction."""
        if sent.place in self.acked[name] or sent.place in self.gone[name]:
            return
        self.gone[name].add(sent.place)
        spans = zip(self.rules, [*(rule.since for rule in self.rules[1:]), now + 1], strict=True)
        behind = sum(each.size for each in self.log if each.place > sent.place)
        for rule, end in spans:
            if rule.ttl and sent.at + rule.ttl < end:
                self.done["expired"] += 1
                return
            if rule.age > 0 and rule.age_follows == FOLLOWS[2] and sent.at + rule.age * 9 // 10 < end:
                self.done["evicted"] += 1
                return
            if rule.size >= 0 and rule.size_follows == FOLLOWS[2] and end >= sent.at:
                # Younger messages must have filled nine tenths of the limit, but for one entry; sizes are approximate.
                if behind >= rule.size * 9 // 10 - 600 - 100 * len(self.log) // 10:
                    self.done["evicted"] += 1
                    return
        raise Violation("reason", f"{name}: acknowledged by nobody, for no reason: {sent} at {now}, {self.rules[-1]}")

    def _delivered(self, name: str, place: Place) -> None:
        self.received[name].append(place)
        sent = next((each for each in self.log if each.place == place), None)
        rule = self.rules[-1]
        if sent is not None and rule.ttl and not self.hurried:
            due = max(sent.at + rule.ttl, sent.seen, rule.since)
            self._check("expired", self.read_at <= due + SLACK_MS, "delivered after it has expired:", sent, rule)

    def _finish(self) -> None:
        """Check that producers resume without quotas, and that acknowledged messages are trimmed with time."""
        for key in ("backlog_quota_map", "message_ttl_in_seconds"):
            self.box.broker.tenants.set_policy("public/default", key, None, self.box.now)
        self.box.broker.policies.put_topic(NAME, None, self.box.now)
        self.levels = {"namespace": {"0": self.levels["namespace"].get("0")}, "topic": {}}
        self._rule()
        self.settle()
        for _ in range(5):
            self._publish()
            self.settle()
        self._check("held", self.open, "the producer cannot go on")
        self._check("once", not self.unsettled, "messages without a receipt:", self.unsettled[:3])
        for client in self.consumers.values():
            self._lost(client)
        self.consumers.clear()
        for name in SUBSCRIPTIONS:
            self._read_to_end(name)
        self.box.broker.tenants.set_policy("public/default", "retention_policies", None, self.box.now)
        if self.producer is not None:
            self._lost(self.producer)
        self.box.auto = True
        self.box.advance(3600)
        self.box.auto = False
        self.settle()
        stored = self.box.broker.store.topic(str(NAME))
        assert stored is not None
        self._check("disk", stored.ledger.size == 0, "nobody needs it, it stays:", stored.ledger.size)

    def _read_to_end(self, name: str) -> None:
        """Check that a subscription receives exactly the messages not acknowledged, expired or evicted."""
        self.received[name].clear()
        left = {sent.place for sent in self.log} - self.acked[name] - self.gone[name]
        client = self.consumers[name] = self.box.client()
        self._ask(client, "subscribe", topic=TOPIC, subscription=name, consumer_id=1, subType=CommandSubscribe.Shared)
        self.settle()
        client.flow(1_000_000)
        self.settle()
        self._read_consumer(name, client)
        found = set(self.received[name])
        self._check("kept", found == left, name, "has", sorted(found ^ left)[:3], "too many or too few")
        ids = [MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in sorted(found)]
        self.acked[name].update(found)
        self._ask(client, "ack", consumer_id=1, ack_type=CommandAck.Individual, message_id=ids)
        self.settle()
        self._lost(client)

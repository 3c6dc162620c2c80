"""The model's knowledge of transactions, from the frames in both directions and the data written to disk.

A pledge is an acknowledgement within a transaction. It takes effect with the commit, and never after an abort.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.protocol.ack_sets import bits_of
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, TxnAction
from pulsarbox.storage.ledger import NO_LIMIT
from pulsarbox.storage.record import Meta, Position
from pulsarbox.storage.transactions import TxnId
from tests.simulation.model.views import ConnView, EntryView, Request, SubView, TopicView, position_of

if TYPE_CHECKING:
    from pulsarbox.storage.transaction_acks import TransactionAcks
    from tests.simulation.model.model import Model

OPEN: Final = "OPEN"
COMMITTED: Final = "COMMITTED"
ABORTED: Final = "ABORTED"


@dataclass(eq=False)
class Pledge:
    """The acknowledgements of one ACK."""

    sub: SubView
    acks: list[tuple[Position, int]]
    """Entries, each with a bit per acknowledged message."""
    cumulative: bool
    answered: bool = False
    """Whether the client has received a successful response."""


@dataclass(eq=False)
class TxnView:
    """A transaction."""

    id: TxnId
    state: str = OPEN
    """The durable state in its row."""
    ends_at: int = 0
    """Its timeout: an open transaction is aborted then (ms since 1970)."""
    entries: list[tuple[TopicView, Position]] = field(default_factory=list)
    pledges: list[Pledge] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    """The outcomes that clients have requested."""


def claimed_bits(sub: SubView, position: Position) -> int:
    """Return the messages of an entry acknowledged in open transactions according to the core, a bit per message."""
    claims: TransactionAcks | None = sub.cursor.claims
    if claims is None:
        return 0
    entry, claim = sub.topic.entries[position], claims.entries.get(position)
    if claims.through is not None and position <= claims.through[1]:
        return entry.all_bits
    return claim.bits if claim is not None else 0


def is_claimed(sub: SubView, position: Position) -> bool:
    """Return whether open transactions have acknowledged everything that remains of an entry."""
    left = sub.left.get(position, 0)
    return bool(left) and not left & ~claimed_bits(sub, position)


class Pledges:
    """All transactions of a run."""

    def __init__(self, model: Model) -> None:
        self._model = model
        model.tables.hidden = self.hides
        self.txns: dict[TxnId, TxnView] = {}
        self.rows: dict[str, Any] = {}
        """The rows of epochs."""
        self.changed_at: dict[str, float] = {}
        """Time of the last transaction on each topic (monotonic)."""
        self.counts = {"txn": 0, "txn committed": 0, "txn aborted": 0, "txn timed out": 0, "txn answer lost": 0,
                       "acks committed": 0, "acks aborted": 0, "epoch": 0, "epoch again": 0}  # fmt: skip

    def of(self, txn_id: TxnId) -> TxnView:
        """Return a transaction; create it on first use."""
        return self.txns.setdefault(txn_id, TxnView(txn_id))

    def state(self, entry: EntryView) -> str:
        """Return the state of an entry's transaction; committed for an entry without one."""
        return COMMITTED if entry.txn is None else self.of(entry.txn).state

    def is_aborted(self, topic: TopicView, position: Position) -> bool:
        """Return whether an entry was aborted."""
        return bool(self.txns) and self.state(topic.entries[position]) == ABORTED

    def hides(self, topic: str, position: Position) -> bool:
        """Return whether an entry is invisible because its transaction is open or aborted."""
        return bool(self.txns) and self.state(self._model.topic(topic).entries[position]) != COMMITTED

    @property
    def open(self) -> list[TxnView]:
        """Return the open transactions."""
        return [txn for txn in self.txns.values() if txn.state == OPEN]

    def limit(self, topic: TopicView) -> tuple[int, int]:
        """Return the first durable entry of an open transaction, which bounds all reads."""
        found = [at for txn in self.open for where, at in txn.entries if where is topic]
        return min(found, default=NO_LIMIT)

    @property
    def unsettled(self) -> bool:
        """Whether the end of a transaction is applied in the core but not yet durable."""
        if not self.txns or not self._model.box.running:
            return False
        return any(txn.settled for txn in self._model.box.broker.transactions)

    def ending(self, sub: SubView) -> set[Position]:
        """Return the positions settled for a subscription by transaction ends that are not yet durable."""
        found: set[Position] = set()
        for each in self._model.box.broker.transactions if self.unsettled else ():
            txn = self.of(each.id)
            if each.settled and each.ending == ABORTED:
                found.update(at for topic, at in txn.entries if topic is sub.topic)
            elif each.settled:
                found.update(at for pledge in txn.pledges if pledge.sub is sub for at in self._named(pledge))
        return found

    def is_steady(self, topic: TopicView, since: float) -> bool:
        """Return whether no transaction has touched a topic since a time (monotonic)."""
        return self.changed_at.get(topic.name, -1e9) < since and self.limit(topic) == NO_LIMIT

    # The disk

    def came(self, topic: TopicView, entry: EntryView) -> None:
        """Add a durable entry to its transaction."""
        if entry.txn is not None:
            self.of(entry.txn).entries.append((topic, entry.position))
            self.changed_at[topic.name] = self._model.world.monotonic

    def written(self, row: Meta) -> None:
        """Apply a durable row."""
        key = row.key.decode()
        if key.startswith("epoch/"):
            self.rows[key] = None if row.value is None else json.loads(row.value)
        if not key.startswith("txn/") or row.value is None:
            return
        _, most, least = key.split("/")
        value, txn = json.loads(row.value), self.of(TxnId(int(most, 16), int(least, 16)))
        txn.ends_at = value["opened"] + value["timeout"]
        if value["state"] != txn.state:
            self._ended(txn, value["state"])

    def _ended(self, txn: TxnView, state: str) -> None:
        txn.state = state
        self.counts["txn committed" if state == COMMITTED else "txn aborted"] += 1
        self.counts["txn timed out"] += not txn.asked
        for topic, position in txn.entries:
            self.changed_at[topic.name] = self._model.world.monotonic
            for sub in topic.subs.values() if state == ABORTED else ():
                sub.set(topic.entries[position], 0)
                sub.acked(position)
        for pledge in txn.pledges:
            sub = pledge.sub
            if sub.topic.subs.get(sub.name) is not sub:
                continue
            self.changed_at[sub.topic.name] = self._model.world.monotonic
            if state == ABORTED:
                self._released(txn, pledge)
            elif pledge.answered:
                self._holds(pledge)
            else:
                sub.unsure.update(self._named(pledge))
        txn.pledges = [pledge for pledge in txn.pledges if not pledge.answered]

    def _named(self, pledge: Pledge) -> list[Position]:
        named = [position for position, _ in pledge.acks]
        if pledge.cumulative:
            named += [each for each in pledge.sub.left if each < max(named)]
        return named

    def _holds(self, pledge: Pledge) -> None:
        """Apply a committed pledge."""
        sub = pledge.sub
        self.counts["acks committed"] += 1
        for position in self._named(pledge):
            entry = sub.topic.entries[position]
            bits = dict(pledge.acks).get(position, entry.all_bits)
            sub.set(entry, sub.left.get(position, 0) & ~bits)
            if not sub.left.get(position):
                sub.acked(position)
            if not sub.seeks:  # a seek in progress may reset it
                sub.sure[position] = sub.sure.get(position, 0) | bits

    def _released(self, txn: TxnView, pledge: Pledge) -> None:
        """Return an aborted pledge's messages for redelivery."""
        sub = pledge.sub
        self.counts["acks aborted"] += 1
        sub.exact_counts = False
        for position in self._named(pledge):
            sub.count_again(position)
            sub.reborn.add(position)
            claim = sub.cursor.claims.entries.get(position) if sub.cursor.claims is not None else None
            if claim is not None and txn.id in claim.by:  # otherwise the claim was never applied
                sub.owner.pop(position, None)
        for conn in self._model.conns.values():
            for consumer in conn.consumers.values():
                consumer.may_go_back |= consumer.sub is sub

    # Frames

    def acknowledged(self, sub: SubView, body: CommandAck, request: Request) -> None:
        """Record an ACK in a transaction before the core processes it."""
        known = sub.topic.entries
        if body.ack_type == CommandAck.Cumulative and sub.side_by_side:
            return  # ignored by the broker
        named = [(position_of(each), bits_of(each.ack_set)) for each in body.message_id]
        acks = [(at, known[at].all_bits & ~left) for at, left in named if at in known]
        txn = self.of(TxnId(body.txnid_most_bits, body.txnid_least_bits))
        if acks and len(acks) == len(named):
            request.pledge = Pledge(sub, acks, body.ack_type == CommandAck.Cumulative)
            txn.pledges.append(request.pledge)
            request.txn = txn

    def ack_answered(self, request: Request, *, ok: bool) -> None:
        """Record the response to an ACK in a transaction."""
        pledge, txn = request.pledge, request.txn
        assert pledge is not None and txn is not None
        pledge.answered = True
        if not ok:
            txn.pledges.remove(pledge)
        elif txn.state != OPEN:
            txn.pledges.remove(pledge)  # the transaction ended with the same batch, or during the lookup
            if txn.state == COMMITTED and pledge.sub.topic.subs.get(pledge.sub.name) is pledge.sub:
                pledge.sub.unsure.update(self._named(pledge))

    def let_go_of_claimed(self) -> None:
        """Remove the owners of entries that transactions have acknowledged."""
        for sub in self._model.subs() if self.txns else ():
            if sub.cursor.claims is not None:
                for position in [each for each in sub.owner if is_claimed(sub, each)]:
                    del sub.owner[position]


def asked(model: Model, conn: ConnView, body: Any, payload: bytes) -> None:
    """Record an END_TXN before the core processes it."""
    txn, request = model.pledges.of(TxnId(body.txnid_most_bits, body.txnid_least_bits)), conn.requests[body.request_id]
    request.txn, request.outcome = txn, COMMITTED if body.txn_action == TxnAction.COMMIT else ABORTED
    request.asked_at = txn.state
    txn.asked.add(request.outcome)


def begun(model: Model, conn: ConnView, body: Any) -> None:
    """Record a NEW_TXN_RESPONSE."""
    if not body.HasField("error"):
        txn = model.pledges.of(TxnId(body.txnid_most_bits, body.txnid_least_bits))
        model.pledges.counts["txn"] += 1
        for checker in model.checkers:
            checker.begun(txn)


def ended(model: Model, conn: ConnView, body: Any) -> None:
    """Check an END_TXN_RESPONSE."""
    request = conn.requests.get(body.request_id)
    if request is not None and request.txn is not None:
        for checker in model.checkers:
            checker.ended_txn(conn, request, body.error if body.HasField("error") else None)


def ack_answered(model: Model, conn: ConnView, body: Any) -> None:
    """Apply an ACK_RESPONSE."""
    request = conn.requests.get(body.request_id)
    if request is not None and request.pledge is not None:
        model.pledges.ack_answered(request, ok=not body.HasField("error"))

"""The event history of a run: a digest of all events, and the latest events as text."""

from collections import deque
from hashlib import blake2b
from typing import Any


class Violation(AssertionError):
    """Raised when a checker's rule is violated."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule


class History:
    """The event history of one run."""

    def __init__(self, keep: int = 300) -> None:
        self.recent: deque[str] = deque(maxlen=keep)
        self.count = 0
        self._hash = blake2b(digest_size=16)

    def note(self, when: float, *what: object) -> None:
        """Record an event at a virtual time."""
        line = f"{when:10.4f} " + " ".join(map(str, what))
        self._hash.update(line.encode())
        self.recent.append(line)
        self.count += 1

    def digest(self) -> str:
        """Return a digest of all events so far; two identical runs have equal digests."""
        return self._hash.hexdigest()


def brief(name: str, body: Any) -> tuple[object, ...]:
    """Return the fields of a command that help to diagnose a failure."""
    if name == "MESSAGE":
        message_id = body.message_id
        return body.consumer_id, f"{message_id.ledgerId}:{message_id.entryId}", body.redelivery_count
    if name == "ACK":
        ids = [f"{each.ledgerId}:{each.entryId}{list(each.ack_set) or ''}" for each in body.message_id]
        in_txn = (f"in {body.txnid_least_bits}",) if body.HasField("txnid_least_bits") else ()
        return body.consumer_id, body.ack_type, *ids, *in_txn
    if name == "SUBSCRIBE":
        return body.subscription, body.subType
    if name == "END_TXN":
        return body.txn_action, body.txnid_least_bits
    if name in ("SEND_RECEIPT", "SEND_ERROR"):
        return body.producer_id, body.sequence_id
    return ()

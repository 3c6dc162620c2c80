"""One transaction, as its row has it, and what waits for its end."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.broker.timers import Timer
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import Row
from pulsarbox.storage.transactions import TxnId

if TYPE_CHECKING:
    from pulsarbox.broker.topic.producer import Producer
    from pulsarbox.broker.transactions.coordinator import Who

OPEN: Final = "OPEN"
COMMITTED: Final = "COMMITTED"
ABORTED: Final = "ABORTED"

Answer = Callable[[PulsarBoxError | None, Now], None]
"""Is told that it is done, or why it is not."""


class Stage(NamedTuple):
    """What a transaction is a part of: an epoch of a sink."""

    sink: str
    """``tenant/namespace/sink``."""
    epoch: int
    run: str
    """Which start of its writer has begun it; empty where that was not said."""


class Transaction:
    """An open transaction.

    Its row: ``state``, ``opened`` and (once it has ended) ``ended`` in milliseconds since 1970, ``timeout`` in
    milliseconds, ``owner`` (a role, null where authentication is off), ``topics`` that it publishes to, and
    ``subscriptions`` ([topic, name]) on which it acknowledges; of a part of an epoch ``stage`` ([sink, epoch, run]).
    """

    __slots__ = (
        "acks", "ended", "ending", "id", "opened", "owner", "producers", "settled", "stage", "subscriptions",
        "timed_out", "timeout", "timer", "topics", "waiting",
    )  # fmt: skip

    def __init__(self, txn_id: TxnId, opened: int, timeout: int, owner: str | None) -> None:
        self.id = txn_id
        self.opened = opened
        self.timeout = timeout
        self.owner = owner
        self.stage: Stage | None = None
        """Which epoch it is a part of; None of one that is none."""
        self.topics: dict[str, str] = {}
        """As they are called, and as the client has called them: that is shown."""
        self.producers: set[Producer] = set()
        """Those that have sent in it: their topics are known."""
        self.subscriptions: dict[tuple[str, str], str] = {}
        """Topic and name, and what the client has called the topic."""
        self.acks: dict[tuple[int, int], list[Row]] = {}
        """Rows of what it has acknowledged, by topic id and cursor id."""
        self.ending: str | None = None
        """How it ends, once that is asked for: nothing more is taken in."""
        self.ended = ""
        """How it has ended, of one that is only looked at."""
        self.settled = False
        """Its end is on the way to the disk."""
        self.timed_out = False
        self.waiting: list[tuple[Who, Answer]] = []
        """Who is to hear that it has ended, once for each time that they asked."""
        self.timer: Timer | None = None

    @property
    def ends_at(self) -> int:
        """When it is aborted if nobody ends it before (ms since 1970)."""
        return self.opened + self.timeout

    @property
    def state(self) -> str:
        """As Pulsar names it."""
        if self.ended:
            return self.ended
        return {None: OPEN, COMMITTED: "COMMITTING", ABORTED: "ABORTING"}[self.ending]

    def row(self, state: str = OPEN, ended: int = 0) -> Row:
        """Its row in this state."""
        row: Row = {
            "state": state,
            "opened": self.opened,
            "timeout": self.timeout,
            "owner": self.owner,
            "topics": list(self.topics.values()),
            "subscriptions": [[topic, name] for (_, name), topic in self.subscriptions.items()],
        }
        if self.stage is not None:
            row["stage"] = list(self.stage)
        return row | {"ended": ended} if ended else row

    @classmethod
    def of_row(cls, txn_id: TxnId, row: Row) -> "Transaction":
        """The transaction that a row says."""
        txn = cls(txn_id, row["opened"], row["timeout"], row["owner"])
        txn.topics = {str(parse_topic(topic)): topic for topic in row["topics"]}
        txn.subscriptions = {(str(parse_topic(topic)), name): topic for topic, name in row["subscriptions"]}
        txn.ended = "" if row["state"] == OPEN else row["state"]
        txn.stage = Stage(*row["stage"]) if "stage" in row else None
        return txn

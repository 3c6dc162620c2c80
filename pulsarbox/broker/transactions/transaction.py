"""A transaction: its stored row, and its state in memory."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.timers import Timer
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import Row
from pulsarbox.storage.transactions import TxnId

if TYPE_CHECKING:
    from pulsarbox.broker.topic.producer import AttachedProducer

OPEN: Final = "OPEN"
COMMITTED: Final = "COMMITTED"
ABORTED: Final = "ABORTED"

Answer = Callable[[PulsarBoxError | None, Now], None]
"""Called on completion, with the error if it failed."""


class Who(Protocol):
    """The requester: a connection."""

    @property
    def principal(self) -> Principal | None:
        """The authenticated principal; None if authentication is disabled."""


class Stage(NamedTuple):
    """The epoch of a sink that a transaction belongs to."""

    sink: str
    """``tenant/namespace/sink``."""
    epoch: int
    run: str
    """Run of the writer that began the transaction; empty if unnamed."""


class OpenTransaction:
    """A transaction, usually open.

    Its row has ``state``, ``opened`` and (once ended) ``ended`` in milliseconds since 1970, ``timeout`` in
    milliseconds, ``owner`` (a role, null if authentication is disabled), the ``topics`` that it publishes to, and the
    ``subscriptions`` ([topic, name]) that it acknowledges on; for part of an epoch also ``stage`` ([sink, epoch, run]).
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
        """The epoch that it belongs to, if any."""
        self.topics: dict[str, str] = {}
        """Full topic names, with the names that the client used, which are shown."""
        self.producers: set[AttachedProducer] = set()
        """Producers that have sent in it, whose topics are registered."""
        self.subscriptions: dict[tuple[str, str], str] = {}
        """Full topic name and subscription name, with the topic name that the client used."""
        self.acks: dict[tuple[int, int], list[Row]] = {}
        """Rows of pending acknowledgements, by topic ID and cursor ID."""
        self.ending: str | None = None
        """The requested outcome; set once the transaction can no longer be added to."""
        self.ended = ""
        """The outcome of a transaction that was restored from the row of an ended one."""
        self.settled = False
        """Whether its end is in a batch."""
        self.timed_out = False
        self.waiting: list[tuple[Who, Answer]] = []
        """Connections waiting for the end, once per request."""
        self.timer: Timer | None = None

    @property
    def ends_at(self) -> int:
        """When it is aborted if it has not ended by then (ms since 1970)."""
        return self.opened + self.timeout

    @property
    def state(self) -> str:
        """State as Pulsar names it."""
        if self.ended:
            return self.ended
        return {None: OPEN, COMMITTED: "COMMITTING", ABORTED: "ABORTING"}[self.ending]

    def row(self, state: str = OPEN, ended: int = 0) -> Row:
        """Return its row in this state."""
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
    def of_row(cls, txn_id: TxnId, row: Row) -> "OpenTransaction":
        """Return the transaction of a row."""
        txn = cls(txn_id, row["opened"], row["timeout"], row["owner"])
        txn.topics = {str(parse_topic(topic)): topic for topic in row["topics"]}
        txn.subscriptions = {(str(parse_topic(topic)), name): topic for topic, name in row["subscriptions"]}
        txn.ended = "" if row["state"] == OPEN else row["state"]
        txn.stage = Stage(*row["stage"]) if "stage" in row else None
        return txn

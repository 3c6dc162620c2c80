"""The epochs of a sink of a box, asked for over its Admin API; a box that is away is waited for. Nothing of pyspark.

Whatever is asked here may be asked twice: a part that was begun and not heard of is aborted with the commit of its
epoch, and an epoch is committed once.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from pulsarbox.client.admin import Admin, Refused
from pulsarbox.client.errors import NoAnswer, NotConnected
from pulsarbox.errors import PulsarBoxError
from pulsarbox.spark.connect.connections import Waiting

PAUSE_SECONDS: Final = 0.1
JOB: Final = "job-"
"""What the names of sinks of batch writes begin with."""
_BEHIND: Final = "is behind"

Result = TypeVar("Result")


class SinkError(Exception):
    """Rows cannot be written; says why and what to do."""


class Sink(NamedTuple):
    """Which sink, and who writes it."""

    name: str
    """``tenant/namespace/sink``."""
    writer: str
    """Stays the same over restarts: a streaming query, a job."""
    run: str
    """One start of it."""
    takes_over: bool = False
    """Whether it may replace another writer, or go back behind the last epoch."""

    @property
    def said(self) -> dict[str, Any]:
        """As a box is told."""
        return {"writer": self.writer, "run": self.run} | ({"takeOver": True} if self.takes_over else {})


class Epochs:
    """One sink's; asks through one connection, which is made when it is needed."""

    def __init__(self, admin: Callable[[], Admin], sink: Sink, seconds: float) -> None:
        """``seconds``: how long a box that does not answer is asked again."""
        self._make_admin = admin
        self._admin: Admin | None = None
        self._sink = sink
        self._seconds = seconds

    def check(self) -> None:
        """Return where the broker knows of epochs. Raises SinkError, which says so of Apache Pulsar."""
        self._asked(lambda admin: admin.last_epoch(self._sink.name))

    def begin(self, epoch: int, timeout_ms: int) -> str | None:
        """Begin a transaction that is a part of an epoch: its id, as ``0:17``; None where the epoch was published.

        ``timeout_ms``: 0 for as long as the box allows. Raises SinkError.
        """
        body = self._sink.said | {"timeoutMs": timeout_ms}
        return self._asked(lambda admin: admin.stage_epoch(self._sink.name, epoch, body))

    def commit(self, epoch: int, transactions: Sequence[str]) -> bool:
        """Publish an epoch; false where it was published before. Raises SinkError."""
        return self._asked(lambda admin: admin.commit_epoch(self._sink.name, epoch, transactions, self._sink.said))

    def forget(self) -> None:
        """The sink is no more. Raises SinkError."""
        self._asked(lambda admin: admin.forget_sink(self._sink.name))

    def close(self) -> None:
        """Let the connection go."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def _asked(self, question: Callable[[Admin], Result]) -> Result:
        waiting = Waiting(self._seconds)
        deadline = time.monotonic() + self._seconds
        while True:
            try:
                if self._admin is None:
                    self._admin = self._make_admin()
                return question(self._admin)
            except Refused as error:
                if error.status < 500 or time.monotonic() + PAUSE_SECONDS > deadline:
                    raise SinkError(self._in_words(error)) from error
            except (NotConnected, NoAnswer) as error:
                if time.monotonic() + PAUSE_SECONDS > deadline:
                    text = f"the box does not answer, for {self._seconds:g} s: {error}"
                    raise SinkError(
                        f"sink {self._sink.name}: {text}. Is admin.url the address of its Admin API?"
                    ) from error
                waiting.tell(error)
            except PulsarBoxError as error:
                raise SinkError(f"sink {self._sink.name}: {error}") from error
            self.close()
            time.sleep(PAUSE_SECONDS)

    def _in_words(self, error: Refused) -> str:
        text, name = str(error), self._sink.name
        local = name.rpartition("/")[2]
        for sign, advice in _ADVICE:
            if sign in text and local.startswith(JOB) and sign == _BEHIND:
                return f"{text}. Parts of a job are written in their order: this one was, and one behind it"
            if sign in text:
                return f"{text}. {advice.format(sink=local, namespace=name.rpartition('/')[0])}"
        if error.status in (404, 405) and "amespace" not in text:
            return (
                f"delivery=exactly-once needs the epoch commit of a box, and this broker has none ({error.status}: "
                f"{text}). Towards Apache Pulsar there are delivery=at-least-once, and delivery=dedup for topics with "
                "deduplication"
            )
        return f"sink {name}: {text}"


_ADVICE: Final = (
    (
        _BEHIND,
        "The checkpoint is older than what sink {sink} has published. To go on from this checkpoint, and publish again "
        "what comes after it, give the sink's name as sinkId, and sinkEpoch=reset; to begin a new sink, choose another "
        "sinkId",
    ),
    (
        "is another",
        "Is it another query with the same sinkId, or was the checkpoint deleted? Choose another sinkId; or, where "
        "the one before is to be replaced, and will never come back, say sinkEpoch=reset",
    ),
    ("was taken over by", "Choose another sinkId for this query"),
    ("has begun since", "Another driver of this query has taken its place: this one has to stop"),
    (
        "it takes nothing more in",
        "From the first row to the commit an epoch took longer than stageTimeout: raise it, or make epochs smaller",
    ),
    (
        "it has ended, or was never begun",
        "From the first row to the commit an epoch took longer than stageTimeout: raise it, or make epochs smaller",
    ),
    ("amespace not found", "Create it: `pulsarbox admin namespaces create {namespace}`"),
    ("transactionMaxTimeoutSeconds", "Lower stageTimeout, or raise that setting of the box"),
    ("Transactions are not enabled", "Turn transactionCoordinatorEnabled on, or say delivery=at-least-once"),
)
"""What to do about a refusal, by what it says."""

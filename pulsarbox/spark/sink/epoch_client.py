"""Client of the epoch commit in a box's Admin API, with retries while the box is unavailable. Does not import pyspark.

All requests may be repeated: a part whose answer was lost is aborted with the commit of its epoch, and an epoch is
committed once.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from pulsarbox.client.admin import Admin, AdminRefused
from pulsarbox.client.errors import NoAnswer, NotConnected
from pulsarbox.errors import (
    EpochBehind,
    InvalidTxnStatus,
    NamespaceNotFound,
    PulsarBoxError,
    RunReplaced,
    SinkOfAnotherWriter,
    SinkTakenOver,
    TransactionNotFound,
    TransactionsDisabled,
    TransactionTimeoutTooLong,
)
from pulsarbox.spark.connect.connections import WaitNotice

PAUSE_SECONDS: Final = 0.1
JOB: Final = "job-"
"""Prefix of the sink names of batch writes."""

Result = TypeVar("Result")


class SinkError(Exception):
    """Rows cannot be written; the message gives the reason and the remedy.

    ``code`` is that of the error of the box, see ``PulsarBoxError.error_code``; empty for none.
    """

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class Sink(NamedTuple):
    """Identity of a sink and its writer."""

    name: str
    """``tenant/namespace/sink``."""
    writer: str
    """Survives restarts: a streaming query, a job."""
    run: str
    """One run of the writer."""
    takes_over: bool = False
    """Whether it may replace another writer, or commit an epoch before the last one."""

    @property
    def writer_body(self) -> dict[str, Any]:
        """The writer in a request body."""
        return {"writer": self.writer, "run": self.run} | ({"takeOver": True} if self.takes_over else {})


class SinkEpochs:
    """Epochs of one sink, requested over one connection that is opened on first use."""

    def __init__(self, admin: Callable[[], Admin], sink: Sink, seconds: float) -> None:
        """Prepare without connecting; ``seconds`` limits the retries while the box is unavailable."""
        self._make_admin = admin
        self._admin: Admin | None = None
        self._sink = sink
        self._seconds = seconds

    def check(self) -> None:
        """Check that the broker supports epochs. Raises SinkError, also for Apache Pulsar."""
        self._asked(lambda admin: admin.last_epoch(self._sink.name))

    def begin(self, epoch: int, timeout_ms: int) -> str | None:
        """Begin a transaction of an epoch and return its ID, as ``0:17``; None if the epoch was already published.

        ``timeout_ms``: 0 for the maximum of the box. Raises SinkError.
        """
        body = self._sink.writer_body | {"timeoutMs": timeout_ms}
        return self._asked(lambda admin: admin.stage_epoch(self._sink.name, epoch, body))

    def commit(self, epoch: int, transactions: Sequence[str]) -> bool:
        """Publish an epoch; return false if it was already published. Raises SinkError."""
        return self._asked(
            lambda admin: admin.commit_epoch(self._sink.name, epoch, transactions, self._sink.writer_body)
        )

    def forget(self) -> None:
        """Delete the sink. Raises SinkError."""
        self._asked(lambda admin: admin.forget_sink(self._sink.name))

    def close(self) -> None:
        """Close the connection."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def _asked(self, question: Callable[[Admin], Result]) -> Result:
        waiting = WaitNotice(self._seconds)
        deadline = time.monotonic() + self._seconds
        while True:
            try:
                if self._admin is None:
                    self._admin = self._make_admin()
                return question(self._admin)
            except AdminRefused as error:
                if error.status < 500 or time.monotonic() + PAUSE_SECONDS > deadline:
                    raise SinkError(self._in_words(error), error.code) from error
            except (NotConnected, NoAnswer) as error:
                if time.monotonic() + PAUSE_SECONDS > deadline:
                    text = f"the box has not responded for {self._seconds:g} s: {error}"
                    raise SinkError(
                        f"sink {self._sink.name}: {text}. Is admin.url the URL of its Admin API?"
                    ) from error
                waiting.report(error)
            except PulsarBoxError as error:
                raise SinkError(f"sink {self._sink.name}: {error}") from error
            self.close()
            time.sleep(PAUSE_SECONDS)

    def _in_words(self, error: AdminRefused) -> str:
        text, name = str(error), self._sink.name
        namespace, _, local = name.rpartition("/")
        if error.code == EpochBehind.error_code and local.startswith(JOB):
            return f"{text}. The parts of a job are written in order: this one and a later one were already written"
        if error.code in _ADVICE:
            return f"{text}. {_ADVICE[error.code].format(sink=local, namespace=namespace)}"
        if error.status in (404, 405):
            return (
                f"delivery=exactly-once requires the epoch commit of a box, which this broker lacks ({error.status}: "
                f"{text}). With Apache Pulsar, use delivery=at-least-once"
            )
        return f"sink {name}: {text}"


_TOO_LATE: Final = (
    "The epoch took longer than stageTimeout from its first row to the commit: raise it, or make epochs smaller"
)
_ADVICE: Final = {
    EpochBehind.error_code: (
        "The checkpoint is older than what sink {sink} has published. To continue from this checkpoint, and publish "
        "the later rows again, set sinkId to the sink's name and sinkEpoch=reset; to start a new sink, choose another "
        "sinkId"
    ),
    SinkOfAnotherWriter.error_code: (
        "Is it another query with the same sinkId, or was the checkpoint deleted? Choose another sinkId; or, if this "
        "query replaces the previous one for good, set sinkEpoch=reset"
    ),
    SinkTakenOver.error_code: "Choose another sinkId for this query",
    RunReplaced.error_code: "Another driver has taken over this query: this one must stop",
    InvalidTxnStatus.error_code: _TOO_LATE,
    TransactionNotFound.error_code: _TOO_LATE,
    NamespaceNotFound.error_code: "Create it: `pulsarbox admin namespaces create {namespace}`",
    TransactionTimeoutTooLong.error_code: "Lower stageTimeout, or raise that setting of the box",
    TransactionsDisabled.error_code: "Enable transactionCoordinatorEnabled, or use delivery=at-least-once",
}
"""Remedies by the code of the rejection."""

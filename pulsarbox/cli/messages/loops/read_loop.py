"""Read loop of ``consume``, ``peek`` and ``tap``: receive, filter, write and acknowledge messages until the end."""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulsarbox.cli.common.exits import HungUp, Partly, TimedOut
from pulsarbox.cli.common.interruption import Interruption
from pulsarbox.cli.common.progress import messages
from pulsarbox.cli.common.stdout import NotWritten, Stdout
from pulsarbox.cli.common.terminal_text import counted
from pulsarbox.cli.connect.admin_client import short
from pulsarbox.cli.messages.exec_hook import Executing
from pulsarbox.cli.messages.loops.pipe_acknowledgement import Unread
from pulsarbox.cli.messages.loops.reading_line import ReadingLine
from pulsarbox.cli.messages.loops.stop_condition import StopCondition
from pulsarbox.cli.messages.message_output import Form
from pulsarbox.client.client import Client
from pulsarbox.client.message_decoder import ReceivedMessage
from pulsarbox.client.multi_topic_consumer import MultiTopicConsumer
from pulsarbox.client.partition_consumer import TopicConsumer
from pulsarbox.protocol.chunks import LostChunk

if TYPE_CHECKING:
    from pulsarbox.cli.envelope.stored_fields import SchemaLookup
    from pulsarbox.cli.messages.schema_decoding import Decoding

AT_ONCE: Final = 1000
"""Maximum number of messages per write."""
_UNREAD_SECONDS: Final = 0.05
"""How often to check whether the written messages have been read."""
_FIRST_READ_SECONDS: Final = 2.0
"""How long to wait for a reader that has not started to read."""
_LOOK_SECONDS: Final = 0.25
"""Time without messages after which to check whether the end is reached."""
_CHUNKS_SAID: Final = 10
"""Maximum number of skipped chunks to report individually."""


@dataclass(frozen=True, slots=True)
class Manner:
    """Options of reading."""

    form: Form
    wanted: Callable[[ReceivedMessage], bool] | None = None
    """Filter, None for all messages."""
    begin: Callable[[Sequence[ReceivedMessage]], bytes] | None = None
    """Returns what is written before the first messages."""
    ack: str = "none"
    """When to acknowledge: ``after`` writing (on a pipe, reading), ``before`` writing, or ``none``."""
    in_order: bool = False
    """Whether one consumer gets all messages in order, which allows cumulative acknowledgement."""
    ack_filtered: bool = False
    """Whether to acknowledge messages that the filter excludes."""
    command: str | None = None
    """Shell command to run per message, instead of writing it."""
    timeout: float | None = None
    """Maximum number of seconds without a message."""
    progress: bool = True
    decoding: "Decoding | None" = None
    """Payload decoder of the filter and the format."""
    colors: bool = False
    """Whether the format has colours, and is free of other control characters."""
    schemas: "SchemaLookup | None" = None
    """Schema lookup for envelopes."""


class ReadLoop:
    """A run of the read loop, until the end, an interruption, or an error."""

    def __init__(
        self,
        client: Client,
        consumer: MultiTopicConsumer,
        interruption: Interruption,
        ending: StopCondition,
        manner: Manner,
    ) -> None:
        self.each_turn: Callable[[], None] | None = None
        """Hook called in each turn of the loop, to look for new topics."""
        self._client = client
        self._consumer = consumer
        self._interruption = interruption
        self._ending = ending
        self._manner = manner
        self._begin = manner.begin
        self._stdout = Stdout(client, interruption, is_clean=manner.colors)
        self._unread = Unread(self._acknowledge)
        self._progress = ReadingLine(
            manner.progress, shares_terminal=self._stdout.is_terminal, is_filtered=manner.wanted is not None
        )
        client.warn = self._progress.notify
        if manner.decoding is not None:
            manner.decoding.begin(client)
        if manner.schemas is not None:
            manner.schemas.begin(client)
        self._executing: Executing | None = None
        if manner.command is not None:
            self._executing = Executing(client, consumer, manner.command, give_back=manner.ack == "after")

    def run(self) -> int:
        """Read, and return the number of messages written. Raises the exit of the command unless it succeeds."""
        # Messages form no reference cycles; searching for cycles took a fifth of the time.
        gc.freeze()
        gc.set_threshold(200_000, 20, 20)
        try:
            self._read()
            self._report_skipped_chunks(ended=True)
            self._wait_for_the_reader()
        except NotWritten:
            pass
        except (BrokenPipeError, HungUp, TimedOut):
            self._wait_for_the_reader()
            self._consumer.settle()
            raise
        finally:
            self._progress.clear()
        self._release()
        if self._executing is not None:
            self._executing.give_back_due(all_of_them=True)
        self._consumer.settle()
        if self._interruption.is_asked():
            raise self._interruption.ending(f"{messages(self._ending.count)} read, then interrupted")
        if self._executing is not None and self._executing.failed:
            raise Partly(f"the command failed {counted(self._executing.failed, 'time')}")
        return self._ending.count

    def _read(self) -> None:
        quiet_since = time.monotonic()
        looked = quiet_since
        while not self._interruption.is_asked() and not self._ending.is_reached():
            found = self._take()
            now = time.monotonic()
            self._report_skipped_chunks()
            if self.each_turn is not None:
                self.each_turn()
            if found:
                quiet_since = looked = now
                self._handle(found)
                continue
            if now - looked >= _LOOK_SECONDS:
                self._stdout.check_reader()
                self._ending.quiet(now - quiet_since)
                looked = time.monotonic()
                if self._ending.is_reached():
                    return
            timeout = self._manner.timeout
            if timeout is not None and now - quiet_since >= timeout:
                raise TimedOut(f"no message for {timeout:g} s after {messages(self._ending.count)}")

    def _report_skipped_chunks(self, *, ended: bool = False) -> None:
        """Report skipped chunks. Not for a subscription, where another consumer may have the other chunks."""
        if self._consumer.durable:
            return
        for part in self._consumer.parts.values():
            orphans = part.chunks.take_orphans()
            for chunk in orphans[:_CHUNKS_SAID]:
                self._progress.notify(f"skipped {_named(part, chunk)}: its first chunk is before the start")
            if len(orphans) > _CHUNKS_SAID:
                self._progress.notify(f"skipped {len(orphans) - _CHUNKS_SAID:,} more chunks of {short(part.topic)}")
            for chunk in part.chunks.incomplete[:_CHUNKS_SAID] if ended else ():
                self._progress.notify(f"skipped {_named(part, chunk)}: its next chunk is after the end")

    def _release(self) -> None:
        """Acknowledge messages that have been read meanwhile."""
        if self._unread:
            self._unread.release(self._stdout.read())

    def _wait_for_the_reader(self) -> None:
        """Wait until all written messages are read, or the reader is gone.

        A reader that has not read anything by now probably waits for this process to exit, as a parent process does.
        The data in the pipe outlives this process, so acknowledge it.
        """
        pause, until = 0.001, time.monotonic() + _FIRST_READ_SECONDS
        self._release()
        while self._unread and not self._interruption.is_asked() and not self._stdout.is_left():
            if time.monotonic() > until and not self._stdout.read():
                self._unread.release(self._stdout.written)
                return
            self._client.turn(pause)
            pause = min(2 * pause, _UNREAD_SECONDS)
            self._release()

    def _take(self) -> Sequence[ReceivedMessage]:
        limit = 1 if self._executing is not None else max(1, min(AT_ONCE, self._ending.wanted))
        # Bounded by the check interval, because a signal wakes the loop but does not end this wait.
        seconds = min(_LOOK_SECONDS, self._ending.seconds_left)
        if self._executing is not None:
            self._executing.give_back_due()
            seconds = min(seconds, self._executing.seconds_left)
        if self._unread:
            self._release()
            seconds = min(seconds, _UNREAD_SECONDS)
        return self._consumer.take(limit, seconds)

    def _handle(self, found: Sequence[ReceivedMessage]) -> None:
        manner = self._manner
        taken, chosen = self._choose(found)
        acknowledged = taken if manner.ack_filtered else chosen
        if manner.ack == "before":
            self._acknowledge(acknowledged)
            self._consumer.settle()
        if self._executing is not None:
            failed = {id(each) for each in chosen if not self._executing.run(each)}
            acknowledged = [each for each in acknowledged if id(each) not in failed]
        else:
            self._write(chosen, acknowledged, len(taken))
            return
        if manner.ack == "after":
            self._acknowledge(acknowledged)
            self._consumer.send_partial()  # do not repeat finished work after a crash

    def _write(self, chosen: Sequence[ReceivedMessage], acknowledged: Sequence[ReceivedMessage], read: int) -> None:
        """Write the chosen messages, and queue the others with them for acknowledgement, in order."""
        if chosen:
            self._progress.before_output()
        if chosen and self._begin is not None:
            self._stdout.write(self._begin(chosen), self._release)
            self._begin = None
        pieces = list(map(self._manner.form, chosen))
        data = b"".join(pieces)
        if self._manner.ack == "after":
            sizes = [*map(len, pieces)]
            if acknowledged is not chosen:
                own = dict(zip(map(id, chosen), sizes, strict=True))
                sizes = [own.get(id(each), 0) for each in acknowledged]
            self._unread.add(self._stdout.written, acknowledged, sizes)
        self._stdout.write(data, self._release)
        self._progress.add(read, len(chosen), len(data))
        self._release()

    def _acknowledge(self, messages: Sequence[ReceivedMessage]) -> None:
        manner = self._manner
        if manner.in_order and manner.wanted is None and self._executing is None:
            self._consumer.acknowledge_all_up_to(messages)
        else:
            self._consumer.acknowledge(messages)

    def _choose(self, found: Sequence[ReceivedMessage]) -> tuple[Sequence[ReceivedMessage], Sequence[ReceivedMessage]]:
        """Return the messages before the end, and those among them that pass the filter."""
        wanted = self._manner.wanted
        if wanted is None:
            taken = self._ending.cut(found)
            return taken, taken
        all_taken: list[ReceivedMessage] = []
        chosen: list[ReceivedMessage] = []
        for each in found:
            if self._ending.is_reached():
                break
            if not self._ending.cut((each,)):
                continue
            all_taken.append(each)
            if wanted(each):
                chosen.append(each)
            else:
                self._ending.count -= 1
        return all_taken, chosen


def _named(part: TopicConsumer, chunk: LostChunk) -> str:
    ledger, entry = chunk.place
    return f"{short(part.topic)} {ledger}:{entry}, chunk {chunk.number} of {chunk.of} of a message"

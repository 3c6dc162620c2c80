"""What ``consume``, ``peek`` and ``tap`` do alike: take messages, choose, write, acknowledge, until the end."""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulsarbox.cli.common.exits import HungUp, Partly, TimedOut
from pulsarbox.cli.common.interruption import Interruption
from pulsarbox.cli.common.progress import Progress, messages
from pulsarbox.cli.common.stdout import NotWritten, Stdout
from pulsarbox.cli.connect.admin_client import short
from pulsarbox.cli.messages.exec_hook import Executing
from pulsarbox.cli.messages.message_output import Form
from pulsarbox.cli.messages.pipe_acknowledgement import Unread
from pulsarbox.cli.messages.stop_condition import Ending
from pulsarbox.client.chunks import Chunk
from pulsarbox.client.client import Client
from pulsarbox.client.message_decoder import Message
from pulsarbox.client.multi_topic_consumer import Consumer
from pulsarbox.client.partition_consumer import TopicConsumer

if TYPE_CHECKING:
    from pulsarbox.cli.envelope.stored_fields import SchemaLookup
    from pulsarbox.cli.messages.schema_decoding import Decoding

AT_ONCE: Final = 1000
"""Messages that are written in one go."""
_UNREAD_SECONDS: Final = 0.05
"""How often it is looked whether what is written has been read."""
_FIRST_READ_SECONDS: Final = 2.0
"""How long a reader is waited for that has not begun."""
_LOOK_SECONDS: Final = 0.25
"""Of silence, after which it is looked whether the end is behind us."""
_CHUNKS_SAID: Final = 10
"""Chunks that are left out and named one by one."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How messages are read."""

    form: Form
    wanted: Callable[[Message], bool] | None = None
    """The filter."""
    ack: str = "none"
    """``after``: once they are written, and read where that is a pipe. ``before``: before; ``none``: not at all."""
    in_order: bool = False
    """Whether everything goes to one consumer in its order, so that the last acknowledgement covers those before."""
    ack_filtered: bool = False
    """Whether those that the filter leaves out are acknowledged too."""
    command: str | None = None
    """For each message, in place of writing it."""
    timeout: float | None = None
    """Seconds without a message after which reading fails."""
    progress: bool = True
    decoding: "Decoding | None" = None
    """What the filter and the form know values from."""
    schemas: "SchemaLookup | None" = None
    """What envelopes define schemas from."""


class Reading:
    """Reads from a consumer until the end, the interruption, or an error."""

    def __init__(
        self, client: Client, consumer: Consumer, interruption: Interruption, ending: Ending, manner: Manner
    ) -> None:
        self.each_turn: Callable[[], None] | None = None
        """Called about once a second, for whoever looks for new topics."""
        self._client = client
        self._consumer = consumer
        self._interruption = interruption
        self._ending = ending
        self._manner = manner
        self._stdout = Stdout(client, interruption)
        self._unread = Unread(self._acknowledge)
        self._progress = Progress("read", manner.progress and not self._stdout.is_terminal)
        client.tell = self._progress.say
        if manner.decoding is not None:
            manner.decoding.begin(client)
        if manner.schemas is not None:
            manner.schemas.begin(client)
        self._executing: Executing | None = None
        if manner.command is not None:
            self._executing = Executing(client, consumer, manner.command, give_back=manner.ack == "after")

    def run(self) -> int:
        """How many messages were written. Raises the ending of the command where it is none that was wished for."""
        # What is read has no cycles, and there is much of it: looking for them takes a fifth of the time.
        gc.freeze()
        gc.set_threshold(200_000, 20, 20)
        try:
            self._read()
            self._say_chunks(ended=True)
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
            raise Partly(f"the command failed {self._executing.failed:,} times")
        return self._ending.count

    def _read(self) -> None:
        quiet_since = time.monotonic()
        looked = quiet_since
        while not self._interruption.is_asked() and not self._ending.is_reached():
            found = self._take()
            now = time.monotonic()
            self._say_chunks()
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
                raise TimedOut(f"no message for {timeout:g} s; {messages(self._ending.count)} before")

    def _say_chunks(self, *, ended: bool = False) -> None:
        """Name the chunks that are left out. Of a subscription another consumer may have the rest."""
        if self._consumer.durable:
            return
        for part in self._consumer.parts.values():
            orphans = part.chunks.take_orphans()
            for chunk in orphans[:_CHUNKS_SAID]:
                self._progress.say(f"{_named(part, chunk)}, whose first chunk is before what is read: left out")
            if len(orphans) > _CHUNKS_SAID:
                self._progress.say(f"... and {len(orphans) - _CHUNKS_SAID:,} more chunks of {short(part.topic)}")
            for chunk in part.chunks.incomplete[:_CHUNKS_SAID] if ended else ():
                self._progress.say(f"{_named(part, chunk)}, whose next chunk is behind what is read: left out")

    def _release(self) -> None:
        """Acknowledge what was read meanwhile."""
        if self._unread:
            self._unread.release(self._stdout.read())

    def _wait_for_the_reader(self) -> None:
        """Return when all that is written is read, or nobody reads it any more.

        Whoever has not begun to read by now waits for our end first, as programs do that start others: then what
        stands in the pipe is theirs, and outlives us.
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

    def _take(self) -> Sequence[Message]:
        limit = 1 if self._executing is not None else max(1, min(AT_ONCE, self._ending.wanted))
        # Never longer than until the next look: a signal wakes the loop, but ends no waiting by itself.
        seconds = min(_LOOK_SECONDS, self._ending.seconds_left)
        if self._executing is not None:
            self._executing.give_back_due()
            seconds = min(seconds, self._executing.seconds_left)
        if self._unread:
            self._release()
            seconds = min(seconds, _UNREAD_SECONDS)
        return self._consumer.take(limit, seconds)

    def _handle(self, found: Sequence[Message]) -> None:
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
            self._write(chosen, acknowledged)
            return
        if manner.ack == "after":
            self._acknowledge(acknowledged)
            self._consumer.send_partial()  # what was done is not to be done again

    def _write(self, chosen: Sequence[Message], acknowledged: Sequence[Message]) -> None:
        """Write those that are chosen; the others are acknowledged with them, in the order of all."""
        pieces = list(map(self._manner.form, chosen))
        data = b"".join(pieces)
        if self._manner.ack == "after":
            sizes = [*map(len, pieces)]
            if acknowledged is not chosen:
                own = dict(zip(map(id, chosen), sizes, strict=True))
                sizes = [own.get(id(each), 0) for each in acknowledged]
            self._unread.add(self._stdout.written, acknowledged, sizes)
        self._stdout.write(data, self._release)
        self._progress.add(len(chosen), len(data))
        self._release()

    def _acknowledge(self, messages: Sequence[Message]) -> None:
        manner = self._manner
        if manner.in_order and manner.wanted is None and self._executing is None:
            self._consumer.acknowledge_all_up_to(messages)
        else:
            self._consumer.acknowledge(messages)

    def _choose(self, found: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
        """Those that are before the end, and of these the ones that the filter wants."""
        wanted = self._manner.wanted
        if wanted is None:
            taken = self._ending.cut(found)
            return taken, taken
        all_taken: list[Message] = []
        chosen: list[Message] = []
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


def _named(part: TopicConsumer, chunk: Chunk) -> str:
    ledger, entry = chunk.place
    return f"{short(part.topic)} {ledger}:{entry} is chunk {chunk.number} of {chunk.of} of a message"

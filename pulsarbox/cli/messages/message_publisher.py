"""Implementation of ``produce``: build messages from the options and input, send them, and report receipts."""

import heapq
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.cli.common.exits import Failed, Misused, Partly, abandon_stdout
from pulsarbox.cli.common.interruption import Interruption
from pulsarbox.cli.common.progress import ProgressLine, messages
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.connect.target import Target
from pulsarbox.cli.messages.stdin_reader import Stdin
from pulsarbox.cli.plugins.options import plugins_directory
from pulsarbox.client.backlogs import ANSWER_SECONDS, PartitionBacklogs
from pulsarbox.client.client import Client
from pulsarbox.client.compression import CODECS, codec
from pulsarbox.client.producer import Options, Producer
from pulsarbox.client.routing import PartitionRouter
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.plugins.guard import Trouble
from pulsarbox.plugins.registry import PluginError, built_in
from pulsarbox.protocol.message_encoder import Outgoing

if TYPE_CHECKING:
    from pulsarbox.cli.envelope.stored_entries import Restoration
    from pulsarbox.client.admin import Admin

_LINES_MAX: Final = 1000
"""Maximum number of IDs buffered before printing."""
_LOAD_MESSAGES: Final = 1000
"""``--count`` from which PAYLOAD counts as a load."""


class BadInput(Exception):
    """An input message is invalid. The text names it and the reason."""


class Making:
    """Builder of messages from the options."""

    def __init__(self, options: dict[str, Any]) -> None:
        """Raises ValueError for an invalid format or template."""
        self._options = options
        self._read: Callable[[bytes], Outgoing] | None = None
        if options["form"] == "ndjson":
            from pulsarbox.cli.envelope.envelope import read

            self._read = read
        elif options["line_format"] is not None:
            from pulsarbox.cli.messages.format_string import input_format

            self._read = input_format(options["line_format"])
        self._after: int | None = options["deliver_after"]
        self._ordering_key = None if options["ordering_key"] is None else options["ordering_key"].encode()
        if options["template"]:
            from pulsarbox.cli.messages.payload_templates import template

            for text in (options["key"] or "", options["payload"] or "", *[each for _, each in options["properties"]]):
                template(text)
        fixed = ("key", "ordering_key", "event_time", "deliver_at", "deliver_after")
        self.is_plain = (
            self._read is None
            and not options["properties"]
            and not options["template"]
            and not options["ids"]
            and all(options[name] is None for name in fixed)
        )
        """Whether a line is just a payload."""

    def of_line(self, line: bytes, number: int) -> Outgoing:
        """Return the message of a line of stdin, completed from the options.

        Raises ValueError for an invalid line.
        """
        return self.of_payload(line, number) if self._read is None else self.filled(self._read(line))

    def filled(self, message: Outgoing) -> Outgoing:
        """Return an input message with missing fields filled in from the options."""
        options = self._options
        changed: dict[str, Any] = {}
        if message.key is None and options["key"] is not None:
            changed["key"] = options["key"]
        if message.ordering_key is None and self._ordering_key is not None:
            changed["ordering_key"] = self._ordering_key
        if options["properties"]:
            names = {name for name, _ in message.properties}
            more = [pair for pair in options["properties"] if pair[0] not in names]
            changed["properties"] = [*message.properties, *more]
        if not message.event_time and options["event_time"]:
            changed["event_time"] = options["event_time"]
        if not message.deliver_at and (deliver_at := self._deliver_at()):
            changed["deliver_at"] = deliver_at
        return message._replace(**changed) if changed else message

    def of_payload(self, payload: bytes | None, number: int) -> Outgoing:
        """Return a message with this payload, expanded if it is a template. Raises ValueError."""
        options = self._options
        key, properties = options["key"], options["properties"]
        if options["template"]:
            from pulsarbox.cli.messages.payload_templates import template

            if payload is not None:
                text = payload.decode("utf-8", "surrogateescape")
                payload = template(text)(number).encode("utf-8", "surrogateescape")
            key = None if key is None else template(key)(number)
            properties = [(name, template(value)(number)) for name, value in properties]
        return Outgoing(
            payload,
            key,
            False,
            self._ordering_key,
            properties,
            options["event_time"] or 0,
            self._deliver_at(),
        )

    def _deliver_at(self) -> int:
        if self._after is not None:
            return time.time_ns() // 1_000_000 + self._after
        at: int | None = self._options["deliver_at"]
        return at or 0


class Sending:
    """A producer with its reports: stored messages, their IDs, and progress."""

    def __init__(
        self, client: Client, topic: str, options: Options, rate: float | None, ids: bool, progress: bool
    ) -> None:
        self.stored = 0
        """Number of messages with a receipt."""
        self._ids = ids
        self._rate = rate
        self._number = 0
        self._next_id = 0
        self._input: Callable[[], float | None] = lambda: None
        self._early: list[tuple[int, str]] = []
        self._lines: list[str] = []
        self._progress = ProgressLine("stored", progress and not (ids and sys.stdout.isatty()), self._share)
        client.warn = self._progress.notify
        self._producer = Producer(client, topic, options, self._reported)

    def read_from(self, share: Callable[[], float | None]) -> None:
        """Show progress by the part of the input that ``share`` reports as read (0 to 1), None if it is unknown."""
        self._input = share

    def _share(self) -> float | None:
        return self._input()

    def send(self, group: Sequence[bytes] | Sequence[Outgoing]) -> None:
        """Send messages or plain payloads. Blocks while too many are pending."""
        if not group:
            return
        if isinstance(group[0], bytes):
            try:
                self._producer.send_plain(group)  # type: ignore[arg-type] # a group has one type
            except ValueError as error:  # a line is too large; its number is unknown here
                raise BadInput(str(error)) from None
            return
        for message in group:
            assert isinstance(message, Outgoing)
            try:
                self._producer.send(message, self._number if self._ids else None)
            except ValueError as error:
                raise BadInput(f"message {self._number + 1}: {error}") from None
            self._number += 1

    def restoration(self, client: Client, topic: str, making: Making, codec: int) -> "Restoration":
        """Return the writer of ``--preserve``. Its messages count like those of ``send``."""
        from pulsarbox.cli.envelope.stored_entries import Restoration

        tell = self._progress.notify
        return Restoration(client, topic, self._producer, making.filled, tell, codec=codec, tokens=self._take_numbers)

    def _take_numbers(self, count: int) -> Sequence[int]:
        numbers = range(self._number, self._number + count)
        self._number += count
        return numbers if self._ids else ()

    def idle(self) -> None:
        """Send partial batches, because the input has no more data for now."""
        self._producer.send_batches()
        self._progress.add(0, 0)
        self._print()

    def flush(self) -> None:
        """Wait until all messages are stored."""
        self._producer.flush()

    def end(self) -> None:
        """Print the remaining IDs and clear the progress line."""
        self._progress.clear()
        self._print()

    def _print(self) -> None:
        """Print the known IDs. If stdout has no reader any more, keep sending without printing."""
        if not self._lines:
            return
        lines, self._lines = self._lines, []
        try:
            sys.stdout.write("".join(lines))
            sys.stdout.flush()
        except BrokenPipeError:
            abandon_stdout()
            self._ids = False

    def close(self) -> None:
        """Close the producer."""
        self._producer.close()

    def _reported(self, partition: int, ledger: int, entry: int, count: int, numbers: Sequence[Any]) -> None:
        self.stored += count
        self._progress.add(count, 0)
        if not self._ids:
            return
        for index, number in enumerate(numbers):
            batch_index = index if count > 1 else -1
            heapq.heappush(self._early, (number, f"{ledger}:{entry}:{partition}:{batch_index}\n"))
        while self._early and self._early[0][0] == self._next_id:
            self._lines.append(heapq.heappop(self._early)[1])
            self._next_id += 1
        if len(self._lines) >= _LINES_MAX:
            self._print()


def produce_messages(service: Target, admin: Callable[[], Target], topic: str, options: dict[str, Any]) -> None:
    """Send the messages. Raises the exit of the command unless all are stored.

    ``admin`` is called only if the route needs backlogs, or to check retention before a load.
    """
    client = Client(service.hosts, options["timeout"], secure=service.secure, credentials=service.credentials())
    try:
        with Interruption(client.loop) as interruption:
            route = _route(admin, topic, options)
            _ensure_retained(client, service, admin, topic, options)
            _produce(client, interruption, topic, options, route)
    finally:
        client.close()


def _ensure_retained(
    client: Client, service: Target, admin: Callable[[], Target], topic: str, options: dict[str, Any]
) -> None:
    """Create the ``--keep`` subscription; without it, warn before a load that the broker would not retain."""
    if options["keep"] is None and not _is_load(options):
        return
    from pulsarbox.client.admin import Admin
    from pulsarbox.client.keeping import ANSWER_SECONDS as KEEPING_SECONDS
    from pulsarbox.client.keeping import is_kept, keep, loss_warning

    if options["keep"] is not None:
        keep(client, topic, options["keep"])
        return
    try:
        target = admin()
    except Failed:  # the Admin API is optional for publishing, and retention is unknown without it
        return
    if not {host for host, _ in service.hosts} & {host for host, _ in target.hosts}:
        return  # the Admin API belongs to another broker
    with Admin(target.hosts, KEEPING_SECONDS, secure=target.secure, credentials=target.credentials()) as asked:
        if is_kept(asked, parse_topic(topic)) is False:
            notify(f"warning: {loss_warning(topic, '--keep NAME')}")


def _is_load(options: dict[str, Any]) -> bool:
    """Return whether many messages are published non-interactively."""
    piped = options["from_stdin"] and sys.stdin is not None and not sys.stdin.isatty()
    return piped or (options["count"] or 1) >= _LOAD_MESSAGES


def _route(admin: Callable[[], Target], topic: str, options: dict[str, Any]) -> PartitionRouter:
    """Return the router of partitions. Raises Misused if the plugin is missing or unusable."""

    def connected() -> "Admin":
        from pulsarbox.client.admin import Admin

        target = admin()
        return Admin(target.hosts, ANSWER_SECONDS, secure=target.url.startswith("https"))

    def failed(trouble: Trouble) -> None:
        notify(f"warning: {trouble}")
        for line in trouble.trace.splitlines():
            notify(line)

    backlogs = PartitionBacklogs(connected, topic, lambda text: notify(f"warning: {text}"))
    name, hashing, directory = options["route"], options["hashing"], options["plugins_dir"]
    if name not in built_in("routing") or hashing not in built_in("hashing"):
        directory = plugins_directory(directory)
    route = PartitionRouter(name, dict(options["route_options"]), hashing, directory, backlogs, failed)
    try:
        route.open(topic)
    except PluginError as error:
        raise Misused(str(error)) from None
    return route


def _produce(
    client: Client, interruption: Interruption, topic: str, options: dict[str, Any], route: PartitionRouter
) -> None:
    number = CODECS[options["compress"]]
    if number:
        codec(number)  # fail before sending if the codec is missing
    how = Options(options["name"], number, options["batch"], options["mix_keys"], route)
    try:
        making = Making(options)
    except ValueError as error:
        raise Misused(str(error)) from None
    sending = Sending(client, topic, how, options["rate"], options["ids"], not options["no_progress"])
    problem: str | None = None
    try:
        if options["preserve"]:
            restoration = sending.restoration(client, topic, making, number)
            _restore(client, interruption, sending, restoration, options)
        else:
            for group in _groups(client, interruption, sending, making, options):
                sending.send(group)
        sending.flush()
    except PulsarBoxError as error:
        sending.end()
        if not sending.stored:
            raise
        raise Partly(f"{messages(sending.stored)} stored, then: {error}") from error
    except BadInput as error:
        problem = str(error)
        sending.flush()
    sending.end()
    sending.close()
    if problem is not None:
        raise (Partly if sending.stored else Failed)(f"{problem}; {messages(sending.stored)} stored before it")
    if interruption.is_asked():
        raise interruption.ending(f"{messages(sending.stored)} stored, then interrupted")
    if not options["quiet"]:
        notify(f"{messages(sending.stored)} stored in {topic}")


def _groups(
    client: Client, interruption: Interruption, sending: Sending, making: Making, options: dict[str, Any]
) -> Iterator[list[bytes] | list[Outgoing]]:
    """Yield groups of messages, or of bytes if they are plain payloads."""
    pace = _pace(client, interruption, sending, options["rate"])
    if not options["from_stdin"]:
        payload = None if options["tombstone"] else options["payload"].encode("utf-8", "surrogateescape")
        count = options["count"] or 1
        sending.read_from(lambda: sending.stored / count)
        for number in range(count):
            pace(number)
            if interruption.is_asked():
                return
            yield [making.of_payload(payload, number)]
        return
    stdin = Stdin(client, interruption)
    sending.read_from(stdin.share)
    if sys.stdin.isatty() and not options["quiet"]:
        notify("each line is a message; end with Ctrl-D")
    if options["form"] == "raw":
        data = b"".join(stdin.pieces(sending.idle))
        if not interruption.is_asked():
            yield [making.of_payload(data, 0)]
        return
    for number, lines in _lines(stdin, sending.idle, pace, interruption, options):
        yield from _made(making, lines, number)


def _lines(
    stdin: Stdin,
    idle: Callable[[], None],
    pace: Callable[[int], None],
    interruption: Interruption,
    options: dict[str, Any],
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield groups of lines with the number of the first; single lines with ``--rate``."""
    number, left = 0, options["count"] or sys.maxsize
    for found in stdin.lines(idle):
        lines = found[:left]
        left -= len(lines)
        if options["rate"] is None:
            yield number, lines
        else:
            for at, line in enumerate(lines, number):
                pace(at)
                if interruption.is_asked():
                    return
                yield at, [line]
        number += len(lines)
        if not left:
            return


def _restore(
    client: Client,
    interruption: Interruption,
    sending: Sending,
    restoration: "Restoration",
    options: dict[str, Any],
) -> None:
    """Store the envelopes of stdin for ``--preserve``. Raises BadInput at an invalid line, after storing the others."""

    def idle() -> None:
        restoration.idle()
        sending.idle()

    pace = _pace(client, interruption, sending, options["rate"])
    stdin = Stdin(client, interruption)
    sending.read_from(stdin.share)
    for number, lines in _lines(stdin, idle, pace, interruption, options):
        for at, line in enumerate(lines, number + 1):
            try:
                restoration.add(line)
            except ValueError as error:
                restoration.flush()
                raise BadInput(f"line {at} of stdin: {error}") from None
    restoration.flush()
    if restoration.repeated:
        notify(f"skipped {messages(restoration.repeated)} with an ID that the input already contained")


def _made(making: Making, lines: list[bytes], number: int) -> Iterator[list[bytes] | list[Outgoing]]:
    """Yield the messages of some lines. Raises BadInput at an invalid line, after yielding those before it."""
    if making.is_plain:
        yield lines
        return
    made: list[Outgoing] = []
    for at, line in enumerate(lines, number + 1):
        try:
            made.append(making.of_line(line, at - 1))
        except ValueError as error:
            yield made
            raise BadInput(f"line {at} of stdin: {error}") from None
    yield made


def _pace(client: Client, interruption: Interruption, sending: Sending, rate: float | None) -> Callable[[int], None]:
    """Return a function that waits until message number n is due."""
    begin = time.monotonic()

    def wait(number: int) -> None:
        while rate is not None and not interruption.is_asked():
            left = begin + number / rate - time.monotonic()
            if left <= 0:
                return
            sending.idle()
            client.turn(min(left, 1.0))

    return wait

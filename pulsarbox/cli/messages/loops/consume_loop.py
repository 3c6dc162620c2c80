"""Implementation of ``consume``: open the topics at the start position, and read."""

from dataclasses import replace
from typing import Any

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.interruption import Interruption
from pulsarbox.cli.common.position_options import End, From
from pulsarbox.cli.common.terminal_text import is_coloured
from pulsarbox.cli.common.text_table import terminal_width
from pulsarbox.cli.common.topic_suggestion import suggesting
from pulsarbox.cli.connect.target import Target
from pulsarbox.cli.messages.loops.read_loop import Manner, ReadLoop
from pulsarbox.cli.messages.loops.start_position import check_place, reader, start_of
from pulsarbox.cli.messages.loops.stop_condition import StopCondition
from pulsarbox.cli.messages.message_output import form_of, is_colored
from pulsarbox.cli.messages.message_table import MessageTable
from pulsarbox.cli.messages.reading_options import END_SECONDS
from pulsarbox.client.client import Client
from pulsarbox.client.multi_topic_consumer import MultiTopicConsumer
from pulsarbox.client.partition_consumer import TYPES, Subscribing
from pulsarbox.client.places import EARLIEST, QUEUE, Start
from pulsarbox.protocol.chunks import Chunking


def manner_of(
    options: dict[str, Any],
    *,
    several_topics: bool = False,
    redelivery: bool = False,
    dead_letters: bool = False,
    **more: Any,
) -> Manner:
    """Return how to read messages, from the options. Raises Misused.

    ``several_topics``, ``redelivery`` and ``dead_letters`` select columns of tables; see MessageTable.
    """
    writes_decoded = options["output"] == "table" if options["decode"] is None else options["decode"]
    decoding = None
    if writes_decoded or options["expression"] is not None:
        from pulsarbox.cli.messages.schema_decoding import Decoding

        decoding = Decoding()
    schemas = None
    if options["output"] == "ndjson" and options["line_format"] is None:
        from pulsarbox.cli.envelope.stored_fields import SchemaLookup

        schemas = SchemaLookup()
    try:
        colors = is_coloured(options["color"]) and is_colored(options["output"], options["line_format"])
        shown = decoding if writes_decoded else None
        table = None
        if options["output"] == "table" and options["line_format"] is None:
            width = terminal_width()
            table = MessageTable(
                colors=colors,
                width=width,
                several_topics=several_topics,
                redelivery=redelivery,
                dead_letters=dead_letters,
            )
        form = form_of(options["output"], options["line_format"], shown, schemas, table=table, colors=colors)
        wanted = None
        if options["expression"] is not None:
            from pulsarbox.cli.messages.message_filter import parse_filter

            wanted = parse_filter(options["expression"], decoding)
    except ValueError as error:
        raise Misused(str(error)) from None
    progress = not options["no_progress"]
    begin = None if table is None else table.begin
    return Manner(form, wanted, begin, progress=progress, decoding=decoding, schemas=schemas, colors=colors, **more)


def consume_topics(service: Target, topics: tuple[str, ...], options: dict[str, Any]) -> None:
    """Read the topics. Raises the exit of the command unless it succeeds."""
    subscription = options["subscription"]
    timeout = options["timeout"]
    if timeout is None and options["until"].kind in (End.END, End.ID):
        timeout = END_SECONDS
    ack = options["ack"] if subscription is not None else "none"
    manner = manner_of(
        options,
        several_topics=len(topics) > 1,
        ack=ack,
        in_order=options["kind"] in ("exclusive", "failover"),
        ack_filtered=options["ack_filtered"],
        command=options["command"],
        timeout=timeout,
    )
    client = Client(service.hosts, secure=service.secure, credentials=service.credentials())
    try:
        with Interruption(client.loop) as interruption:
            consumer = _opened(client, topics, options)
            ending = StopCondition(consumer, options["until"], options["count"])
            ReadLoop(client, consumer, interruption, ending, manner).run()
            consumer.close()
    finally:
        client.close()


def _opened(client: Client, topics: tuple[str, ...], options: dict[str, Any]) -> MultiTopicConsumer:
    begin: From | None = options["begin"]
    queue = 1 if options["command"] is not None else QUEUE
    chunking = Chunking(options["pending_chunks"], acknowledge_oldest=options["ack_oldest_chunks"])
    if options["subscription"] is None:
        begin = begin or From(Start(EARLIEST))
        consumer = MultiTopicConsumer(client, replace(reader(begin.start, queue), chunking=chunking))
        for topic in topics:
            with suggesting(client, topic):
                consumer.add(topic, start_of(client, begin))
        check_place(begin, len(consumer.parts))
        return consumer
    name, kind, acknowledges = options["subscription"], TYPES[options["kind"]], options["ack"] != "none"
    subscribing = Subscribing(name, kind, queue=queue, chunking=chunking, acknowledges=acknowledges)
    consumer = MultiTopicConsumer(client, subscribing)
    for topic in topics:
        consumer.add(topic)
    if begin is not None:
        check_place(begin, len(consumer.parts))
        starts = start_of(client, begin)
        for topic, part in consumer.parts.items():
            part.seek(starts(topic))
    return consumer

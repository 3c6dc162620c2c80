"""Dead letters in Spark are grouped and filtered as in the box."""

from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from pulsarbox.broker.replay.entry_messages import InspectedMessage, open_entry
from pulsarbox.errors import Unprocessable
from pulsarbox.pipelines import Trial, function
from pulsarbox.protocol.dead_letters.fingerprint import fingerprint
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, Schema
from pulsarbox.spark.connect.schema_registry import Registry
from pulsarbox.spark.pipelines.shipped.dead_letter_rows import LetterFields, LetterRow, letter, looked
from pulsarbox.spark.pipelines.shipped.triage import _looked_at
from pulsarbox.spark.topic_segments import Reach
from pulsarbox.storage.record import Entry
from tests.unit.broker.replay.playbook import pairs

DLQ = "persistent://public/default/orders-billing-DLQ"
HOME = "persistent://public/default/orders"
NOW = 1_700_000_000_000
TOLD = {"REAL_TOPIC": HOME, "REAL_SUBSCRIPTION": "billing", "exception": "no order 17", "colour": "red"}


def row(value: bytes | None = b'{"n": 1}', **fields: Any) -> dict[str, Any]:
    at = datetime.fromtimestamp(NOW / 1000, UTC)
    usual = {"__key": b"k", "__orderingKey": None, "__topic": DLQ, "__publishTime": at, "__eventTime": at}
    place = {"__ledgerId": 3, "__entryId": 4, "__batchIndex": None, "__producerName": "p", "__sequenceId": 7}
    more = {"__messageProperties": list(TOLD.items()), "__schemaVersion": None}
    return {"value": value} | usual | place | more | fields


def in_the_box(value: bytes | None, schemas: dict[int, Schema], **fields: Any) -> InspectedMessage:
    metadata = MessageMetadata(producer_name="p", sequence_id=7, publish_time=NOW, event_time=NOW, **fields)
    metadata.partition_key, metadata.null_value = "k", value is None
    metadata.properties.extend(pairs(TOLD))
    entry = Entry(3, 4, 0, 1, 1, 1, 0, NOW, NOW, 0, 0, encode_entry(metadata, value or b""))
    (message,) = open_entry(entry, DLQ, schemas, 1 << 20).messages
    return message


def judged(asked: LetterFields, **fields: Any) -> LetterRow:
    return letter(looked(row(**fields), {}), asked.wanted())


@pytest.mark.parametrize("value", [b'{"n": 1}', b"text", b"\xff\x00", b"", None])
def test_groups_are_those_of_the_box(value: bytes | None) -> None:
    assert fingerprint(looked(row(value), {})) == fingerprint(in_the_box(value, {}))


def test_a_letter_with_numbers_that_python_has_not_is_looked_at() -> None:
    """An event time given in microseconds by mistake is in the year 55,841; a sequence ID of -1 is unsigned in the
    protocol."""
    late = NOW * 1000
    given = row(__eventTime=late * 1000, __publishTime=NOW * 1000, __sequenceId=-1)
    types = {"__eventTime": pa.timestamp("us", "UTC"), "__publishTime": pa.timestamp("us", "UTC")}
    types |= {"__messageProperties": pa.map_(pa.string(), pa.string())}
    batch = pa.RecordBatch.from_arrays([pa.array([given[name]], types.get(name)) for name in given], list(given))
    (found,) = _looked_at(
        LetterFields(filter=f"event_time == {late}"), Registry(Reach("pulsar://127.0.0.1:1")), {}, [batch]
    )
    assert found.num_rows == 1 and found.column("publishTime").to_pylist() == [NOW]
    assert found.column("__eventTime").cast(pa.int64()).to_pylist() == [late * 1000]


@pytest.mark.parametrize("batches", [[], [pa.RecordBatch.from_pydict({"unexpected": [1]})]])
def test_the_connection_for_schemas_is_closed_even_after_an_error(batches: list[pa.RecordBatch]) -> None:
    closed = []

    class Watched(Registry):
        def close(self) -> None:
            closed.append(self)

    with pytest.raises(KeyError) if batches else nullcontext():
        list(_looked_at(LetterFields(), Watched(Reach("pulsar://127.0.0.1:1")), {}, batches))
    assert len(closed) == 1


def test_a_payload_is_read_by_its_schema_as_the_box_does() -> None:
    definition = b'{"type": "record", "name": "O", "fields": [{"name": "total", "type": "int"}]}'
    schemas = {1: Schema(name="O", schema_data=definition, type=Schema.Avro)}
    version = (1).to_bytes(8, "big")
    mine = looked(row(b"\x06", __schemaVersion=version), schemas)
    assert fingerprint(mine) == fingerprint(in_the_box(b"\x06", schemas, schema_version=version))
    assert fingerprint(mine).shape == "{total: number}"


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ('props.colour == "red" and json.n == 1', True),
        ('origin == "persistent://public/default/orders" and subscription == "billing"', True),
        ('key == "k" and id == "3:4:-1:-1" and seq == 7', True),
        ('publish_time > time("-1h") and event_time == publish_time', True),
        ("replays > 0", False),
        ("size > 8 or tombstone", False),
        ('reason == "no order #"', True),
        ("", True),
    ],
)
def test_filters_are_those_of_the_box(expression: str, holds: bool) -> None:
    asked = LetterFields(expression, NOW + 1000)
    wanted = asked.wanted()
    assert wanted(looked(row(), {})) is wanted(in_the_box(b'{"n": 1}', {})) is holds


def test_a_filter_that_cannot_be_read_says_so() -> None:
    with pytest.raises(Unprocessable, match="filter: "):
        LetterFields("props.colour ==").wanted()


def test_what_a_pipeline_gave_up_is_grouped_by_the_reason_alone() -> None:
    def fails(value: Any, ctx: Any) -> None:
        raise ValueError("a price of 3")

    trial = Trial(function(inputs="orders", output="o", dead_letter="orders-billing-DLQ", retries=0)(fails))
    trial.send("x", properties={"colour": "red"})
    told = trial.dead_letters[0].properties
    found = judged(LetterFields(), __messageProperties=list(told.items()))
    assert found.of.reason == "test_dead_letter_rows.py:#: ValueError: a price of #"


def test_earlier_replays_are_counted() -> None:
    more = TOLD | {"REPLAY_JOB": "first", "REPLAY_COUNT": "2", "RECONSUMETIMES": "4"}
    assert judged(LetterFields(), __messageProperties=list(more.items())).replays == 2


def test_a_letter_of_a_batch_is_told_by_its_place_in_it() -> None:
    assert judged(LetterFields(), __batchIndex=2, __topic=f"{DLQ}-partition-1").message_id == "3:4:1:2"

"""Compression at rest: the policy level that applies, and when changes take effect."""

from typing import Any

import pytest

from pulsarbox.broker.compression_policy import CompressionPolicy
from pulsarbox.broker.persistence.housekeeping import Reclaim
from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from pulsarbox.storage.compression.topic_usage import CompressedTopic
from tests.unit.broker.playbook import TOPIC, Box

OTHER = "persistent://public/default/other"


def published(box: Box, topic: str = TOPIC, count: int = 5) -> None:
    client = box.client()
    client.producer(1, topic)
    for number in range(count):
        client.send(number, b"the same text again and again, " * 8)
    box.turn()


def checkpoint(box: Box) -> None:
    box.broker.commits.ask_checkpoint()
    box.turn()


def found(box: Box) -> dict[str, str]:
    """Return the codec of each topic with compressed data."""
    return {each.topic: each.codec for each in box.broker.store.compressed()}


def set_topic(box: Box, codec: str | None, topic: str = TOPIC, **more: Any) -> None:
    box.broker.policies.set_topic(parse_topic(topic), "compressionAtRest", codec, box.now, **more)
    box.turn()


def set_namespace(box: Box, codec: str | None) -> None:
    box.broker.tenants.set_policy("public/default", "compression_at_rest", codec, box.now)
    box.turn()


def test_nothing_is_compressed_unless_somebody_says_so() -> None:
    box = Box()
    published(box)
    checkpoint(box)
    assert found(box) == {}


def test_topic_before_namespace_before_broker() -> None:
    box = Box(compressionAtRest="zlib")
    published(box)
    published(box, OTHER)
    checkpoint(box)
    assert found(box) == {TOPIC: "zlib", OTHER: "zlib"}
    set_namespace(box, "zstd")
    assert found(box) == {TOPIC: "zstd", OTHER: "zstd"}
    set_topic(box, "zlib")
    assert found(box) == {TOPIC: "zlib", OTHER: "zstd"}
    set_topic(box, "zstd", OTHER, everywhere=True)
    set_namespace(box, "none")
    set_topic(box, None)
    assert found(box) == {TOPIC: "zlib", OTHER: "zstd"}, "what is compressed stays so"


def test_none_of_a_topic_wins_over_its_namespace() -> None:
    box = Box()
    published(box)
    published(box, OTHER)
    set_topic(box, "none")
    set_namespace(box, "zlib")
    assert found(box) == {OTHER: "zlib"}


def test_a_change_asks_for_a_checkpoint_by_itself() -> None:
    box = Box()
    published(box)
    box.broker.configuration.update("compressionAtRest", "zlib", box.now)
    box.turn()
    assert found(box) == {TOPIC: "zlib"}
    (row,) = box.broker.store.compressed()
    assert isinstance(row, CompressedTopic)
    assert row.entries == 5
    assert row.ratio > 2
    assert row.document()["stored"] < row.document()["bytes"]


def test_what_is_not_in_the_rows_of_a_checkpoint_yet_does_not_count() -> None:
    asked: list[int] = []
    at_rest = CompressionPolicy(Settings(compressionAtRest="none"), frozenset)
    at_rest.changed.add(lambda: asked.append(1))

    def generation() -> int:
        compressing = at_rest.compressing(bool)
        assert compressing is not None
        return compressing.generation

    before = generation()
    at_rest.policies_changed({}, {"compression_at_rest": "zstd"})
    assert asked == [1]
    at_rest.policies_changed({"retention_policies": {}}, {})
    at_rest.policies_changed({"compressionAtRest": "zstd"}, {"compressionAtRest": "zstd"})
    assert asked == [1]
    assert generation() == before
    at_rest.made()
    at_rest.policies_changed({}, {"globalPolicies": {"compressionAtRest": "zstd"}})
    at_rest.stored()
    assert generation() == before + 1


def test_a_plugin_that_is_disabled_compresses_nothing() -> None:
    box = Box(compressionAtRest="zlib", pluginsDisabled="compression:zlib")
    published(box)
    checkpoint(box)
    assert found(box) == {}


@pytest.mark.parametrize("name", ["zstdd", "", "../x"])
def test_a_codec_that_is_not_there_is_refused(name: str) -> None:
    from pulsarbox.errors import PreconditionFailed

    box = Box()
    with pytest.raises(PreconditionFailed, match="compressionAtRest"):
        box.broker.configuration.update("compressionAtRest", name, box.now)


def test_a_box_that_stops_begins_no_step_and_ends_the_one_under_way() -> None:
    box = Box(auto=False, compressionAtRest="zlib")
    at_rest = box.broker.at_rest
    under_way = at_rest.compressing(bool)
    assert under_way is not None
    assert not under_way.hurried()
    box.broker.drain(box.now)
    assert under_way.hurried()
    assert at_rest.compressing(bool) is None
    housekeeping = box.broker.commits.housekeeping
    housekeeping.ask_reclaim()
    while (chore := box.broker.take_chore(box.now)) is None:
        assert box.commit()
    assert not isinstance(chore, Reclaim) or chore.compressing is None


def test_a_checkpoint_that_could_be_written_hurries_the_step() -> None:
    box = Box(auto=False)
    while box.commit() or box.chore():
        pass
    housekeeping = box.broker.commits.housekeeping
    housekeeping.ask_reclaim()
    chore = box.broker.take_chore(box.now)
    assert isinstance(chore, Reclaim)
    assert chore.compressing is not None
    assert not chore.compressing.hurried()
    housekeeping.ask_checkpoint()
    while box.commit():
        pass
    assert housekeeping.is_ready
    assert chore.compressing.hurried()


def test_a_reclaim_without_choices_is_one_of_nothing() -> None:
    assert Reclaim().compressing is None

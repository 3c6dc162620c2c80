"""Topics selected by the options, as a broker lists them."""

from collections.abc import Sequence
from typing import Any

from pulsarbox.spark.connect.broker_api import LATEST
from pulsarbox.spark.options import BATCH, SparkOptions, parse
from pulsarbox.spark.source.topic_selection import is_meant, topics
from pulsarbox.spark.topic_segments import BEGINNING, Lost, ReadPosition

ORDERS = "persistent://public/default/orders"


class Broker:
    """Broker with the topic orders in two partitions."""

    def partitions(self, topic: str) -> list[str]:
        return [f"{topic}-partition-{at}" for at in range(2)] if topic == ORDERS else [topic]

    def all_bounds(self, found: Sequence[str]) -> dict[str, Any]:
        return dict.fromkeys(found)


def options(**given: str) -> SparkOptions:
    return parse(given, BATCH)


def test_a_partition_that_is_named_beside_its_topic_is_read_once() -> None:
    both = options(topics="orders,orders-partition-1")
    assert topics(Broker(), both) == [f"{ORDERS}-partition-0", f"{ORDERS}-partition-1"]  # type: ignore[arg-type]


def test_a_topic_that_a_checkpoint_has_is_still_meant_or_not() -> None:
    for some in (options(topic="orders"), options(topicsPattern="public/default/ord.*")):
        assert is_meant(some, f"{ORDERS}-partition-1")
        assert not is_meant(some, "persistent://public/default/bills")
        assert not is_meant(some, "persistent://public/other/orders")


def test_what_is_lost_to_the_end_says_so() -> None:
    assert str(Lost(ORDERS, ReadPosition(3, 4), LATEST, "are gone")) == f"{ORDERS}: entries from 3:4 on are gone"
    assert "from -1:-1 up to 3:4 (not included)" in str(Lost(ORDERS, BEGINNING, ReadPosition(3, 4), "are gone"))

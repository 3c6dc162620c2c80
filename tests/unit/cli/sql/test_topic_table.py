"""Topics as tables: errors name the options of the command."""

import pytest

from pulsarbox.cli.common.exits import Failed
from pulsarbox.cli.sql.topic_table import TopicCatalog
from pulsarbox.spark.topic_segments import DataLost, Lost, Reach, ReadPosition


def test_messages_that_are_lost_before_a_query_starts_can_be_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Lost("persistent://public/default/t", ReadPosition(2, 5), ReadPosition(8, 0), "no longer exist")

    def trimmed(self: TopicCatalog) -> None:
        raise DataLost(lost)

    monkeypatch.setattr(TopicCatalog, "_open", trimmed)
    with pytest.raises(Failed, match=r"t: entries from 2:5 up to 8:0 .* no longer exist\. .* with --skip-lost$"):
        TopicCatalog(Reach(""), None, lambda _: None).table("t")

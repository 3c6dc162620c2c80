"""Settings that are changed while the box runs."""

import logging

import pytest

from pulsarbox.errors import PreconditionFailed
from tests.unit.broker.playbook import TOPIC, Box


def creates(box: Box) -> bool:
    return box.broker.core.settings.allowAutoTopicCreation


def test_a_change_holds_at_once_and_over_a_restart() -> None:
    box = Box(allowAutoTopicCreation=True)
    box.broker.configuration.update("allowAutoTopicCreation", "false", box.now)
    box.turn()
    assert not creates(box)
    client = box.client()
    client.ask("producer", topic=TOPIC, producer_id=1, request_id=1)
    assert client.take("error").message.startswith("Topic")
    box = box.restart()
    assert box.broker.configuration.values() == {"allowAutoTopicCreation": "false"}
    assert not creates(box)
    box.broker.configuration.delete("allowAutoTopicCreation", box.now)
    box.turn()
    assert creates(box)
    assert box.restart().broker.configuration.values() == {}


def test_subscriptions_that_are_there_go_by_the_new_bounds() -> None:
    box = Box()
    core = box.broker.core
    for name, value in (
        ("dispatcherMaxReadBatchSize", 7),
        ("dispatcherMaxReadSizeBytes", 70_000),
        ("dispatcherMaxRoundRobinBatchSize", 3),
    ):
        box.broker.configuration.update(name, str(value), box.now)
    assert (core.bounds.read_entries, core.bounds.read_bytes, core.bounds.turn_entries) == (7, 70_000, 3)
    box.broker.configuration.update("managedLedgerCacheSizeMB", "5", box.now)
    assert core.commits.tail_cache.limit == 5 << 20


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("nonsense", "1", "Can't update non-dynamic configuration: there is no setting nonsense"),
        ("allowAutoTopicCreatio", "1", r"did you mean allowAutoTopicCreation\?"),
        ("brokerServicePort", "1", "Can't update non-dynamic configuration: brokerServicePort is read at the start"),
        ("allowAutoTopicCreation", "maybe", "Can't update allowAutoTopicCreation: expected true or false"),
        ("dispatcherMaxReadBatchSize", "0", "Can't update dispatcherMaxReadBatchSize: expected a whole number"),
        ("subscriptionTypesEnabled", "Sharde", "Can't update subscriptionTypesEnabled: .*did you mean Shared"),
    ],
)
def test_what_cannot_be_changed(name: str, text: str, reason: str) -> None:
    box = Box()
    before = box.broker.core.settings
    with pytest.raises(PreconditionFailed, match=reason):
        box.broker.configuration.update(name, text, box.now)
    assert box.broker.configuration.values() == {}
    assert box.broker.core.settings == before


def test_a_stored_value_that_does_not_do_any_more_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    box = Box()
    box.broker.configuration.update("dispatcherMaxReadBatchSize", "7", box.now)
    box.broker.core.commits.put_row("dynamic", box.broker.configuration.values() | {"gone": "1", "maxMessageSize": "x"})
    box.turn()
    with caplog.at_level(logging.WARNING):
        box = box.restart()
    assert box.broker.core.settings.dispatcherMaxReadBatchSize == 7
    assert [record.getMessage().split()[3] for record in caplog.records] == ["gone", "maxMessageSize"]

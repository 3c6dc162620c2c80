"""The number of copies wanted of a ledger, from the rows of a checkpoint."""

from typing import Any

from pulsarbox.broker.policies.wanted_copies import WantedCopies
from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from pulsarbox.storage.engine import Rows
from tests.unit.broker.playbook import Box, Client

OWN = "persistent://public/default/own"
OTHER = "persistent://public/default/other"
DEFAULTS: dict[str, Any] = {
    "managedLedgerDefaultEnsembleSize": 5,
    "managedLedgerDefaultWriteQuorum": 4,
    "managedLedgerDefaultAckQuorum": 1,
}


def persistence(write: int) -> dict[str, Any]:
    return {
        "bookkeeperEnsemble": 5,
        "bookkeeperWriteQuorum": write,
        "bookkeeperAckQuorum": 1,
        "managedLedgerMaxMarkDeleteRate": 0.0,
    }


def rows_of(box: Box) -> Rows:
    """Checkpoint everything, and return the rows."""
    box.broker.commits.ask_checkpoint()
    box.turn()
    return box.open_engine().recover().rows


def ledger_of(box: Box, client: Client, topic: str) -> int:
    return client.publish(1, topic)[0][0]


def test_a_ledger_has_the_write_quorum_of_its_topic_namespace_or_box() -> None:
    box = Box(**DEFAULTS)
    client = box.client()
    own, other = ledger_of(box, client, OWN), ledger_of(box, client, OTHER)
    wanted = WantedCopies(Settings(**DEFAULTS))
    assert [wanted(rows_of(box))(each) for each in (own, other, 999)] == [4, 4, 4]
    box.broker.tenants.set_policy("public/default", "persistence", persistence(2), box.now)
    box.broker.policies.set_topic(parse_topic(OWN), "persistence", persistence(3), box.now)
    assert [wanted(rows_of(box))(each) for each in (own, other, 999)] == [3, 2, 4]


def test_topic_policies_that_are_disabled_do_not_count() -> None:
    box = Box()
    own = ledger_of(box, box.client(), OWN)
    box.broker.policies.set_topic(parse_topic(OWN), "persistence", persistence(3), box.now)
    rows = rows_of(box)
    assert WantedCopies(Settings())(rows)(own) == 3
    assert WantedCopies(Settings(topicLevelPoliciesEnabled=False))(rows)(own) == 1


def test_a_compacted_ledger_has_the_write_quorum_of_its_topic() -> None:
    box = Box()
    client = box.client()
    client.producer(1, OWN)
    for number in range(3):
        client.send(number, partition_key="k")
    topic = box.broker.topics.persistent(OWN, box.now)
    assert topic is not None
    box.broker.policies.set_topic(parse_topic(OWN), "persistence", persistence(3), box.now)
    topic.compaction.start(box.now)
    box.turn()
    box.advance(1)
    assert topic.compaction.view is not None
    assert WantedCopies(Settings())(rows_of(box))(topic.compaction.view.ledger_id) == 3

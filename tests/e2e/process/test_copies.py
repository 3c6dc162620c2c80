"""Copies of messages in several data directories, as the official client sees them while one is taken away."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from pulsarbox import PulsarBox
from tests.e2e.clients import connect, numbered, read_to_end


@pytest.fixture
def box(tmp_path: Path) -> Iterator[PulsarBox]:
    with PulsarBox(
        dataDirectories=",".join(str(tmp_path / name) for name in ("a", "b")),
        managedLedgerDefaultEnsembleSize=2,
        managedLedgerDefaultWriteQuorum=2,
        managedLedgerDefaultAckQuorum=1,
    ) as made:
        yield made


def persistence(ack: int) -> dict[str, Any]:
    return {
        "bookkeeperEnsemble": 2,
        "bookkeeperWriteQuorum": 2,
        "bookkeeperAckQuorum": ack,
        "managedLedgerMaxMarkDeleteRate": 0,
    }


def ledgers(box: PulsarBox, topic: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = box.admin(
        "GET", f"/admin/v2/persistent/public/default/{topic}/internalStats?metadata=true"
    )["ledgers"]
    return found


def read_all(client: pulsar.Client, topic: str) -> list[bytes]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = read_to_end(reader)
    reader.close()
    return found


def test_messages_have_copies_and_wait_for_those_that_their_policy_asks_for(box: PulsarBox, tmp_path: Path) -> None:
    box.admin("PUT", "/admin/v2/persistent/public/default/both")
    box.admin("POST", "/admin/v2/persistent/public/default/both/persistence", persistence(2))
    client = connect(box.service_url)
    one, both = client.create_producer("one"), client.create_producer("both", send_timeout_millis=2000)
    for number in range(10):
        one.send(b"%d" % number)
        both.send(b"%d" % number)
    names = f"[{tmp_path / 'a'}, {tmp_path / 'b'}]"
    assert f"ensembles={{0={names}}}" in ledgers(box, "both")[0]["metadata"]
    assert "ensembleSize=2, writeQuorumSize=2, ackQuorumSize=2" in ledgers(box, "both")[0]["metadata"]

    (tmp_path / "b").rename(tmp_path / "elsewhere")
    one.send(b"10")  # its policy waits for one copy
    with pytest.raises(pulsar.PulsarException):
        both.send(b"10")
    both.close()
    assert read_all(client, "one") == numbered(11)
    assert read_all(client, "both")[:10] == numbered(10)

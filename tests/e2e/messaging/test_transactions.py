"""Transactions with a box in a real process: transfers between accounts while the box is killed."""

import json
import os
import random
import threading
import time

import pulsar
import pytest

from tests.e2e.clients import connect, read_to_end
from tests.e2e.commands import run
from tests.e2e.transacting import Transacting
from tests.tools.box import BoxProcess

ACCOUNTS = ["persistent://public/default/giver", "persistent://public/default/taker"]
KILLS = int(os.environ.get("TRANSFER_KILLS", "1"))
"""Number of kills of the box; 25 take a minute."""


class Transfers(threading.Thread):
    """Transfers of money until the box is killed, and whether each was committed, if a response arrived."""

    def __init__(self, url: str, seed: int) -> None:
        super().__init__()
        self._url = url
        self._dice = random.Random(seed)
        self.seed = seed
        self.known: dict[str, bool] = {}
        self.begun: set[str] = set()

    def run(self) -> None:
        """Transfer money until the box is killed."""
        try:
            with Transacting(self._url, ACCOUNTS) as client:
                for number in range(100_000):
                    self._transfer(client, f"{self.seed}-{number}")
        except (OSError, AssertionError):
            pass  # it was killed

    def _transfer(self, client: Transacting, name: str) -> None:
        amount, commit = self._dice.randrange(1, 100), self._dice.random() < 0.7
        bits = client.begin()
        self.begun.add(name)
        for topic, sign in zip(ACCOUNTS, (-1, 1), strict=True):
            client.send(bits, topic, json.dumps([name, sign * amount]).encode())
        client.end(bits, commit=commit)
        self.known[name] = commit


def booked(url: str, topic: str) -> dict[str, int]:
    """Return the amounts of an account by transfer, as a reader receives them."""
    client = connect(url)
    try:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        found = [json.loads(body) for body in read_to_end(reader)]
    finally:
        client.close()
    amounts = dict(found)
    assert len(amounts) == len(found), "a transfer is booked twice"
    return amounts


@pytest.mark.timeout(60 + 20 * KILLS)
def test_the_sum_never_changes(own_box: BoxProcess) -> None:
    own_box.start()
    known: dict[str, bool] = {}
    begun: set[str] = set()
    dice = random.Random(7)
    for life in range(KILLS):
        publishers = [Transfers(own_box.url, 10 * life + number) for number in range(2)]
        for each in publishers:
            each.start()
        while not all(len(each.known) > 3 for each in publishers):
            time.sleep(0.005)
        time.sleep(dice.random() * 0.1)
        own_box.kill()
        own_box.process = None
        for each in publishers:
            each.join()
            known |= each.known
            begun |= each.begun
        own_box.start()
        where = ("--admin-url", own_box.web_url)
        still_open = run("txn", "list", "-o", "name", *where).stdout.decode().split()
        if still_open:
            run("txn", "abort", *still_open, "--yes", *where)
        given, taken = (booked(own_box.url, topic) for topic in ACCOUNTS)
        assert {name: -amount for name, amount in given.items()} == taken, "a transfer is booked by half"
        assert {name for name, committed in known.items() if committed} <= taken.keys()
        assert not {name for name, committed in known.items() if not committed} & taken.keys()
        assert taken.keys() <= begun

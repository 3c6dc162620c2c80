"""The policy ``persistence`` of a box with several data directories: it is applied, and warns of missing ones."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from pulsarbox.broker.host import Host
from pulsarbox.errors import WARNING_HEADER
from tests.unit.broker.persistence.ensemble_box import FakeBookies
from tests.unit.server.http.harness import HttpBox, running_box

N = "/namespaces/public/default"
T = "/persistent/public/default/t"


def several() -> AbstractAsyncContextManager[HttpBox]:
    """A box with two data directories."""
    return running_box(host=Host(bookies=FakeBookies(2)))


def persistence(ensemble: int, write: int, ack: int) -> dict[str, Any]:
    return {
        "bookkeeperEnsemble": ensemble,
        "bookkeeperWriteQuorum": write,
        "bookkeeperAckQuorum": ack,
        "managedLedgerMaxMarkDeleteRate": 0.0,
    }


CUT = "persistence: the ensemble of 3 is cut to the 2 data directories that exist"
REJECTED = (
    "persistence: messages are rejected: NotEnoughBookies: its persistence policy asks for 3 copies"
    " (bookkeeperWriteQuorum), the box has 2 data directories: add some, or lower it"
)


@pytest.mark.parametrize(
    ("numbers", "warning"),
    [((2, 2, 2), None), ((2, 1, 1), None), ((3, 2, 2), CUT), ((3, 3, 1), REJECTED), ((3, 3, 3), REJECTED)],
)
async def test_numbers_that_the_directories_cannot_meet_are_stored_with_a_warning(
    numbers: tuple[int, int, int], warning: str | None
) -> None:
    async with several() as box:
        await box.put(T)
        for of in (N, T):
            got = await box.post(f"{of}/persistence", persistence(*numbers))
            assert (got.status, got.headers.get(WARNING_HEADER)) == (204, warning)
            assert (await box.get(f"{of}/persistence")).value == persistence(*numbers)
        made = await box.put("/namespaces/public/n2", {"persistence": persistence(*numbers)})
        assert (made.status, made.headers.get(WARNING_HEADER)) == (204, warning)


async def test_the_policy_in_effect_is_shown_as_applied() -> None:
    async with several() as box:
        got = await box.ask("GET", "/pulsarbox/v1/policies/public/default")
        assert got.value["persistence"]["stored_only"] == ""


async def test_a_box_with_one_directory_stores_the_numbers_without_effect() -> None:
    async with running_box() as box:
        got = await box.post(f"{N}/persistence", persistence(3, 3, 3))
        assert got.headers[WARNING_HEADER] == (
            "persistence: stored, without effect: a box stores one copy of each message if it has one data directory"
        )
        assert (
            "one data directory"
            in (await box.ask("GET", "/pulsarbox/v1/policies/public/default")).value["persistence"]["stored_only"]
        )

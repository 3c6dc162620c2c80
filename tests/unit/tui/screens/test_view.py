"""Screens with one table: a filter that the box refuses."""

import json
from collections.abc import Mapping

import pytest

from pulsarbox.client.transport.web import Reply
from tests.unit.tui.driving import WIDE, dashboard
from tests.unit.tui.fake import FakeBox


class RefusingBox(FakeBox):
    """A box that refuses a filter by an unknown field."""

    def _view(self, name: str, query: Mapping[str, str]) -> Reply:
        if "nosuch" in query.get("filter", ""):
            return Reply(400, {}, json.dumps({"reason": "unknown field 'nosuch'"}).encode())
        return super()._view(name, query)


@pytest.mark.parametrize("keys", [(), ("enter",)])
async def test_a_filter_that_the_box_refuses_says_how_to_change_it(keys: tuple[str, ...]) -> None:
    async with dashboard(RefusingBox(), WIDE, place="subscriptions") as driver:
        await driver.press(*keys)
        await driver.until(lambda: driver.table.count)
        await driver.press("slash")
        await driver.type("nosuch > 5")
        await driver.press("enter")
        told = "unknown field 'nosuch'; press / to change the filter, esc to remove it"
        await driver.until(lambda: told in driver.text() and "not applied" in driver.text())
        await driver.press("escape")
        await driver.until(lambda: told not in driver.text())

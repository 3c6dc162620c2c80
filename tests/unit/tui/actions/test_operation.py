"""Request paths of operations on a row."""

import pytest

from pulsarbox.server.http.framework.routes import split_path
from pulsarbox.server.http.route_table import all_routes
from pulsarbox.tui.actions.operation import of_subscription
from pulsarbox.tui.screens.maps.subscription_maps import map_target


@pytest.mark.parametrize("name", ["a+b", "a%2Fb", "a/b", "100%", "ü ?#;"])
def test_a_subscription_is_meant_whatever_its_name(name: str) -> None:
    row = {"topic": "persistent://public/default/orders", "subscription": name}
    for method, path in (("POST", of_subscription(row, "skip_all")), ("GET", map_target("cursor", row))):
        found = all_routes().find(method, split_path(path))
        assert found is not None
        assert (found.path["topic"], found.path["subscription"]) == ("orders", name)

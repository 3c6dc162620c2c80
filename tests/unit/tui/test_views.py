"""The definitions of tables."""

import pytest

from pulsarbox.expressions import Language
from pulsarbox.protocol.dead_letters.message_filter import message_language
from pulsarbox.tui import views
from pulsarbox.tui.screens.maps.key_map import KeyMapScreen
from pulsarbox.tui.screens.view import FILTER_HINT
from pulsarbox.tui.views import TableView
from tests.unit.tui.driving import SMALL

SHOWN = (*views.VIEWS.values(), views.GROUPS, views.MESSAGES, KeyMapScreen.view)


def language_of(view: TableView) -> Language:
    """A language with the columns of a table only; the box may know further names."""
    keys = {column.key for column in view.columns}
    return Language(lambda name: (lambda row: row.get(name)) if name in keys else None, lambda name, path: None, "")


@pytest.mark.parametrize("view", SHOWN, ids=lambda view: view.name)
def test_the_example_of_a_filter_uses_columns_of_its_table_and_fits(view: TableView) -> None:
    language = message_language() if view is views.MESSAGES else language_of(view)
    language.parse(view.example, 0)
    assert len(FILTER_HINT + view.example) < SMALL[0] - 2

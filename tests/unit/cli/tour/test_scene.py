"""The declaration of the tour is one that a box accepts."""

from pulsarbox.cli.tour.scene import INVOICES, INVOICES_A_SECOND, ORDERS, SCENE
from pulsarbox.cli.tour.traffic import PARTICIPANTS, SteadyProducer
from pulsarbox.names import parse_topic
from tests.unit.declaration.test_declaration_parser import parsed


def test_it_is_accepted() -> None:
    subscriptions = parsed(SCENE).topics[parse_topic(ORDERS)].subscriptions
    assert set(subscriptions) == {"billing", "shipping", "fraud-check"}


def test_invoices_are_throttled() -> None:
    (invoices,) = [each for each in PARTICIPANTS if isinstance(each, SteadyProducer) and each.topic == INVOICES]
    assert invoices.a_second > INVOICES_A_SECOND

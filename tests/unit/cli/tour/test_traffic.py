"""Sample traffic of the tour."""

import json
import subprocess
import sys

from pulsarbox.cli.tour.traffic import PARTICIPANTS, SteadyProducer, end, is_rejected, order


def test_an_order_has_its_customer_as_key() -> None:
    message = order(7)
    assert message.payload is not None
    value = json.loads(message.payload)
    assert (value["order"], value["customer"]) == (7, message.key)


def test_some_orders_are_rejected() -> None:
    assert [number for number in range(1, 100) if is_rejected(number)] == [40, 80]


def test_every_topic_with_traffic_has_a_producer() -> None:
    sent = {each.topic for each in PARTICIPANTS if isinstance(each, SteadyProducer)}
    assert {each.topic for each in PARTICIPANTS} == sent


def test_a_process_is_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        process.terminate()
        process.wait()
        end(process.pid)  # is gone: no error
    assert process.returncode == -15

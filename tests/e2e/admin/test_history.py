"""History: live views of the time before the box was killed."""

import json
import urllib.error
import urllib.request
from typing import Any

from tests.e2e.clients import connect, until
from tests.tools.box import BoxProcess

TOPIC = "persistent://public/default/orders"


def told(box: BoxProcess, path: str) -> Any:
    try:
        with urllib.request.urlopen(f"{box.web_url}/pulsarbox/v1/{path}", timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def backlogs(box: BoxProcess, at: int) -> dict[str, int]:
    found = told(box, f"top/subscriptions?at={at}")
    return {} if found is None else {each["topic"]: each["backlog"] for each in found["rows"]}


def test_the_backlog_of_before_the_kill(own_box: BoxProcess) -> None:
    own_box.data.parent.joinpath("pulsarbox.toml").write_text("[recording]\nhistoryIntervalSeconds = 1\n")
    own_box.start()
    client = connect(own_box.url)
    client.subscribe(TOPIC, "s")
    producer = client.create_producer(TOPIC)
    for number in range(7):
        producer.send(b"%d" % number)
    until(lambda: backlogs(own_box, 1 << 60).get(TOPIC) == 7)
    then = told(own_box, "history")["to"]
    client.close()
    own_box.kill()
    own_box.start()
    admin = urllib.request.Request(
        f"{own_box.web_url}/admin/v2/persistent/public/default/orders/subscription/s/skip_all", method="POST"
    )
    urllib.request.urlopen(admin, timeout=60).close()
    until(lambda: backlogs(own_box, 1 << 60).get(TOPIC, 7) == 0)
    assert backlogs(own_box, then) == {TOPIC: 7}
    history = told(own_box, "history")
    assert history["from"] <= then < history["to"]
    assert then in history["frames"]
    assert told(own_box, f"top/overview?at={then}")["totals"]["backlog"] == 7
    assert own_box.stop() == 0

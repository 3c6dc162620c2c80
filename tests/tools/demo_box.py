"""Box under a load that exercises the whole dashboard, for its screenshots.

``python -m tests.tools.demo_box URL WEB_URL SECONDS`` generates the load until stopped, with the official client.
Topics have different publish rates, delayed messages and blocked keys. One consumer is slow, another never
acknowledges. One subscription has no consumers, another has a rate limit. Jobs replay dead letters of several kinds.
"""

import json
import logging
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pulsar

from pulsarbox.client.transport.web import Web
from tests.tools.box import admin

RATES = {"orders": 120, "payments": 60, "clicks": 400, "audit": 15, "emails": 30}
"""Messages per second by topic."""
UNWANTED = 9
"""Every email with this interval is dead-lettered."""
REASONS = ("TimeoutError: mail-{} has not answered for 30 s", "ValueError: '{}' is no address")


class Load:
    """Clients in threads."""

    def __init__(self, url: str, web_url: str) -> None:
        self.web_url = web_url
        self.ending = threading.Event()
        self._client = pulsar.Client(url, logger=_quiet())
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Set limits, and start all threads."""
        for topic in RATES:
            self._client.create_producer(_full(topic)).close()
        self._limits()
        self._consumers()
        for topic, rate in RATES.items():
            self._run(self._publish, topic, rate)
        self._run(self._tell_of_pipelines)
        self._run(self._put_back)

    def stop(self) -> None:
        """Stop all threads."""
        self.ending.set()
        for thread in self._threads:
            thread.join(10)
        self._client.close()

    def _run(self, work: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _limits(self) -> None:
        slow = {"dispatchThrottlingRateInMsg": 40, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 1}
        admin(self.web_url, "POST", "persistent/public/default/clicks/subscriptionDispatchRate", json.dumps(slow))
        publish = {"publishThrottlingRateInMsg": 80, "publishThrottlingRateInByte": -1}
        admin(self.web_url, "POST", "persistent/public/default/orders/publishRate", json.dumps(publish))
        quota = {"limitSize": 2_000_000, "policy": "consumer_backlog_eviction"}
        admin(self.web_url, "POST", "persistent/public/default/audit/backlogQuota", json.dumps(quota))

    def _consumers(self) -> None:
        kinds = pulsar.ConsumerType
        self._run(self._consume, "orders", "billing", kinds.Shared, 0.0)
        self._run(self._consume, "orders", "analytics", kinds.Exclusive, 0.05)
        self._run(self._consume, "clicks", "rollup", kinds.Shared, 0.0)
        self._run(self._consume, "payments", "ledger", kinds.Failover, 0.0)
        self._run(self._hoard, "payments", "fraud")
        self._run(self._consume, "emails", "sender", kinds.Shared, 0.0)
        for each in range(2):
            self._run(self._consume, "orders", "per-customer", kinds.KeyShared, 0.0 if each else None, 50)
        self._client.subscribe(_full("audit"), "archive").close()
        policy = pulsar.ConsumerDeadLetterPolicy(max_redeliver_count=2)
        self._run(self._reject, "emails", "spam-check", policy)

    def _publish(self, topic: str, rate: int) -> None:
        producer = self._client.create_producer(_full(topic), block_if_queue_full=True)
        dice = random.Random(topic)
        number = 0
        while not self.ending.wait(0.1):
            for _ in range(max(rate // 10, 1)):
                number += 1
                event = {"id": number, "customer": dice.randrange(40), "amount": round(dice.uniform(1, 500), 2)}
                properties = {"source": "shop", "attempt": str(number % 3)}
                if topic == "emails" and number % UNWANTED == 0:  # a failing worker reports the cause
                    properties["exception"] = REASONS[number % 4 == 0].format(number)
                later = 3_600_000 if topic == "emails" and number % 7 == 0 else None
                producer.send_async(
                    json.dumps(event).encode(),
                    callback=None,
                    partition_key=f"customer-{event['customer']}",
                    properties=properties,
                    deliver_at=int(time.time() * 1000) + later if later else None,
                )

    def _consume(self, topic: str, name: str, kind: Any, pause: float | None, queue: int = 100) -> None:
        """Consume a subscription; without a ``pause``, stop at the hundredth message without acknowledging it."""
        consumer = self._client.subscribe(_full(topic), name, consumer_type=kind, receiver_queue_size=queue)
        taken = 0
        while not self.ending.is_set():
            try:
                message = consumer.receive(500)
            except pulsar.Timeout:
                continue
            taken += 1
            if pause is None and taken == 100:
                self.ending.wait()
            if pause:
                self.ending.wait(pause)
            consumer.acknowledge(message)

    def _web(self) -> Web:
        host, _, port = self.web_url.rpartition("/")[2].rpartition(":")
        return Web([(host, int(port))])

    def _put_back(self) -> None:
        """Replay dead letters like an operator: a dry run, then to the original topic, then to another topic."""
        web, letters, elsewhere = self._web(), _full("emails-spam-check-DLQ"), _full("emails-again")
        self._client.subscribe(elsewhere, "triage").close()
        path = "/pulsarbox/v1/top/deadletters?limit=9&filter=messages%3E40"
        self._wait_for(lambda: any(row["topic"] == letters for row in _asked(web, "GET", path)["rows"]))
        for more in (
            {"dryRun": True},
            {"rate": 10, "filter": 'contains(reason, "Timeout")'},
            {"rate": 0.25, "filter": "replays == 0", "target": elsewhere},
        ):
            if self.ending.is_set():
                return
            job = {"kind": "dlq-replay", "topic": letters, "subscription": "dead-letters", **more}
            begun = f"/pulsarbox/v1/jobs/{_asked(web, 'POST', '/pulsarbox/v1/jobs', job)['id']}"
            self._wait_for(lambda begun=begun: _asked(web, "GET", begun)["state"] != "running")  # type: ignore[misc]

    def _wait_for(self, holds: Callable[[], bool]) -> None:
        while not self.ending.is_set() and not holds():
            self.ending.wait(0.5)

    def _tell_of_pipelines(self) -> None:
        """Report the status of pipelines as Spark runners do: two queries that run, and one that has failed."""
        web = self._web()
        began = int(time.time() * 1000) - 5_400_000
        runner = {"master": "local[2]", "host": "worker-1", "pid": 4711, "startedAt": began}
        lag = 0
        while not self.ending.wait(2.0):
            lag = (lag + 37) % 400
            totals = _query("by_customer", "orders", _full("totals"), lag=lag, rowsPerSecond=118.5, batch=8412)
            archive = _query("archive", "clicks", "parquet:/data/clicks", lag=2 * lag, rowsPerSecond=396.0, batch=902)
            error = "ValueError: 'customer-7' is no address\n  in send of mailer.py, line 12: smtp.send(value)"
            mailer = _query("send", "emails", _full("sent"), state="failed", lag=840, deadLetters=3, lastError=error)
            for name, queries in (("totals", [totals, archive]), ("mailer", [mailer])):
                told = json.dumps({"queries": queries, **runner}).encode()
                web.exchange("PUT", f"/pulsarbox/v1/pipelines/{name}", told)

    def _hoard(self, topic: str, name: str) -> None:
        consumer = self._client.subscribe(_full(topic), name, receiver_queue_size=50)
        while not self.ending.is_set():
            try:
                consumer.receive(500)
            except pulsar.Timeout:
                continue

    def _reject(self, topic: str, name: str, policy: Any) -> None:
        consumer = self._client.subscribe(
            _full(topic),
            name,
            consumer_type=pulsar.ConsumerType.Shared,
            negative_ack_redelivery_delay_ms=200,
            dead_letter_policy=policy,
        )
        while not self.ending.is_set():
            try:
                message = consumer.receive(500)
            except pulsar.Timeout:
                continue
            if json.loads(message.data())["id"] % UNWANTED == 0:
                consumer.negative_acknowledge(message)
            else:
                consumer.acknowledge(message)


def _asked(web: Web, method: str, path: str, body: object = None) -> Any:
    return json.loads(web.exchange(method, path, None if body is None else json.dumps(body).encode()).body)


def _query(name: str, topic: str, output: str, state: str = "running", **more: Any) -> dict[str, Any]:
    return {"query": name, "state": state, "inputs": [_full(topic)], "output": output, "lastBatchMs": 640, **more}


def _full(topic: str) -> str:
    return f"persistent://public/default/{topic}"


def _quiet() -> logging.Logger:
    logger = logging.getLogger("demo")
    logger.setLevel(logging.ERROR)
    return logger


if __name__ == "__main__":
    load = Load(sys.argv[1], sys.argv[2])
    load.start()
    try:
        time.sleep(float(sys.argv[3]))
    finally:
        load.stop()

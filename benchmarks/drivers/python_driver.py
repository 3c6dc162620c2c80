"""Python counterpart of driver/main.go, with processes of the official Python client: for machines without Go.

Reads the same job from stdin and prints the same figures. The Python client is slower than the Go client, so the
figures are comparable only with each other.
"""

import itertools
import json
import multiprocessing
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import pulsar

PROCESSES: Final = 2
WAIT_MS: Final = 30_000

Job = dict[str, Any]


def connect(job: Job) -> Any:
    return pulsar.Client(job["url"], logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def make_producer(client: Any, job: Job, topic: str | None = None) -> Any:
    return client.create_producer(
        topic or job["topic"],
        batching_enabled=job.get("batched", False),
        batching_max_publish_delay_ms=1,
        max_pending_messages=job["pending"],
        block_if_queue_full=True,
        send_timeout_millis=0,
    )


def subscribe(client: Any, job: Job, name: str, **options: Any) -> Any:
    kinds = {"shared": pulsar.ConsumerType.Shared, "key_shared": pulsar.ConsumerType.KeyShared}
    kind = kinds.get(job.get("type", ""), pulsar.ConsumerType.Exclusive)
    return client.subscribe(job["topic"], name, kind, initial_position=pulsar.InitialPosition.Earliest, **options)


def percentiles(samples: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(samples, n=1000, method="inclusive")
    return {"p50_ms": cuts[499], "p99_ms": cuts[989], "p999_ms": cuts[998]}


def noise(job: Job) -> bytes:
    return random.Random(1).randbytes(job["size"])


def publish(job: Job, results: Any = None) -> list[float]:
    """Send all messages, limited by the pending ones; return the milliseconds to each receipt."""
    client = connect(job)
    waits = publish_to([make_producer(client, job)], job)
    client.close()
    if results is not None:
        results.put(waits)
    return waits


def publish_to(producers: list[Any], job: Job) -> list[float]:
    """Send all messages, to the producers in turn; return the milliseconds to each receipt."""
    body, done, count = noise(job), threading.Event(), job["messages"]
    waits: list[float] = []

    def send(producer: Any, number: int) -> None:
        sent = time.perf_counter()

        def receipted(result: Any, _: Any) -> None:
            waits.append((time.perf_counter() - sent) * 1000)
            if len(waits) == count:
                done.set()

        key = f"key-{number % job['keys']}" if job.get("keys") else None
        producer.send_async(body, receipted, partition_key=key)

    for number in range(count):
        send(producers[number % len(producers)], number)
    if job.get("batched"):
        for producer in producers:
            producer.flush()
    done.wait()
    return waits


def receive(job: Job, name: str, count: int, results: Any = None) -> list[float]:
    """Receive and acknowledge ``count`` messages; return the milliseconds since their timestamps, if they have any."""
    client = connect(job)
    consumer, waits = subscribe(client, job, name), []
    for _ in range(count):
        message = consumer.receive(WAIT_MS)
        if job.get("rate"):
            waits.append((time.time_ns() - int.from_bytes(message.data()[:8], "big")) / 1e6)
        consumer.acknowledge(message)
    client.close()
    if results is not None:
        results.put(waits)
    return waits


def in_processes(target: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[list[float]]:
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    processes = [context.Process(target=target, args=(*each, results)) for each in arguments]
    for process in processes:
        process.start()
    gathered = [results.get() for _ in processes]
    for process in processes:
        process.join()
    return gathered


def publish_row(job: Job) -> dict[str, float]:
    share = {**job, "messages": job["messages"] // PROCESSES}
    begin = time.perf_counter()
    waits = in_processes(publish, [(share,)] * PROCESSES)
    rate = share["messages"] * PROCESSES / (time.perf_counter() - begin)
    return {"rate": rate, **percentiles([wait for each in waits for wait in each])}


def many_row(job: Job) -> dict[str, float]:
    """Measure one client with a producer per topic, without the time to open them; nothing is closed."""
    client = connect(job)
    producers = [make_producer(client, job, f"{job['topic']}-{number}") for number in range(job["topics"])]
    begin = time.perf_counter()
    waits = publish_to(producers, job)
    return {"rate": len(waits) / (time.perf_counter() - begin), **percentiles(waits)}


def roundtrip_row(job: Job) -> dict[str, float]:
    client = connect(job)
    producer, body, waits = make_producer(client, job), noise(job), []
    for _ in range(job["messages"]):
        sent = time.perf_counter()
        producer.send(body)
        waits.append((time.perf_counter() - sent) * 1000)
    client.close()
    return percentiles(waits)


def paced_row(job: Job) -> dict[str, float]:
    client = connect(job)
    subscribe(client, job, "paced").close()
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    consumer = context.Process(target=receive, args=(job, "paced", job["messages"], results))
    consumer.start()
    producer, body = make_producer(client, job), noise(job)
    begin = time.perf_counter()
    for number in range(job["messages"]):
        time.sleep(max(0.0, begin + number / job["rate"] - time.perf_counter()))
        producer.send_async(time.time_ns().to_bytes(8, "big") + body[8:], lambda *_: None)
    producer.flush()
    rate = job["messages"] / (time.perf_counter() - begin)
    waits = results.get()
    consumer.join()
    client.close()
    return {"rate": rate, **percentiles(waits[len(waits) // 10 :])}


def catchup_row(job: Job) -> dict[str, float]:
    """Measure consumers, each on a separate connection, that share a backlog."""
    publish(job)
    done, left = threading.Event(), itertools.count(job["messages"] - 1, -1)

    def take(consumer: Any, message: Any) -> None:
        consumer.acknowledge(message)
        if next(left) == 0:
            done.set()

    clients = [connect(job) for _ in range(job.get("consumers", 1))]
    begin = time.perf_counter()
    for client in clients:
        subscribe(client, job, "late", message_listener=take)
    if not done.wait(job["limit_seconds"]):
        raise TimeoutError(f"{next(left) + 1} messages did not come")
    rate = job["messages"] / (time.perf_counter() - begin)
    for client in clients:
        client.close()
    return {"rate": rate}


def fanout_row(job: Job) -> dict[str, float]:
    names = [f"fan-{number}" for number in range(job["subscriptions"])]
    client = connect(job)
    for name in names:
        subscribe(client, job, name)
    client.close()
    begin = time.perf_counter()
    publishing = threading.Thread(target=publish, args=(job,))
    publishing.start()
    in_processes(receive, [(job, name, job["messages"]) for name in names])
    publishing.join()
    out = job["messages"] * len(names) / (time.perf_counter() - begin)
    return {"rate": out, "in_rate": out / len(names)}


ROWS: Final = {
    "publish": publish_row,
    "roundtrip": roundtrip_row,
    "paced": paced_row,
    "catchup": catchup_row,
    "fanout": fanout_row,
    "many": many_row,
}

if __name__ == "__main__":
    the_job = json.load(sys.stdin)
    print(json.dumps(ROWS[the_job["row"]](the_job)))

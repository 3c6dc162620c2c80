"""Readings of this machine: what psutil sees."""

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

import psutil

POISON: Final = 100
"""Every so manieth reading is one that no worker can process."""


class Reading(NamedTuple):
    """One value of one device."""

    number: int
    """Counted over all devices, as they were published."""
    device: str
    value: float
    body: bytes


def is_poison(number: int) -> bool:
    """Whether it is one that no worker can process."""
    return number % POISON == POISON - 1


def made(number: int, device: str, measure: str, value: float) -> Reading:
    """A reading with its body, as it is published."""
    document = {"n": number, "device": device, "measure": measure, "value": value}
    return Reading(number, device, value, json.dumps(document).encode())


def read(body: bytes) -> Reading:
    """A reading that was published."""
    document = json.loads(body)
    return Reading(document["n"], document["device"], document["value"], body)


def kind_of(device: str) -> str:
    """``cpu`` of ``cpu3``, ``net`` of ``net:eth0``."""
    return device.partition(":")[0].rstrip("0123456789")


def key_of(device: str) -> str:
    """The key of its readings: what stands in braces is the kind, and ``hash-tag`` keeps a kind together."""
    return f"{{{kind_of(device)}}}{device}"


def measure() -> Iterator[tuple[str, str, float]]:
    """(device, measure, value) of everything that there is now."""
    for number, percent in enumerate(psutil.cpu_percent(percpu=True)):
        yield f"cpu{number}", "percent", percent
    memory = psutil.virtual_memory()
    yield "memory", "used", memory.used
    yield "memory", "available", memory.available
    for name, disk in (psutil.disk_io_counters(perdisk=True) or {}).items():
        if any(disk):  # a device that somebody uses
            yield f"disk:{name}", "read_bytes", disk.read_bytes
            yield f"disk:{name}", "write_bytes", disk.write_bytes
    for name, net in psutil.net_io_counters(pernic=True).items():
        if any(net):
            yield f"net:{name}", "sent", net.bytes_sent
            yield f"net:{name}", "received", net.bytes_recv
    yield "processes", "count", len(psutil.pids())

"""Readings of this machine, from psutil."""

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

import psutil

POISON: Final = 100
"""Every reading with this interval cannot be processed."""


class Reading(NamedTuple):
    """One value of one device."""

    number: int
    """Number in publishing order, over all devices."""
    device: str
    value: float
    body: bytes


def is_poison(number: int) -> bool:
    """Return whether the workers cannot process a reading."""
    return number % POISON == POISON - 1


def made(number: int, device: str, measure: str, value: float) -> Reading:
    """Return a reading with its body for publishing."""
    document = {"n": number, "device": device, "measure": measure, "value": value}
    return Reading(number, device, value, json.dumps(document).encode())


def read(body: bytes) -> Reading:
    """Parse a published reading."""
    document = json.loads(body)
    return Reading(document["n"], document["device"], document["value"], body)


def kind_of(device: str) -> str:
    """Return the kind of a device: ``cpu`` for ``cpu3``, ``net`` for ``net:eth0``."""
    return device.partition(":")[0].rstrip("0123456789")


def key_of(device: str) -> str:
    """Return the key of a device's readings, with its kind in braces, by which ``hash-tag`` keeps a kind together."""
    return f"{{{kind_of(device)}}}{device}"


def measure() -> Iterator[tuple[str, str, float]]:
    """Yield the current (device, measure, value) triples."""
    for number, percent in enumerate(psutil.cpu_percent(percpu=True)):
        yield f"cpu{number}", "percent", percent
    memory = psutil.virtual_memory()
    yield "memory", "used", memory.used
    yield "memory", "available", memory.available
    for name, disk in (psutil.disk_io_counters(perdisk=True) or {}).items():
        if any(disk):  # a device in use
            yield f"disk:{name}", "read_bytes", disk.read_bytes
            yield f"disk:{name}", "write_bytes", disk.write_bytes
    for name, net in psutil.net_io_counters(pernic=True).items():
        if any(net):
            yield f"net:{name}", "sent", net.bytes_sent
            yield f"net:{name}", "received", net.bytes_recv
    yield "processes", "count", len(psutil.pids())

"""Ledgers that a box reports for an offload, and what of them a target lacks."""

import time
from typing import Any, Protocol

from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.offload import ledgers
from pulsarbox.spark.offload.manifest import Gap, OffloadError
from pulsarbox.spark.source.offsets import Mark
from pulsarbox.spark.topic_segments import BEGINNING, Lost, ReadPosition, part_of
from pulsarbox.times import moment


class KnownEnd(Protocol):
    """The end of the part of a topic or partition that a target contains."""

    @property
    def instance(self) -> str:
        """ID of the data directory of the ledgers."""
        ...

    @property
    def next(self) -> Mark:
        """Position after the offloaded ledgers."""
        ...


def _ledgers_from(service: Service, topic: str, start: ReadPosition) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    told = service.ledgers(topic, start)
    if told is None:
        raise OffloadError(
            f"{topic}: only topics of a box can be offloaded. Apache Pulsar does not report aborted transactions in "
            "its ledgers; use its tiered storage"
        )
    return told


def beginning(service: Service, topic: str) -> tuple[Mark, str]:
    """Return the first position of a topic, and the ID of its data directory. Raises OffloadError, broker errors."""
    answer, _ = _ledgers_from(service, topic, BEGINNING)
    return Mark(part_of(answer["earliest"]), answer["before"]), answer["instance"]


def due_of(service: Service, topic: str, known: KnownEnd, target: str, closed_before: str) -> ledgers.Due:
    """Return the ledgers that follow ``known``. ``target``: its name, for errors. ``closed_before``: a time, or "".

    Raises OffloadError if the ledgers are of another box, and the broker's errors.
    """
    answer, rows = _ledgers_from(service, topic, known.next.place)
    if answer["instance"] != known.instance:
        raise OffloadError(
            f"{topic}: {target} has the history of this topic from another box (data directory "
            f"{known.instance or 'unknown'}, this one is {answer['instance'] or 'unknown'}). Offload into another "
            "directory or table"
        )
    before = moment(closed_before, round(time.time() * 1000)) if closed_before else None
    earliest = Mark(part_of(answer["earliest"]), answer["before"])
    return ledgers.due(known.next, earliest, ledgers.stretches(topic, known.instance, rows), before)


def accepted(topic: str, gap: Gap, *, accept: bool) -> str:
    """Return the description of a lost range. Raises OffloadError unless losses are accepted."""
    lost = str(Lost(topic, gap.start, gap.end.place, gap.reason))
    if not accept:
        raise OffloadError(
            f"{lost}, before they were offloaded. --accept-loss records that with the offloaded data and continues "
            "after them"
        )
    return lost

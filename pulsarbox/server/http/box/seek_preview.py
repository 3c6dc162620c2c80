"""Preview of a seek: the messages that it would redeliver and skip. Below ``/pulsarbox/v1``."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from pulsarbox.broker.backlog.seek_preview import SeekPreview, SeekTarget
from pulsarbox.broker.subscription.consumer import HeldEntry
from pulsarbox.broker.subscription.position_search import find_first_since
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest
from pulsarbox.names import PERSISTENT, TopicName
from pulsarbox.protocol.ack_sets import bits_of
from pulsarbox.server.http.framework.cooperative_work import in_turns, when_all
from pulsarbox.server.http.framework.filter_parameters import number_of
from pulsarbox.server.http.framework.message_id_json import MessageIdArgument, start_of
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.resource_lookup import find_topic, parts_of, persistent, subscription_of
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.storage.record import Position

AT_ONCE: Final = 1000
"""Ranges counted per turn."""
_NUMBER_MAX: Final = 2**63 - 1


class _Step(NamedTuple):
    preview: SeekPreview
    acked: int


def preview(call: HttpRequest) -> DeferredAnswer:
    """Return the messages ``before`` and ``after`` a seek, and those ``redelivered`` and ``skipped``, of all parts.

    The target is ``timestamp`` (ms since 1970), or ``ledgerId``, ``entryId`` and ``batchIndex``, of one partition.
    """
    found = [_subscription(call, part) for part in parts_of(call, PERSISTENT)]
    timed = "timestamp" in call.query
    at = call.now.of_client(number_of(call, "timestamp", 0, 0, _NUMBER_MAX))
    place = _place(call)
    if not timed and len(found) > 1 and 0 <= place.position.ledger_id < _NUMBER_MAX:
        raise BadRequest("The topic is partitioned: name the partition of the message id")
    previews: list[SeekPreview] = []
    located, later = DeferredAnswer(), DeferredAnswer()
    done, failed = when_all(located, len(found), lambda: DONE)

    def known(subscription: Subscription, target: SeekTarget, now: Now) -> None:
        previews.append(SeekPreview(subscription, target))
        done(now)

    for each in found:
        target = partial(known, each)
        if timed:
            _at_time(each, at, target, failed, call.now)
        else:
            _at_message(each, place, target, failed, call.now)
    located.on_complete(lambda given: _count(call, previews, later) if given is DONE else later.complete(given))
    return later


def _subscription(call: HttpRequest, part: TopicName) -> Subscription:
    return subscription_of(persistent(find_topic(call, part, call.now), "A seek"), call.path["subscription"])


def _place(call: HttpRequest) -> MessageIdArgument:
    ledger_id = number_of(call, "ledgerId", -1, -1, _NUMBER_MAX)
    entry_id = number_of(call, "entryId", -1, -1, _NUMBER_MAX)
    return MessageIdArgument(Position(ledger_id, entry_id), number_of(call, "batchIndex", -1, -1, _NUMBER_MAX))


Known = Callable[[SeekTarget, Now], None]
Failed = Callable[[Exception], None]


def _at_time(subscription: Subscription, time: int, known: Known, failed: Failed, now: Now) -> None:
    def found(position: Position, when: Now) -> None:
        _locate(subscription, position, 0, known, failed, when)

    find_first_since(subscription.reader, time, found, failed, now)


def _at_message(subscription: Subscription, place: MessageIdArgument, known: Known, failed: Failed, now: Now) -> None:
    def read(held: HeldEntry | None, when: Now) -> None:
        position, ack_set = start_of(place, held)
        in_batch = 0 if held is None or not ack_set else held.batch_size - bits_of(ack_set).bit_count()
        _locate(subscription, position, in_batch, known, failed, when)

    if place.batch_index < 0:
        read(None, now)
    else:
        subscription.reader.look_up(place.position, read, lambda error, _: failed(error), now)


def _locate(
    subscription: Subscription, position: Position, in_batch: int, known: Known, failed: Failed, now: Now
) -> None:
    def located(mark: Position, messages: int, size: int, when: Now) -> None:
        known(SeekTarget(mark, messages, in_batch), when)

    subscription.reader.locate(position, located, lambda error, _: failed(error), now)


def _count(call: HttpRequest, previews: list[SeekPreview], later: DeferredAnswer) -> None:
    def add(step: _Step, now: Now) -> None:
        step.preview.add(step.acked)

    def finish(now: Now, ended: DeferredAnswer) -> None:
        ended.complete(_sums(previews))

    in_turns(call, _steps(previews), add, finish, AT_ONCE).on_complete(later.complete)


def _steps(previews: list[SeekPreview]) -> Iterator[_Step]:
    for each in previews:
        for acked in each.steps():
            yield _Step(each, acked)


def _sums(previews: list[SeekPreview]) -> HttpResponse:
    counts = [each.counts() for each in previews]
    names = ("before", "after", "redelivered", "skipped")
    return answer({name: sum(getattr(each, name) for each in counts) for name in names})


ROUTES = (
    HttpRoute(
        "GET",
        "/pulsarbox/v1/seek-preview/{tenant}/{namespace}/{topic}/{subscription}",
        Permission.TOPIC_CONSUMER,
        preview,
    ),
)

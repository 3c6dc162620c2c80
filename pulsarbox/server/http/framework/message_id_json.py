"""Message ids in the JSON of requests and answers."""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.subscription.consumer import HeldEntry
from pulsarbox.errors import BadRequest
from pulsarbox.protocol.ack_sets import words_of
from pulsarbox.server.http.framework.request import HttpRequest, kind_of, texts
from pulsarbox.storage.record import Position

EARLIEST: Final = Position(-1, -1)
LATEST: Final = Position(2**63 - 1, 2**63 - 1)
_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}


class MessageIdArgument(NamedTuple):
    """A message id in a request of the Admin API (Pulsar's ResetCursorData)."""

    position: Position
    batch_index: int = -1
    """Index of a message in the entry; -1 for the whole entry."""
    excluded: bool = False
    """Whether the position after the message is meant."""
    properties: dict[str, str] = {}  # noqa: RUF012 # never mutated
    """Properties of a subscription to be created."""

    @property
    def next_entry(self) -> Position:
        """The position after the entry."""
        return Position(self.position.ledger_id, self.position.entry_id + 1)


def place_of(call: HttpRequest) -> MessageIdArgument | None:
    """Parse the message id in the body, None for an empty one. Raises BadRequest."""
    body = call.json()
    if body is None:
        return None
    if isinstance(body, str):
        if body not in _WORDS:
            raise BadRequest(f'A position is "earliest", "latest" or a message id, not "{body[:40]}"')
        return MessageIdArgument(_WORDS[body])
    if not isinstance(body, dict):
        raise BadRequest(f'A message id must be {{"ledgerId": ..., "entryId": ...}}, not {kind_of(body)}')
    position = Position(_number(body, "ledgerId", 0), _number(body, "entryId", 0))
    excluded = body.get("excluded", False)
    if not isinstance(excluded, bool):
        raise BadRequest(f"excluded must be true or false, not {kind_of(excluded)}")
    properties = texts(body.get("properties"), "Properties of a subscription")
    return MessageIdArgument(position, _number(body, "batchIndex", -1), excluded, properties)


def _number(body: dict[str, Any], name: str, default: int) -> int:
    value = body.get(name, default)
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise BadRequest(f"{name} must be a whole number of 64 bits, not {kind_of(value)}")
    return value


def start_of(place: MessageIdArgument, held: HeldEntry | None) -> tuple[Position, list[int]]:
    """Return the position from which to read, and the ack set there; ``held`` is the cached state of its entry."""
    batch = held.batch_size if held is not None else 0
    first = place.batch_index + place.excluded
    if place.batch_index < 0 or not batch:
        return (place.next_entry if place.excluded else place.position), []
    if first >= batch:
        # As in Pulsar, an index beyond the batch means the whole batch, or the next entry if excluded.
        return (place.next_entry, []) if place.excluded else (place.position, [])
    unacked = (1 << batch) - (1 << first)
    return place.position, list(words_of(unacked)) if first else []


def shown(position: Position, partition: int, batch_index: int = -1) -> dict[str, int]:
    """Return a message id as JSON."""
    return {
        "ledgerId": position.ledger_id,
        "entryId": position.entry_id,
        "partitionIndex": partition,
        "batchIndex": batch_index,
        "batchSize": 0,
    }

"""Messages of a topic as the box returns them, whole: one by its ID, and its neighbors, also those with its key."""

from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from pulsarbox.client.admin import path_of
from pulsarbox.tui.actions.operation import topic_of
from pulsarbox.tui.feed import Feed, FeedError, ShownRow
from pulsarbox.tui.screens.topics import quoted
from pulsarbox.tui.viewer.contents import Contents, contents_of

PART: Final = 1 << 20
"""Bytes of a payload per request: the most that the box returns."""
LOADED_MAX: Final = 8 << 20
"""Maximum number of bytes of a payload to load."""
PAGES_MAX: Final = 20
"""Requests for the next message with a key. The box limits the work for each."""


class LoadedMessage(NamedTuple):
    """One message."""

    row: ShownRow
    """Its metadata, without payload and decoded value."""
    real: Mapping[str, Any]
    """The same with all characters, as the box returned it."""
    contents: Contents


class MessageSource(NamedTuple):
    """A topic, and a subscription whose state of each message is shown, if any."""

    feed: Feed
    topic: str
    subscription: str = ""

    @property
    def path(self) -> str:
        """The request path of messages."""
        _, _, tenant, namespace, local = path_of(topic_of({"topic": self.topic})).split("/")
        return f"/pulsarbox/v1/browse/{tenant}/{namespace}/{local}"

    def page(self, asked: Mapping[str, str]) -> Mapping[str, Any]:
        """Return a page of messages, as the box does. Raises FeedError."""
        only = {"subscription": self.subscription} if self.subscription else {}
        told = self.feed.ask("GET", f"{self.path}?{urlencode({**asked, **only})}")
        if not isinstance(told, dict):
            raise FeedError("the response has no messages: is this the Admin API of a box?", 502)
        return told

    def load(self, message_id: str) -> LoadedMessage:
        """Return a message with its payload, in several requests if it is large. Raises FeedError."""
        told = self._part(message_id, 0)
        payload, more = _payload(told), told
        loaded = bytearray(payload or b"")
        while more.get("truncated") and len(loaded) < LOADED_MAX:
            more = self._part(message_id, len(loaded))
            part = _payload(more)
            if not part:
                break
            loaded += part
        whole = None if payload is None else bytes(loaded)
        row = ShownRow({name: value for name, value in told.items() if name not in ("payload", "decoded")})
        row["topic"] = self.topic
        return LoadedMessage(row, told, contents_of(told, whole, not more.get("truncated")))

    def _part(self, message_id: str, begin: int) -> Mapping[str, Any]:
        asked = {"from": message_id, "direction": "forward", "limit": "1", "maxPayload": str(PART)}
        told = self.page(asked | ({"payloadFrom": str(begin)} if begin else {}))
        found = told.get("messages")
        if not found or found[0].get("id") != message_id:
            raise FeedError(f"message {message_id} no longer exists", 404)
        one: Mapping[str, Any] = found[0]
        return one

    def neighbor(self, message_id: str, *, forward: bool, key: str | None = None) -> str | None:
        """Return the ID of the next or previous message, or of that with a key; None without one. Raises FeedError."""
        way = "forward" if forward else "backward"
        asked = {"from": message_id, "direction": way, "limit": "2", "maxPayload": "0"}
        if key is not None:
            asked["filter"] = f"key == {quoted(key)}"
        for _ in range(PAGES_MAX):
            told = self.page(asked)
            found = [str(each["id"]) for each in told.get("messages") or () if each.get("id") != message_id]
            if found:
                return found[0 if forward else -1]
            place = told.get("next" if forward else "previous")
            if place is None or told.get("ended"):
                return None
            asked["from"] = str(place)
        raise FeedError(f"no message found in {PAGES_MAX} requests; filter the messages instead", 504)


def _payload(told: Mapping[str, Any]) -> bytes | None:
    payload = told.get("payload")
    return b64decode(payload) if isinstance(payload, str) else None

"""A namespace for a single test."""

import uuid
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from pulsarbox.embed.errors import BoxError
from pulsarbox.names import DOMAINS

if TYPE_CHECKING:
    from pulsarbox.embed.box import PulsarBox

TENANT: Final = "public"
_ALLOW: Final = "allowAutoTopicCreation"


class Namespace:
    """``tenant/name``, also as ``str()``; ``topic("orders")`` is a topic in it."""

    def __init__(self, box: "PulsarBox", hint: str = "") -> None:
        """Create a namespace with ``hint`` in its name."""
        readable = "".join(each if each.isascii() and (each.isalnum() or each in "-_.") else "-" for each in hint)[:60]
        self.name: Final = f"{TENANT}/{readable or 'test'}-{uuid.uuid4().hex[:8]}"
        self._box = box
        box.admin("PUT", f"/admin/v2/namespaces/{self.name}")

    def topic(self, name: str = "topic", *, persistent: bool = True) -> str:
        """Return the full name of a topic in the namespace, which need not exist."""
        return f"{'' if persistent else 'non-'}persistent://{self.name}/{name}"

    def remove(self) -> None:
        """Delete the namespace with all its topics, even if clients are connected."""
        # Connected clients reconnect at once, which would create the topic again.
        if not self._done("POST", f"/admin/v2/namespaces/{self.name}/autoTopicCreation", {_ALLOW: False}):
            return
        for domain in DOMAINS:
            path = f"/admin/v2/{domain}/{self.name}"
            for topic in self._box.admin("GET", f"{path}/partitioned"):
                self._delete(f"{path}/{_local(topic)}/partitions?force=true")
            for topic in self._box.admin("GET", path):
                self._delete(f"{path}/{_local(topic)}?force=true")
        self._delete(f"/admin/v2/namespaces/{self.name}")

    def _delete(self, path: str) -> None:
        self._done("DELETE", path)

    def _done(self, method: str, path: str, body: object = None) -> bool:
        """Send a request; return False if the object does not exist, because the test has deleted it."""
        try:
            self._box.admin(method, path, body)
        except BoxError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Namespace {self.name}>"


def _local(topic: str) -> str:
    from urllib.parse import quote

    return quote(topic.split("/", 4)[4], safe="")

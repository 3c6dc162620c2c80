"""Topic positions for the Admin API: WHERE of `sub seek`, --at and --through."""

from dataclasses import dataclass, replace
from typing import Any, Final

from pulsarbox.cli.common.position_options import is_ago, message_id
from pulsarbox.cli.common.time_arguments import Words, moment
from pulsarbox.client.places import MessageId
from pulsarbox.names import TopicName

FORMS: Final = (
    "earliest, latest, a time such as -1h or @2026-11-21T10:00, "
    "or a message ID: ledger:entry, ledger:entry:partition:index"
)
_EARLIEST: Final = {"ledgerId": -1, "entryId": -1}
_LATEST: Final = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}


@dataclass(frozen=True, slots=True)
class PositionParam:
    """A position in a topic: a word (earliest, latest), a message ID, or a time."""

    word: str = ""
    id: MessageId | None = None
    time: int | None = None
    """Milliseconds since 1970."""
    text: str = ""
    """The text on the command line."""

    def __str__(self) -> str:
        return self.text or self.word

    def of(self, topic: TopicName) -> TopicName:
        """Return the topic of the position: the partition if the message ID names one."""
        if self.id is not None and self.id.partition >= 0 and topic.base == topic:
            return topic.partition(self.id.partition)
        return topic

    @property
    def after(self) -> "PositionParam":
        """The position after a message ID; any other position as it is."""
        if self.id is None:
            return self
        step = {"batch_index": self.id.batch_index + 1} if self.id.batch_index >= 0 else {"entry": self.id.entry + 1}
        return replace(self, id=self.id._replace(**step))

    @property
    def body(self) -> dict[str, Any]:
        """The position as an Admin API body. Not for a time."""
        if self.id is None:
            return dict(_EARLIEST if self.word == "earliest" else _LATEST)
        body = {"ledgerId": self.id.ledger, "entryId": self.id.entry}
        return body | ({"batchIndex": self.id.batch_index} if self.id.batch_index >= 0 else {})


def parse_place(text: str) -> PositionParam:
    """Parse a position. Raises ValueError."""
    if text in ("earliest", "latest"):
        return PositionParam(word=text, text=text)
    if text.startswith("@") or is_ago(text):
        return PositionParam(time=moment(text.removeprefix("@")), text=text)
    found = message_id(text)
    if found is None:
        hint = f"did you mean -{text}?" if is_ago(f"-{text}") else f"expected {FORMS}"
        raise ValueError(f"invalid position '{text}'; {hint}")
    return PositionParam(id=found, text=text)


AT: Final = Words("place", parse_place)

"""Actions on the message of a screen: going to others, marking it for a comparison, and copying it."""

from functools import partial
from typing import TYPE_CHECKING, Final

from pulsarbox.cleaning import clean
from pulsarbox.tui.actions.copy_forms import (
    COPIED_MAX,
    copied_line,
    copy_choices,
    curl_command,
    envelope,
    produce_command,
)
from pulsarbox.tui.actions.operation import short
from pulsarbox.tui.feed import FeedError, aside
from pulsarbox.tui.screens.base import TopScreen
from pulsarbox.tui.screens.messages.message_source import PART, LoadedMessage, MessageSource

if TYPE_CHECKING:
    from pulsarbox.tui.widgets.pager import Pager

_PREVIEWED: Final = 400
"""Characters of a text, and bytes of a payload, up to which the dialog shows the text to copy."""
_WITH_PAYLOAD: Final = frozenset({"envelope", "produce"})
"""Forms with the whole payload: of a large one, they take long to write."""


class MessageActions(TopScreen):
    """A screen with one message of a topic."""

    def __init__(self, topic: str, subscription: str, message_id: str) -> None:
        super().__init__()
        self.topic = topic
        self.subscription = subscription
        self.message_id = message_id
        self.message: LoadedMessage | None = None
        """None until it is loaded."""

    @property
    def source(self) -> MessageSource:
        """The topic."""
        return MessageSource(self.top.feed, self.topic, self.subscription)

    @property
    def address(self) -> tuple[str, str, str]:
        """Topic, subscription (may be empty) and message ID."""
        return self.topic, self.subscription, self.message_id

    @property
    def key(self) -> str | None:
        """The key of the message, None without one."""
        key = self.message.real.get("key") if self.message is not None else None
        return None if key is None else str(key)

    @property
    def has_other_marked(self) -> bool:
        """Whether another message is marked, with which this one can be compared."""
        return self.top.marked_message not in (None, self.address)

    @property
    def pager(self) -> "Pager":
        """The pager of the contents."""
        raise NotImplementedError

    def open_message(self, message_id: str) -> None:
        """Show another message of the topic."""
        raise NotImplementedError

    # Other messages

    def do_next_message(self) -> None:
        """Show the next message."""
        self._step(forward=True)

    def do_previous_message(self) -> None:
        """Show the previous message."""
        self._step(forward=False)

    def do_next_by_key(self) -> None:
        """Show the next message with the same key."""
        self._step_by_key(forward=True)

    def do_previous_by_key(self) -> None:
        """Show the previous message with the same key."""
        self._step_by_key(forward=False)

    def _step_by_key(self, *, forward: bool) -> None:
        if self.key is None:
            self.top.notify("The message has no key", severity="warning")
        else:
            self._step(forward=forward, key=self.key)

    def _step(self, *, forward: bool, key: str | None = None) -> None:
        self.run_worker(self._find_neighbor(forward, key), group="neighbor", exclusive=True)

    async def _find_neighbor(self, forward: bool, key: str | None) -> None:
        find = partial(self.source.neighbor, self.message_id, forward=forward, key=key)
        try:
            found = await aside(find)
        except FeedError as trouble:
            self.top.notify(str(trouble), severity="warning", markup=False)
            return
        if found is None:
            which = "" if key is None else f" with the key '{clean(key[:60])}'"
            way = "after" if forward else "before"
            self.top.notify(f"No message{which} {way} this one", severity="warning", markup=False)
        else:
            self.open_message(found)

    def do_mark_message(self) -> None:
        """Mark the message to compare another one with it."""
        self.top.marked_message = self.address
        self.top.notify(
            f"Marked {self.message_id}: {self.key_of('difference')} compares another message with it", markup=False
        )

    def do_difference(self) -> None:
        """Compare the message with the marked one."""
        if self.has_other_marked:
            self.top.open("messages.message_difference:MessageDifference", self.top.marked_message, self.address)
        else:
            mark, compare = self.key_of("mark message"), self.key_of("difference")
            self.top.notify(f"Mark another message first ({mark}), then press {compare} here", severity="warning")

    # Copies

    def do_copy(self) -> None:
        """Choose a form in which to copy the message."""
        if self.message is not None:
            self.run_worker(self._copy(self.message), group="dialog")

    async def _copy(self, message: LoadedMessage) -> None:
        from pulsarbox.tui.actions.dialogs import ChoiceDialog, Description

        choices = copy_choices(message.real)
        options = [(name, title, self._preview(name) or Description(meaning)) for name, title, meaning in choices]
        found = await self.app.push_screen_wait(ChoiceDialog("Copy", options))
        if found is None:
            return
        if found in ("envelope", "produce") and not message.contents.is_whole:
            self.top.notify("The payload is too large to copy; peek writes it to a file", severity="warning")
            return
        text = self.copied(found)
        if len(text) > COPIED_MAX:
            told = f"{len(text):,} characters are too many for the clipboard; peek writes them to a file"
            self.top.notify(told, severity="warning")
            return
        self.app.copy_to_clipboard(text)
        shown = clean(text if len(text) <= 200 else f"{text[:200]}... ({len(text):,} characters)")
        self.top.notify(shown, title="Copied", markup=False, timeout=4)

    def _preview(self, form: str) -> str:
        """Return the text to copy if it is short enough to show whole; else empty."""
        payload = self.message.contents.payload if self.message is not None else None
        if form in _WITH_PAYLOAD and payload is not None and len(payload) > _PREVIEWED:
            return ""
        text = self.copied(form)
        return clean(text) if len(text) <= _PREVIEWED else ""

    def copied(self, form: str) -> str:
        """Return the message, or a part of it, in a form of ``copy_choices``."""
        message = self.message
        assert message is not None
        real, payload = message.real, message.contents.payload
        if form == "id":
            return str(real.get("id"))
        if form == "envelope":
            return envelope(real, self.topic, payload)
        if form == "produce":
            return produce_command(real, short({"topic": self.topic}), payload, self.top.target)
        if form == "curl":
            feed = self.top.feed
            return curl_command(feed.label, self.source.path, self.message_id, feed.credentials_method, PART)
        if form in ("value", "path"):
            return copied_line(self.pager.lines, self.pager.cursor, form)
        return self.command_line()

    def command_line(self) -> str:
        """Return the command that prints the message."""
        return self.line("peek", short({"topic": self.topic}), "--from", self.message_id, "-n", "1")

    def past_command(self) -> str:
        """Return the command that prints the message, which is the same at any time."""
        return self.command_line()

"""``6``: who is connected, with what, and how fast."""

from typing import ClassVar

from pulsarbox.tui import views
from pulsarbox.tui.screens.view import ViewScreen


class Clients(ViewScreen):
    """Producers, consumers, and connections that have neither."""

    view: ClassVar[views.View] = views.CLIENTS
    place: ClassVar[str] = "clients"
    kind: ClassVar[str] = "client"

    def command_line(self) -> str:
        """All of them."""
        words = ["client", "list"]
        if self.filter:
            words += ["--filter", self.filter]
        return self.line(*words)

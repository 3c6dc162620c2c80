"""All live views."""

from typing import Final

from pulsarbox.server.live.subscriptions import SUBSCRIPTIONS
from pulsarbox.server.live.topics import TOPICS
from pulsarbox.server.live.view import View

VIEWS: Final[dict[str, View]] = {view.name: view for view in (TOPICS, SUBSCRIPTIONS)}

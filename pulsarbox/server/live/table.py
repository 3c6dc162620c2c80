"""The table of all live views."""

from typing import Final

from pulsarbox.server.live.clients import CLIENTS
from pulsarbox.server.live.dead_letters import DEAD_LETTERS
from pulsarbox.server.live.jobs import JOBS
from pulsarbox.server.live.pipelines import PIPELINES
from pulsarbox.server.live.plugins import PLUGINS
from pulsarbox.server.live.quotas import QUOTAS
from pulsarbox.server.live.subscriptions import SUBSCRIPTIONS
from pulsarbox.server.live.topics import TOPICS
from pulsarbox.server.live.view import LiveView

VIEWS: Final[dict[str, LiveView]] = {
    view.name: view for view in (TOPICS, SUBSCRIPTIONS, QUOTAS, DEAD_LETTERS, CLIENTS, PLUGINS, JOBS, PIPELINES)
}

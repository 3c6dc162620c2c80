"""Advice for a subscription without delivery: one line per cause, with a key or command."""

import re
from typing import Final

from pulsarbox.tui.actions.action_table import BY_NAME

_WAIT: Final = "nothing: delivery resumes shortly"
ADVICE: Final[dict[str, str]] = {
    "no-consumer": "start a consumer; if the subscription is unused, :sub delete",
    "no-permits": "add consumers or speed them up; compare RATE/s below",
    "slow-connection": "check network and clients; enter on one, {menu}: disconnect it",
    "unacked-limit": "{cursor map} shows the messages, UNACKED below the consumers; {quotas} the limit",
    "key-blocked": "{key map} shows blocked keys, the blocking message and its consumer",
    "draining": "{key map} shows who must acknowledge; enter on it, {menu}: disconnect it",
    "chunks": "enter on the consumer that receives nothing, {menu}: disconnect it",
    "dead-letters": "{deadletters} groups them by failure; there {edit} edits and {dlq replay} replays",
    "delayed": "nothing: messages are delivered when due; {messages} shows the times",
    "throttled": "press {quotas} for the limit, and enter there to change it",
    "taking-over": _WAIT,
    "resetting": _WAIT,
    "open-transaction": "`pulsarbox txn list` shows it; `pulsarbox txn abort` aborts it",
    "reading": f"{_WAIT}; otherwise check {{storage}} and {{events}}",
    "end-of-log": "nothing: all messages are delivered",
    "unacknowledged": "{cursor map} shows the messages, UNACKED below the consumers; {menu} there",
}
"""Advice by cause, as named by ``broker.why`` and the live views. An action in braces is replaced by its key."""


def advice(cause: object) -> str:
    """Return the advice for a cause with keys filled in, empty for none."""
    return re.sub(r"\{([^}]+)\}", lambda found: BY_NAME[found[1]].shown_keys, ADVICE.get(str(cause), ""))

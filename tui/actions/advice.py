"""Advice for a subscription without delivery: one line per cause, with a key or command."""

import re
from typing import Final

from pulsarbox.tui.actions.action_table import BY_NAME

_WAIT: Final = "nothing: it goes on by itself in a moment"
ADVICE: Final[dict[str, str]] = {
    "no-consumer": "start a consumer; if nobody needs it any more, :sub delete",
    "no-permits": "more consumers, or quicker ones; RATE/s below tells them apart",
    "slow-connection": "look at the network and the clients; enter on one, {menu}: let it go",
    "unacked-limit": "{cursor map} shows what is open; UNACKED below, who has it; {quotas} raises it",
    "key-blocked": "{key map} shows which key stands still, behind which message of whom",
    "draining": "{key map} shows who is to acknowledge first; enter on it, {menu}: let it go",
    "chunks": "enter on the consumer that takes nothing, {menu}: others get its chunks",
    "dead-letters": "{deadletters} shows them by what went wrong; there {edit} and {dlq replay} put right",
    "delayed": "nothing: each comes when it is due; {messages} shows when that is",
    "throttled": "{quotas} shows which limit holds it back; enter there changes it",
    "taking-over": _WAIT,
    "resetting": _WAIT,
    "open-transaction": "`pulsarbox txn list` shows it; `pulsarbox txn abort` ends it",
    "reading": f"{_WAIT}; if not, {{storage}} and {{events}}",
    "end-of-log": "nothing: everything is sent",
    "unacknowledged": "{cursor map} shows what is open; UNACKED below, who has it; {menu} there",
}
"""Advice by cause, as named by ``broker.why`` and the live views. An action in braces is replaced by its key."""


def advice(cause: object) -> str:
    """Return the advice for a cause with keys filled in, empty for none."""
    return re.sub(r"\{([^}]+)\}", lambda found: BY_NAME[found[1]].shown_keys, ADVICE.get(str(cause), ""))

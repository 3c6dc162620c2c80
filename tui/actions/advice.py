"""Advice for a subscription without delivery: one line per cause, with a key or command."""

import re
from typing import Final

from pulsarbox.tui.actions.key_bindings import DEFAULT_KEYS, Keys, key_or_command

_WAIT: Final = ("no action needed: delivery resumes shortly", "")
_DISCONNECT: Final = "disconnect it: {clients}, then {menu}"
ADVICE: Final[dict[str, tuple[str, str]]] = {
    "no-consumer": ("start a consumer", "delete an unused subscription with :sub delete"),
    "no-permits": ("add consumers or speed them up; {clients} shows their rates", ""),
    "slow-connection": ("check the network and the client", _DISCONNECT),
    "unacked-limit": ("{cursor map} shows the messages, {clients} the consumers, {quotas} the limit", ""),
    "key-blocked": ("{key map} shows blocked keys, the blocking message and its consumer", ""),
    "draining": ("{key map} shows the consumer that must acknowledge", _DISCONNECT),
    "chunks": ("{clients} shows the consumer that receives nothing", "{menu} disconnects it"),
    "dead-letters": ("{deadletters} groups them by failure", "there {edit} edits and {dlq replay} replays"),
    "delayed": ("no action needed: messages are delivered when due; {messages} shows them", ""),
    "throttled": ("{quotas} shows the limit", "there enter changes it"),
    "taking-over": _WAIT,
    "resetting": _WAIT,
    "open-transaction": ("`pulsarbox txn list` shows it", "`pulsarbox txn abort` aborts it"),
    "reading": ("delivery resumes shortly; otherwise check {storage} and {events}", ""),
    "end-of-log": ("no action needed", ""),
    "unacknowledged": ("{cursor map} shows the messages, {clients} the consumers that hold them", ""),
}
"""Advice by cause, as named by ``broker.why`` and the live views: what to see or do, and what changes the box.

An action in braces is replaced by its key, or by its command if it has no key.
"""


def advice(cause: object, keys: Keys = DEFAULT_KEYS, *, may_change: bool = True) -> str:
    """Return the advice for a cause with keys filled in, empty for none.

    ``may_change``: whether the dashboard can change the box, which it cannot if it is read-only.
    """
    parts = ADVICE.get(str(cause), ())[: 2 if may_change else 1]
    return re.sub(r"\{([^}]+)\}", lambda found: key_or_command(keys, found[1]), "; ".join(filter(None, parts)))

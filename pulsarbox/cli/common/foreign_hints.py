"""Hints for commands under the names of other tools, such as pulsar-admin."""

from collections.abc import Sequence
from typing import Final

from pulsarbox.cli.common.terminal_text import clean

GROUPS: Final = {
    "namespaces": "ns",
    "namespace": "ns",
    "subscriptions": "sub",
    "subscription": "sub",
    "topics": "topic",
    "tenants": "tenant",
    "clients": "client",
    "quotas": "quota",
    "schemas": "schema",
}
"""Groups of commands under the names of other tools."""
POLICIES: Final = ("policies", "retention")
"""Words for what `topic policy` and `ns policy` set."""
COMMANDS: Final = {
    "sub reset-cursor": "sub seek",
    "sub unsubscribe": "sub delete",
    "sub peek": "peek",
    "sub show": "sub stats",
    "ns show": "ns policy",
    "topic show": "topic stats",
    "topic peek": "peek",
    "topic subscriptions": "sub list",
    "topic consume": "consume",
    "topic produce": "produce",
}
"""Commands under the names of other tools."""


def foreign_hint(path: str, words: Sequence[str]) -> str:
    """Return ``; use `pulsarbox ...``` for a command of another tool, or an empty string."""
    program, _, group = path.partition(" ")
    if not group and words[0] in GROUPS:
        group, words = GROUPS[words[0]], words[1:]
        verb = words[0] if words and not words[0].startswith("-") else ""
        ours = COMMANDS.get(f"{group} {verb}", f"{group} {verb}".strip())
        return f"; use `{program} {clean(ours)}`"
    if not group and words[0] in POLICIES:
        return f"; use `{program} topic policy` or `{program} ns policy`"
    ours = COMMANDS.get(f"{group} {words[0]}", "")
    return f"; use `{program} {ours}`" if ours else ""

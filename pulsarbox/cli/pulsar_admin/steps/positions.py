"""Message IDs in pulsar-admin's syntax, and the commands for positions in a topic."""

import time
from datetime import UTC, datetime
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.pulsar_admin.printing import compact, pretty
from pulsarbox.cli.pulsar_admin.session import Session, chosen
from pulsarbox.cli.pulsar_admin.table import AdminRequest, Command

EARLIEST: Final = {"ledgerId": -1, "entryId": -1}
LATEST: Final = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}


def place(text: str, words: bool = True) -> dict[str, int]:
    """Parse ``ledger:entry`` and, with ``words``, ``earliest`` and ``latest``. Raises Misused."""
    if words and text in ("earliest", "latest"):
        return EARLIEST if text == "earliest" else LATEST
    numbers = text.split(":")
    if len(numbers) not in (2, 3) or not all(_whole(number) for number in numbers):
        also = ", earliest or latest" if words else ""
        raise Misused(f"invalid message ID '{clean(text)}': expected ledger:entry, such as 12:34{also}")
    found = {"ledgerId": int(numbers[0]), "entryId": int(numbers[1])}
    return found | {"batchIndex": int(numbers[2])} if len(numbers) == 3 else found


def placed(call: AdminRequest, at: dict[str, int], **more: Any) -> AdminRequest:
    """Return the call with a message ID in its body."""
    return call._replace(body={**call.body, **at, **more})


def shown(found: Any) -> str:
    """Format a message ID as in Java: ``ledger:entry:partition``."""
    if not isinstance(found, dict):
        return "null"
    return f"{found.get('ledgerId')}:{found.get('entryId')}:{found.get('partitionIndex', -1)}"


def reset_cursor(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Reset a cursor to a message, or to a time ago."""
    by_message, by_time = command.calls
    if values["message_id"]:
        session.ask(placed(by_message, place(values["message_id"])), values)
    elif values["time"] is not None:
        session.ask(by_time, {**values, "time": int(time.time() * 1000) - values["time"]})
    else:
        raise Misused("specify --time, such as 1h, or --messageId, such as 12:34")


def create_subscription(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Create a subscription at --messageId."""
    session.ask(placed(chosen(command, values), place(values["message_id"])), values)


def expire_messages(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Expire messages by age, or up to a message."""
    by_time, by_place = command.calls
    age, text = values["expire_time"], values["position"]
    if age is not None and age >= 0:
        if text:
            raise Misused("--expireTime and --position cannot be combined")
        session.ask(by_time, values)
    elif text:
        partition = values["topic"].partition_index
        session.ask(placed(by_place, place(text, words=False), partitionIndex=partition), values)
    else:
        raise Misused("specify --expireTime, such as 1h, or --position, such as 12:34")


def backlog_size(session: Session, command: Command, values: dict[str, Any]) -> Any:
    """Return the backlog size from a message; -1:-1 is the first."""
    return session.ask(placed(command.calls[0], place(values["message_id"], words=False)), values)


def message_id_by_time(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the ID of the first message at or after a time."""
    at = milliseconds(values["datetime"])
    found = session.ask(command.calls[0], {**values, "timestamp": at})
    click.echo(f"Cannot find any messages based on timestamp {at}" if found is None else pretty(found))


def message_id_by_index(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print a message ID in Java's format."""
    click.echo(shown(session.ask(command.calls[0], values)))


def analyze_backlog(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the backlog of a subscription, counted by scanning it.

    With --backlog-scan-max-entries, scans in rounds: a broker stops at its own limit, and the next round continues.
    """
    call, most = command.calls[0], values["backlog_scan_max_entries"]
    if most is not None and most <= 0:
        raise Misused("--backlog-scan-max-entries must be greater than 0")
    text = compact if values["plain"] else pretty
    partition = values["topic"].partition_index
    start = call._replace(body=None)
    if values["position"]:
        start = placed(call, place(values["position"], words=False), partitionIndex=partition)
    total = session.ask(start, values)
    while most is not None and _is_continued(total) and total["entries"] < most:
        if not values["quiet"]:
            click.echo(text(total))
        last = place(total["lastMessageId"], words=False)
        part = session.ask(placed(call, {**last, "entryId": last["entryId"] + 1}, partitionIndex=partition), values)
        if not isinstance(part, dict) or not part.get("entries"):
            break
        total = _summed(total, part)
    click.echo(text(total))


def milliseconds(text: str) -> int:
    """Parse an ISO 8601 time, by default in the local time zone, into milliseconds since 1970. Raises Misused."""
    try:
        return round(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise Misused(f"invalid time '{clean(text)}': expected a form such as 2026-01-31T12:00:00Z") from None


def _is_continued(total: Any) -> bool:
    return isinstance(total, dict) and bool(total.get("aborted")) and bool(total.get("lastMessageId"))


def _summed(total: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Merge two rounds: add the counts, and keep the first message of the one and the last of the other."""
    made = dict(part)
    for key, value in total.items():
        if isinstance(value, int) and not isinstance(value, bool) and isinstance(part.get(key), int):
            made[key] = value + part[key]
    made["firstMessageId"] = total.get("firstMessageId")
    return made


def _whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit()

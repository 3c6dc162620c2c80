"""Short forms of policies that are objects in the Admin API: ``7d,10G`` for a retention, ``100/s,5MB/s`` for a rate.

Each form is a ``WholeForm``. Its text is None for a value that says more than the short form can; such a value has
``name=value`` pairs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulsarbox.protocol.policies.shapes import NO_LIMIT, Flag, WholeForm
from pulsarbox.quantities import BYTES, MEBIBYTES, MILLISECONDS, MINUTES, SECONDS, InvalidText, Quantity

UNLIMITED: Final = "unlimited"
OFF: Final = "off"
ON: Final = "on"
NONE: Final = "none"

_Value = Mapping[str, Any]
_RATE: Final = re.compile(r"([^/]+)/ *([0-9]{0,10}) *(s|sec|second|min|m|minute|h|hour)", re.IGNORECASE)
_AMBIGUOUS: Final = re.compile(r"([0-9]{1,20})((?:\.[0-9]{1,9})?) *([kmgtp])", re.IGNORECASE)
_THOUSANDS: Final = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_COUNT: Final = re.compile(r"([0-9]{1,20}) *(?:msgs?|messages?|times)?", re.IGNORECASE)
_FRACTION: Final = re.compile(r"([0-9]{0,20})\.[0-9]{0,20} *(?:msgs?|messages?|times)?", re.IGNORECASE)
_PERIODS: Final = {"s": 1, "m": 60, "h": 3600}


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _quantity(text: str, *quantities: Quantity) -> tuple[Quantity, int] | None:
    """Return the first quantity that accepts an amount with a suffix, and the number of its units.

    Raises ValueError if the amount is not a whole number of units.
    """
    for quantity in quantities:
        if quantity.has_suffix(text):
            return quantity, quantity.parse(text)
    return None


def _switch(text: str, form: WholeForm) -> bool:
    try:
        return Flag().parse(text.strip())
    except ValueError:
        raise InvalidText(form.expected, text) from None


@dataclass(frozen=True, slots=True)
class RetentionForm:
    """A time, a size, or both; without one of them, there is no limit of that kind."""

    expected: str = "a time, a size, or both, such as 7d, 10G or 7d,10G; unlimited; or off"
    examples: tuple[str, ...] = ("7d", "10G", "7d,10G", UNLIMITED, OFF)

    def parse(self, text: str) -> dict[str, Any]:
        """See WholeForm.parse."""
        word = text.strip().lower()
        if word in (OFF, UNLIMITED):
            return _retention(*((0, 0) if word == OFF else (NO_LIMIT, NO_LIMIT)))
        found = {}
        for part in _parts(text):
            if "/" in part:  # not a mistake in a number: the parts are separated differently
                raise InvalidText(self.expected, text)
            read = _quantity(part, MINUTES, MEBIBYTES)
            if read is None or read[0].unit in found:
                raise InvalidText(self.expected, text)
            found[read[0].unit] = read[1]
        if not found:
            raise InvalidText(self.expected, text)
        return _retention(found.get(MINUTES.unit, NO_LIMIT), found.get(MEBIBYTES.unit, NO_LIMIT))

    def text(self, value: _Value) -> str | None:
        """See WholeForm.text."""
        minutes, size = value.get("retentionTimeInMinutes"), value.get("retentionSizeInMB")
        if minutes == size == 0:
            return OFF
        if minutes == size == NO_LIMIT:
            return UNLIMITED
        limits = [(quantity, each) for quantity, each in ((MINUTES, minutes), (MEBIBYTES, size)) if each != NO_LIMIT]
        if any(each is None or each <= 0 for _, each in limits):
            return None
        return ",".join(quantity.text(each or 0) for quantity, each in limits)


def _retention(minutes: int, size: int) -> dict[str, Any]:
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": size}


@dataclass(frozen=True, slots=True)
class RateForm:
    """Messages, bytes, or both a period: ``100/s``, ``5MB/s``, ``100/s,5MB/s``, ``600/10s``."""

    messages: str
    """Member with the number of messages."""
    size: str = ""
    """Member with the number of bytes, if they can be limited."""
    period: str = ""
    """Member with the period in seconds; without one, the period is a second."""
    rest: Mapping[str, Any] | None = None
    """Other members, with the values that the short form stands for."""

    @property
    def expected(self) -> str:
        """See WholeForm.expected."""
        kinds = "messages, bytes or both, such as 100/s, 5MB/s or 100/s,5MB/s" if self.size else "a rate such as 10/s"
        return f"{kinds}{' or 600/10s' if self.period else ''}; or {UNLIMITED} or {OFF}"

    @property
    def examples(self) -> tuple[str, ...]:
        """See WholeForm.examples."""
        return ("100/s", "5MB/s", "100/s,5MB/s", UNLIMITED) if self.size else ("10/s", UNLIMITED)

    def parse(self, text: str) -> dict[str, Any]:
        """See WholeForm.parse."""
        if text.strip().lower() in (OFF, UNLIMITED):
            return {member: NO_LIMIT for member in (self.messages, self.size) if member}
        found: dict[str, int] = {}
        periods: dict[str, int] = {}
        for part in _parts(text):
            rate = _RATE.fullmatch(part)
            if rate is not None:
                self._check_unit(rate[1].strip(), part)
                self._check_count(rate[1].strip(), part)
            elif self.size and (plain := _COUNT.fullmatch(part)) is not None and len(_parts(text)) == 1:
                raise ValueError(f"'{part}' may be messages or bytes: specify {plain[1]}/s or {plain[1]}B/s")
            member, number = self._amount(rate[1].strip()) if rate is not None else ("", 0)
            if rate is None or not member or member in found:
                raise InvalidText(self.expected, text)
            found[member] = number
            periods[member] = int(rate[2] or 1) * _PERIODS[rate[3][0].lower()]
        if not found:
            raise InvalidText(self.expected, text)
        return self._of_period(found, periods) if self.period else self._a_second(found, periods)

    def _check_unit(self, amount: str, part: str) -> None:
        """Raise ValueError for 1k, which may be a thousand messages or a KiB."""
        found = _AMBIGUOUS.fullmatch(amount)
        if found is None or not self.size:
            return
        decimals, rest = found[2][1:], part[len(amount) :].strip()
        count = int(found[1] + decimals) * _THOUSANDS[found[3].lower()] // 10 ** len(decimals)
        size = f"{found[1]}{found[2]}{found[3].upper()}B"
        raise ValueError(f"'{part}' may be messages or bytes: specify {count}{rest} or {size}{rest}")

    @staticmethod
    def _check_count(amount: str, part: str) -> None:
        """Raise ValueError for 1.5, which is no number of messages."""
        found = _FRACTION.fullmatch(amount)
        if found is not None:
            rest = part[len(amount) :].strip()
            floor = int(found[1] or 0)
            nearest = [f"{each}{rest}" for each in (floor, floor + 1) if each]
            raise ValueError(f"'{part}' is not a whole number: specify {' or '.join(nearest)}")

    def _amount(self, text: str) -> tuple[str, int]:
        """Return the member that an amount limits, and its number; an empty member if there is none."""
        count = _COUNT.fullmatch(text)
        if count is not None:
            return self.messages, int(count[1])
        read = _quantity(text, BYTES)
        return (self.size, read[1]) if read is not None else ("", 0)

    def _of_period(self, found: Mapping[str, int], periods: Mapping[str, int]) -> dict[str, Any]:
        if len(set(periods.values())) > 1:
            raise ValueError("messages and bytes must have the same period")
        return self._value(found, next(iter(periods.values())))

    def _a_second(self, found: Mapping[str, int], periods: Mapping[str, int]) -> dict[str, Any]:
        for member, period in periods.items():
            number = found[member]
            if period < 1:
                raise ValueError("the period must be 1 second or more")
            if number % period:
                floor = number // period
                nearest = [each for each in (floor, floor + 1) if each]
                words = [f"{BYTES.text(each) if member == self.size else each}/s" for each in nearest]
                raise ValueError(f"the rate is not a whole number a second: specify {' or '.join(words)}")
        return self._value({member: found[member] // period for member, period in periods.items()}, 1)

    def _value(self, found: Mapping[str, int], period: int) -> dict[str, Any]:
        members = {self.messages: NO_LIMIT} | ({self.size: NO_LIMIT} if self.size else {})
        return {**members, **found, **({self.period: period} if self.period else {})}

    def text(self, value: _Value) -> str | None:
        """See WholeForm.text."""
        if any(value.get(member, usual) != usual for member, usual in (self.rest or {}).items()):
            return None
        messages, size = value.get(self.messages) or 0, (value.get(self.size) or 0) if self.size else 0
        said = ([str(messages)] if messages > 0 else []) + ([BYTES.text(size)] if size > 0 else [])
        if not said:
            return UNLIMITED
        period = value.get(self.period) or 0 if self.period else 1
        if period < 1:
            return None
        return ",".join(f"{each}/{'' if period == 1 else period}s" for each in said)


@dataclass(frozen=True, slots=True)
class QuotaForm:
    """A size or an age, and the action at the limit: ``10G,hold``, ``7d,evict``."""

    actions: Mapping[str, str]
    """Actions in the Admin API, by their word."""

    @property
    def expected(self) -> str:
        """See WholeForm.expected."""
        actions = ", ".join(self.actions)
        return f"a size or an age, and one of {actions}, such as 10G,hold or 7d,evict; or {UNLIMITED} or {OFF}"

    @property
    def examples(self) -> tuple[str, ...]:
        """See WholeForm.examples."""
        return *(f"{limit},{action}" for limit in ("10G", "7d") for action in self.actions), UNLIMITED

    def parse(self, text: str) -> dict[str, Any]:
        """See WholeForm.parse."""
        if text.strip().lower() in (OFF, UNLIMITED):
            return _quota(NO_LIMIT, NO_LIMIT, next(iter(self.actions.values())))
        parts = _parts(text)
        read = _quantity(parts[0], BYTES, SECONDS) if len(parts) == 2 else None
        action = self.action(parts[1]) if len(parts) == 2 else None
        if read is None or action is None:
            raise InvalidText(self.expected, text)
        quantity, number = read
        if number < 1:
            raise ValueError(f"the limit must be 1 or more, not '{parts[0]}'; for no limit, specify {OFF}")
        size, seconds = (number, NO_LIMIT) if quantity is BYTES else (NO_LIMIT, number)
        return _quota(size, seconds, action)

    def action(self, word: str) -> str | None:
        """Return the action in the Admin API of a word or of itself, case-insensitive; None if there is none."""
        word = word.strip().lower()
        return word if word in self.actions.values() else self.actions.get(word)

    def text(self, value: _Value) -> str | None:
        """See WholeForm.text."""
        size = value.get("limitSize") or value.get("limit") or NO_LIMIT
        seconds = value.get("limitTime") or NO_LIMIT
        words = {wire: word for word, wire in self.actions.items()}
        if size <= 0 and seconds <= 0:
            return UNLIMITED
        if value.get("excludeDelayed") or value.get("policy") not in words or (size > 0) == (seconds > 0):
            return None
        return f"{BYTES.text(size) if size > 0 else SECONDS.text(seconds)},{words[value['policy']]}"


def _quota(size: int, seconds: int, action: str) -> dict[str, Any]:
    return {"limit": size, "limitSize": size, "limitTime": seconds, "policy": action}


@dataclass(frozen=True, slots=True)
class QuorumForm:
    """Ensemble size, write quorum and ack quorum: ``3/2/2``."""

    expected: str = "ensemble size, write quorum and ack quorum, such as 3/2/2"
    examples: tuple[str, ...] = ("1/1/1", "2/2/2", "3/2/2")

    def parse(self, text: str) -> dict[str, Any]:
        """See WholeForm.parse."""
        found = re.fullmatch(r" *([0-9]{1,9}) */ *([0-9]{1,9}) */ *([0-9]{1,9}) *", text)
        if found is None:
            raise InvalidText(self.expected, text)
        return dict(zip(_QUORUMS, map(int, found.groups()), strict=True)) | {_MARK_DELETE_RATE: _USUAL_RATE}

    def text(self, value: _Value) -> str | None:
        """See WholeForm.text."""
        rate = value.get(_MARK_DELETE_RATE, NO_LIMIT)
        if rate > _USUAL_RATE or any(name not in value for name in _QUORUMS):
            return None
        return "/".join(str(value[name]) for name in _QUORUMS)


_MARK_DELETE_RATE: Final = "managedLedgerMaxMarkDeleteRate"
_USUAL_RATE: Final = 1.0
"""Rate of stored acknowledgements in Pulsar's configuration; a box has no such limit."""
_QUORUMS: Final = ("bookkeeperEnsemble", "bookkeeperWriteQuorum", "bookkeeperAckQuorum")


@dataclass(frozen=True, slots=True)
class NamesForm:
    """Comma-separated names that the Admin API has in a single text: ``first,second``, or none."""

    member: str
    """Member with the text."""
    expected: str = f"comma-separated names, or {NONE}"
    examples: tuple[str, ...] = ()

    def parse(self, text: str) -> dict[str, Any]:
        """See WholeForm.parse."""
        names = _parts(text)
        if not names or any("=" in name for name in names):
            raise InvalidText(self.expected, text)
        return {self.member: "" if [name.lower() for name in names] == [NONE] else ",".join(names)}

    def text(self, value: _Value) -> str | None:
        """See WholeForm.text."""
        return ",".join(_parts(value.get(self.member) or "")) or NONE


@dataclass(frozen=True, slots=True)
class InactivityForm:
    """A time after which inactive topics are deleted, or off: ``1h``, ``7d,caught-up``."""

    modes: Mapping[str, str]
    """Modes in the Admin API, by their word; the first is the default."""

    @property
    def expected(self) -> str:
        """See WholeForm.expected."""
        return (
            f"a time and optionally one of {', '.join(self.modes)}, such as 7d or 1h,{list(self.modes)[-1]}; or {OFF}"
            f" or {UNLIMITED}"
        )

    @property
    def examples(self) -> tuple[str, ...]:
        """See WholeForm.examples."""
        return "7d", *(f"7d,{mode}" for mode in self.modes), OFF

    def parse(self, text: str) -> dict[str, Any]:
        """See WholeForm.parse."""
        usual = next(iter(self.modes))
        parts = [part.lower() for part in _parts(text)]
        if parts in ([OFF], [UNLIMITED]):
            return _inactivity(self.modes[usual], _OFF_SECONDS, deleted=False)
        read = _quantity(parts[0], SECONDS) if len(parts) in (1, 2) else None
        mode = self.modes.get(parts[1] if len(parts) == 2 else usual)
        if read is None or mode is None:
            raise InvalidText(self.expected, text)
        return _inactivity(mode, read[1], deleted=True)

    def text(self, value: _Value) -> str | None:
        """See WholeForm.text."""
        if value == _inactivity(next(iter(self.modes.values())), _OFF_SECONDS, deleted=False):
            return OFF
        words = {wire: word for word, wire in self.modes.items()}
        mode, seconds = value.get("inactiveTopicDeleteMode"), value.get("maxInactiveDurationSeconds")
        if mode not in words or seconds is None or seconds <= 0 or not value.get("deleteWhileInactive"):
            return None
        suffix = "" if words[mode] == next(iter(self.modes)) else f",{words[mode]}"
        return SECONDS.text(seconds) + suffix


_OFF_SECONDS: Final = 60
"""Time that is stored where inactive topics are kept: Pulsar's default."""


def _inactivity(mode: str, seconds: int, *, deleted: bool) -> dict[str, Any]:
    return {"inactiveTopicDeleteMode": mode, "maxInactiveDurationSeconds": seconds, "deleteWhileInactive": deleted}


@dataclass(frozen=True, slots=True)
class DelayForm:
    """On or off, optionally with the tick and the maximum delay: ``on``, ``on,tick=1s,max=10d``."""

    expected: str = "on or off, optionally with the tick and the maximum delay, such as on,tick=1s,max=10d"
    examples: tuple[str, ...] = (ON, OFF, "on,tick=1s,max=10d")

    def parse(self, text: str) -> dict[str, Any]:
        """See WholeForm.parse."""
        first, *others = text.split(",")
        found: dict[str, Any] = {"active": _switch(first, self), "tickTime": 1000, "maxDeliveryDelayInMillis": 0}
        for part in others:
            name, _, amount = part.partition("=")
            if name.strip().lower() not in _DELAYS:
                raise InvalidText(self.expected, text)
            found[_DELAYS[name.strip().lower()]] = MILLISECONDS.parse(amount)
        return found

    def text(self, value: _Value) -> str | None:
        """See WholeForm.text."""
        if any(member not in value for member in ("active", *_DELAYS.values())):
            return None
        limits = [("tick", value["tickTime"], 1000), ("max", value["maxDeliveryDelayInMillis"], 0)]
        if any(number < 0 for _, number, _ in limits):
            return None
        said = [f"{name}={MILLISECONDS.text(number)}" for name, number, usual in limits if number != usual]
        return ",".join([ON if value["active"] else OFF, *said])


_DELAYS: Final = {"tick": "tickTime", "max": "maxDeliveryDelayInMillis"}


@dataclass(frozen=True, slots=True)
class TopicCreationForm:
    """On, off, or the number of partitions of new topics: ``partitions=4``."""

    expected: str = "on, off, or partitions=N for partitioned topics"
    examples: tuple[str, ...] = (ON, OFF, "partitions=4")

    def parse(self, text: str) -> dict[str, Any]:
        """See WholeForm.parse."""
        word = text.strip().lower()
        count = re.fullmatch(r"partitions *= *([0-9]{1,9})", word)
        if count is not None:
            return {_CREATION: True, "topicType": "partitioned", "defaultNumPartitions": int(count[1])}
        return {_CREATION: True, "topicType": "non-partitioned"} if _switch(word, self) else {_CREATION: False}

    def text(self, value: _Value) -> str | None:
        """See WholeForm.text."""
        if not value.get(_CREATION):
            return OFF
        if value.get("topicType") == "partitioned":
            return f"partitions={value.get('defaultNumPartitions')}"
        return ON


_CREATION: Final = "allowAutoTopicCreation"


@dataclass(frozen=True, slots=True)
class SwitchForm:
    """The only member of an object, as on or off."""

    member: str
    expected: str = "on or off"
    examples: tuple[str, ...] = (ON, OFF)

    def parse(self, text: str) -> dict[str, Any]:
        """See WholeForm.parse."""
        return {self.member: _switch(text, self)}

    def text(self, value: _Value) -> str | None:
        """See WholeForm.text."""
        return ON if value.get(self.member) else OFF

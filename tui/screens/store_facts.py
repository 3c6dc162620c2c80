"""The numbers of the store, in groups with names: commits, their latency, the cache, and the disk."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pulsarbox.cleaning import clean
from pulsarbox.tui.actions.diagnosis import DISK_BYTES, DISK_SHARE
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.panel import LabeledFact, fact

Totals = Mapping[str, Any]
_Form = Callable[[Any], str]
_JOURNAL: Final[Sequence[tuple[str, str, _Form]]] = (
    ("checkpointLag", "checkpoint lag", numbers.size),
    ("groupEntries", "entries per commit", numbers.count),
    ("groupBytes", "bytes per commit", numbers.size),
    ("commitMs", "mean commit", numbers.milliseconds),
)
_CACHE: Final[Sequence[tuple[str, str, _Form]]] = (
    ("unpackedHits", "hits", numbers.count),
    ("unpackedMisses", "misses", numbers.count),
    ("unpackedBytes", "size", numbers.size),
)
_RATE: Final = "hit rate"
_LATENCY: Final = (("receipt", "receiptP50", "receiptP99"), ("commit", "commitP50", "commitP99"))


class StoreFacts(NamedTuple):
    """Facts by panel, the most important first. Values that the box does not report are left out."""

    journal: list[LabeledFact]
    latency: list[LabeledFact]
    """A heading, and lines with two values."""
    cache: list[LabeledFact]
    """Of decompressed entries."""
    space: list[LabeledFact]

    @property
    def panels(self) -> tuple[list[LabeledFact], ...]:
        """The facts of the panels beside each other, all but the space."""
        return self.journal, self.latency, self.cache

    @property
    def lines(self) -> int:
        """Lines of the longest panel of those beside each other."""
        return max(map(len, self.panels))


def store_facts(totals: Totals) -> StoreFacts:
    """Return the facts of the totals of the storage view."""
    return StoreFacts(
        [*_commits(totals), *_known(totals, _JOURNAL)],
        list(_latency(totals)),
        list(_cache(totals)),
        list(_space(totals)),
    )


def refusal(totals: Totals) -> str:
    """Return why the box refuses messages, with a sign; empty if it accepts them."""
    return f"! The box refuses messages: {clean(str(totals['refusal']))}" if totals.get("refusal") else ""


def brief(facts: StoreFacts) -> list[LabeledFact]:
    """Return the facts for a screen with few lines, the most important first."""
    latency = [fact(f"{each.label} p99", each.values[1]) for each in facts.latency[1:] if len(each.values) > 1]
    rate = [each._replace(label="cache hit rate") for each in facts.cache if each.label == _RATE]
    return [*facts.space[:1], *latency, *facts.journal[1:3], *facts.space[1:], *facts.journal[:1], *rate]


def _known(totals: Totals, known: Sequence[tuple[str, str, _Form]]) -> Iterator[LabeledFact]:
    for name, label, form in known:
        if totals.get(name) is not None:
            yield fact(label, form(totals[name]))


def _commits(totals: Totals) -> Iterator[LabeledFact]:
    if totals.get("commits") is not None:
        yield fact("commits", numbers.count(totals["commits"]))
    failed = totals.get("commitsFailed")
    if failed is not None:
        yield fact("failed commits", numbers.count(failed), "bad" if failed else "")


def _latency(totals: Totals) -> Iterator[LabeledFact]:
    told = [(label, totals.get(half), totals.get(most)) for label, half, most in _LATENCY if most in totals]
    if told:
        yield LabeledFact("", ("p50", "p99"))
    for label, half, most in told:
        yield LabeledFact(label, (numbers.milliseconds(half), numbers.milliseconds(most)))


def _cache(totals: Totals) -> Iterator[LabeledFact]:
    hits, misses = totals.get("unpackedHits") or 0, totals.get("unpackedMisses") or 0
    if hits + misses:
        yield fact(_RATE, numbers.percent(hits / (hits + misses)))
    yield from _known(totals, _CACHE)


def _space(totals: Totals) -> Iterator[LabeledFact]:
    free, total = totals.get("diskFree"), totals.get("diskTotal")
    if free is not None:
        of_total = f" of {numbers.size(total)} ({numbers.percent(free / total)})" if total else ""
        yield fact("disk free", f"{numbers.size(free)}{of_total}", "bad" if _is_low(free, total) else "")
    if totals.get("volumes") is not None:
        size = f", {numbers.size(totals['volumeBytes'])}" if totals.get("volumeBytes") is not None else ""
        yield fact("volumes", f"{numbers.count(totals['volumes'])}{size}")
    if totals.get("reserveHeld") is not None:
        yield fact("reserve", "held", "") if totals["reserveHeld"] else fact("reserve", "missing", "warn")
    meta = totals.get("meta")
    if isinstance(meta, Mapping) and meta.get("diskUsed") is not None:
        yield fact("metadata", numbers.size(meta["diskUsed"]))


def _is_low(free: float, total: float | None) -> bool:
    """Whether so little of the disk is free that the diagnosis reports it."""
    return free < (min(total * DISK_SHARE, DISK_BYTES) if total else DISK_BYTES)

"""Checks of the data directories of a running box, from the document of ``GET /pulsarbox/v1/ensemble``. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pulsarbox.cli.process.doctor_check import FAIL, OK, WARN, Check

Document = Mapping[str, Any]

NAME: Final = "directories"
_DAY_MS: Final = 86_400_000
_ADVICE: Final = {
    "lost": "mount the disk again, or install an empty one and run `pulsarbox storage replace {name} --wait`",
    "full": "free disk space on {name}, or run `pulsarbox storage add DIR`",
    "late": "check the disk for errors and load; the box tries it again by itself",
    "fenced": "wait: the box brings it up to date; if it stays fenced, run `pulsarbox storage replace {name}`",
}


def directory_checks(document: Document, scrub_days: float) -> Iterator[Check]:
    """Yield what needs attention, or one result that nothing does. ``scrub_days``: the period of scrubs, 0 for none."""
    found = [*_states(document), *_devices(document), *_copies(document), *_scrubs(document, scrub_days)]
    if found:
        yield from found
    else:
        yield Check(NAME, OK, f"{len(_members(document))} data directories, every entry has its copies")


def _members(document: Document) -> list[dict[str, Any]]:
    return [each for each in document["members"] if each["state"] != "removed"]


def _states(document: Document) -> Iterator[Check]:
    for each in _members(document):
        if each["state"] in _ADVICE:
            text = f"{each['name']} is {each['state']}" + (f": {each['why']}" if each["why"] else "")
            state = FAIL if each["state"] == "lost" else WARN
            yield Check(NAME, state, text, _ADVICE[each["state"]].format(name=each["name"]))


def _devices(document: Document) -> Iterator[Check]:
    """Warn once per device."""
    shared = {tuple(sorted((each["name"], *each["sharesDeviceWith"]))) for each in _members(document)}
    for names in sorted(names for names in shared if len(names) > 1):
        text = f"{', '.join(names)} are on the same device: if it fails, the copies there are lost together"
        yield Check(NAME, WARN, text, "move them to separate disks with `pulsarbox storage replace OLD NEW`")


def _copies(document: Document) -> Iterator[Check]:
    active = sum(each["state"] == "active" for each in _members(document))
    want, lacking = document["copiesWanted"], document["underReplicated"]
    if active < want:
        text = f"policies ask for {want} copies; active data directories: {active}"
        yield Check(NAME, WARN, text, "run `pulsarbox storage add DIR`, or lower the persistence policies")
    if lacking["withoutCopy"]:
        text = f"{lacking['withoutCopy']:,} entries have no copy in the available directories"
        yield Check(NAME, FAIL, text, "make the missing directories available again")
    elif lacking["fragments"]:
        text = f"{lacking['entries']:,} entries lack a copy, {lacking['restoredPercent']} % restored"
        yield Check(NAME, WARN, text, "`pulsarbox storage under-replicated --wait` shows the repair")


def _scrubs(document: Document, days: float) -> Iterator[Check]:
    for each in _members(document):
        scrub = each["scrub"]
        if scrub["found"]:
            text = f"{each['name']}: {scrub['found']:,} damaged entries were found since the start"
            yield Check(NAME, WARN, text, "check the disk: the box copies the entries again if another copy is intact")
        age = document["now"] - (scrub["finished"] or each["since"])
        if days and each["state"] == "active" and age > 2 * days * _DAY_MS:
            text = f"{each['name']} was not verified for {age // _DAY_MS} days, with ensembleScrubDays {days:g}"
            advice = f"raise ensembleScrubMbytesPerSecond, or run `pulsarbox storage scrub {each['name']}`"
            yield Check(NAME, WARN, text, advice)

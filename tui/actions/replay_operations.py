"""Deeds on dead letters and jobs: start a replay or drop job, and pause, resume or cancel a job.

The box does the work, independently of the dashboard. It publishes and acknowledges a replayed message in one commit,
so nothing is lost or duplicated.
"""

import json
from typing import Any, Final

from pulsarbox.tui.actions.operation import OperationField, OperationSpec, Request, Row, Values, Wrong, short
from pulsarbox.tui.feed import real

JOBS: Final = "/pulsarbox/v1/jobs"


def _wanted(row: Row, values: Values) -> str:
    """Return the filter: the typed one, restricted to the group or message of the row."""
    typed = values.get("filter", "").strip()
    own = str(row.get("only") or "")
    if not own or typed == own:
        return typed
    return f"({own}) and ({typed})" if typed else own


def _keeper(values: Values) -> str:
    return values.get("subscription", "").strip()


def _rate(values: Values) -> float:
    text = values.get("rate", "").strip() or "0"
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1_000_000:
        raise Wrong(f"rate: '{text}' is not a number of messages per second; 0: no limit")
    return rate


def edit_of(text: str) -> dict[str, Any] | None:
    """Parse the edit of messages from JSON. Raises Wrong."""
    if not text.strip():
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Wrong(f"edit: invalid JSON: {error}") from None
    if not isinstance(found, dict):
        raise Wrong('edit: an object such as {"setProperties": {"fixed": "yes"}, "payload": "..."}')
    return found


def _job(kind: str, row: Row, values: Values) -> list[Request]:
    asked: dict[str, Any] = {"kind": kind, "topic": real(row, "topic"), "dryRun": values.get("dry_run") == "yes"}
    wanted = _wanted(row, values)
    if wanted:
        asked["filter"] = wanted
    if _keeper(values):
        asked["subscription"] = _keeper(values)
    if kind == "dlq-replay":
        asked["rate"] = _rate(values)
        target, edit = values.get("to", "").strip(), edit_of(values.get("edit", ""))
        if target:
            asked["target"] = target
        if edit is not None:
            asked["edit"] = edit
    return [Request("POST", JOBS, asked)]


def _edit_words(text: str) -> list[str]:
    """Return an edit as command line options; empty while it is invalid."""
    try:
        edit = edit_of(text) or {}
    except Wrong:
        return []
    words = []
    for name, value in (edit.get("setProperties") or {}).items():
        words += ["--set", f"{name}={value}"]
    for name in edit.get("removeProperties") or ():
        words += ["--unset", str(name)]
    for key in ("key", "payload"):
        if key in edit:
            words += [f"--{key}", str(edit[key])]
    return words


def _words(verb: str, row: Row, values: Values) -> list[str]:
    words = ["dlq", verb, short(row), *(["-s", _keeper(values)] if _keeper(values) else [])]
    wanted = _wanted(row, values)
    if wanted:
        words += ["--filter", wanted]
    elif verb == "drop":
        words.append("--all")
    if verb == "replay":
        for name, option in (("rate", "--rate"), ("to", "--to")):
            if values.get(name, "").strip():
                words += [option, values[name].strip()]
        words += _edit_words(values.get("edit", ""))
    words += ["--dry-run"] if values.get("dry_run") == "yes" else ["--yes"] if verb == "drop" else []
    return words


_FILTER: Final = OperationField("filter", "Filter", "=filter", 'reason == "...", contains(payload, "x"); empty: all')
_KEEPER: Final = OperationField(
    "subscription", "Subscription", "=keptBy", "subscription to acknowledge on; empty: the only one"
)
_DRY: Final = OperationField("dry_run", "Dry run", lambda row: str(row.get("dry") or "yes"), choices=("yes", "no"))


def _job_deed(verb: str, title: str, states: tuple[str, ...], *, danger: bool = False) -> OperationSpec:
    return OperationSpec(
        f"job {verb}",
        title,
        ("job",),
        lambda row, values: ["job", verb, str(row.get("id"))],
        lambda row, values: [Request("POST", f"{JOBS}/{row.get('id')}/{verb}")],
        lambda row: f"job {row.get('id')}",
        danger=danger,
        fits=lambda row: not states or row.get("state") in states,
    )


def is_dead_letter(row: Row) -> bool:
    """Return whether a row is of dead letters; only rows of messages may be of others."""
    return bool(row.get("isDeadLetter", True))


REPLAYS: Final = (
    OperationSpec(
        "dlq replay",
        "Replay dead letters to their original topics",
        ("deadletters", "group", "message"),
        lambda row, values: _words("replay", row, values),
        lambda row, values: _job("dlq-replay", row, values),
        short,
        "A job republishes and acknowledges each message atomically. It stops if replayed messages fail again.",
        (
            _FILTER,
            OperationField("rate", "Messages per second", "100", "0: no limit"),
            OperationField("to", "Target topic", "", "another topic; empty: the original topics"),
            OperationField("edit", "Edit", "=edit", '{"payload": "...", "setProperties": {"k": "v"}}; empty: no edit'),
            _KEEPER,
            _DRY,
        ),
        keys="R",
        fits=is_dead_letter,
    ),
    OperationSpec(
        "dlq drop",
        "Drop dead letters permanently",
        ("deadletters", "group", "message"),
        lambda row, values: _words("drop", row, values),
        lambda row, values: _job("dlq-drop", row, values),
        short,
        "A job acknowledges the messages without delivery.",
        (_FILTER, _KEEPER, _DRY),
        danger=True,
        fits=is_dead_letter,
    ),
    _job_deed("pause", "Pause the job", ("running",)),
    _job_deed("resume", "Resume the job", ("paused", "tripped")),
    _job_deed("cancel", "Cancel the job; completed work is kept", ("running", "paused", "tripped")),
)

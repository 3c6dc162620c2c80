"""What went wrong, in a line that names the user's file: of a traceback, or of what Spark makes of one. Pure."""

import re
import traceback
from pathlib import Path
from typing import Final

_FRAME: Final = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)
_RAISED: Final = re.compile(r"^(?P<name>[A-Za-z_][\w.]*)(?:: (?P<text>.*))?$")
_SPARKS: Final = re.compile(
    r"^\s*(at |\.\.\. \d+ more)|^(Driver|JVM) stacktrace|^(During handling|The above)|^=== Streaming Query ==="
    r"|^== (DataFrame|SQL)\b"
)
_OF_A_CALL: Final = re.compile(r"^An error occurred while calling \S+\.?\s*:\s*(?:[\w.$]+: )?")
"""What Python says in front of what the JVM says."""
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+$")
_PLAN: Final = re.compile(r"SQLSTATE: \w{5};\n")
"""Behind that Spark's plan follows, which nobody needs; options stand in it."""
_CLASS: Final = re.compile(r"^\[(?P<name>[A-Z][A-Z0-9_.]+)\] ")
_OURS: Final = (
    *("SinkError", "DataLost", "OptionError", "SelectionError", "EntryError"),
    *("FunctionError", "PipelineError"),
)
"""Errors whose text says it all."""
_LENGTH: Final = 600
_MISFIT: Final = re.compile(
    r"sources in the checkpoint offsets|\[STREAMING_STATEFUL_OPERATOR_(NOT_MATCH|MISSING)|\[STATE_STORE_\w*SCHEMA_"
)
"""How Spark says that a query is not the one of its checkpoint."""
_VAGUE: Final = re.compile(r"\[FAILED_READ_FILE|\[CANNOT_WRITE_STATE_STORE|Error while instantiating")
"""What Spark says of which the innermost cause has the reason."""
_INNERMOST: Final = re.compile(r"^Caused by: [\w.$]+: (?:\[[A-Z0-9_.]+\] )?(?P<text>.*)$", re.MULTILINE)


def line_of(error: BaseException, file: str) -> tuple[str, bool]:
    """``shop.py:12: ValueError: no``, and True, for what came through a line of the user's file; without, no place."""
    frames = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
    return _with_place(f"{Path(file).name}:{frames[-1]}" if frames else "", _said(error)), bool(frames)


def _said(error: BaseException) -> str:
    text = _first_lines(str(error)) or type(error).__name__
    if type(error).__name__.startswith(("Analysis", "Streaming", *_OURS)):
        return _CLASS.sub("", text)
    return f"{type(error).__name__}: {text}"


def told(text: str, file: str) -> str:
    """What a failed query is told to have failed with: the innermost Python exception of Spark's text, and the line of
    the user's file that it came through. Where there is none, Spark's first line."""
    place = ""
    for found in _FRAME.finditer(text):
        if found["file"] == file:
            place = f"{Path(file).name}:{found['line']}"
    return _with_place(place, _raised(text) or _without_traceback(text))


def is_misfit(text: str) -> bool:
    """Whether a query failed as it is not the one of its checkpoint any more, which trying again does not mend."""
    return _MISFIT.search(text) is not None


def _without_traceback(text: str) -> str:
    said = _first_lines(_CLASS.sub("", _OF_A_CALL.sub("", text.strip())))
    inner = [_STATE.sub("", found["text"]) for found in _INNERMOST.finditer(text)] if _VAGUE.search(text) else []
    return f"{said.rstrip(' .:')}: {inner[-1]}" if inner else said


def _raised(text: str) -> str:
    """The last exception of the last traceback, with all its lines; empty where there is none."""
    _, mark, last = text.rpartition("Traceback (most recent call last):")
    if not mark:
        return ""
    lines = last.splitlines()
    for number, line in enumerate(lines):
        if not line or line[0].isspace():  # its frames are set in
            continue
        found = _RAISED.match(line)
        if found is None:
            break
        more = []
        for each in lines[number + 1 :]:
            if not each.strip() or _SPARKS.match(each):
                break
            more.append(each.strip())
        name = found["name"].rpartition(".")[2]
        said = _STATE.sub("", " ".join([found["text"] or "", *more]).strip())
        return said if name in _OURS else f"{name}: {said}" if said else name
    return ""


def _first_lines(text: str) -> str:
    """Up to Spark's stack."""
    lines = []
    for line in _PLAN.split(text)[0].splitlines():
        if _SPARKS.match(line):
            break
        if line.strip():
            lines.append(line.strip())
    return _STATE.sub("", " ".join(lines[:4]))


def _with_place(place: str, text: str) -> str:
    text = text if len(text) <= _LENGTH else f"{text[:_LENGTH]}..."
    return f"{place}: {text}" if place and not text.startswith(place) else text

"""What went wrong, in a line that names the user's file: of a traceback, or of what Spark makes of one. Pure."""

import re
import traceback
from pathlib import Path
from typing import Final

_FRAME: Final = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)
_RAISED: Final = re.compile(r"^(?P<name>[A-Za-z_][\w.]*)(?:: (?P<text>.*))?$")
_SPARKS: Final = re.compile(
    r"^\s*(at |\.\.\. \d+ more)|^(Driver|JVM) stacktrace|^(During handling|The above)|^=== Streaming Query ==="
)
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
    return _with_place(place, _raised(text) or _first_lines(_CLASS.sub("", text.strip())))


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

"""Failure causes as one line that names the user's file, from a Python or Spark traceback. Pure."""

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
"""Python's prefix of JVM errors."""
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+$")
_PLAN: Final = re.compile(r"SQLSTATE: \w{5};\n")
"""Start of Spark's query plan, which is omitted: it is noise, and contains options."""
_CLASS: Final = re.compile(r"^\[(?P<name>[A-Z][A-Z0-9_.]+)\] ")
_OURS: Final = (
    *("SinkError", "DataLost", "OptionError", "SelectionError", "EntryError"),
    *("FunctionError", "PipelineError", "TableError"),
)
"""Errors whose message is shown without the class name."""
_LENGTH: Final = 600
_MISFIT: Final = re.compile(
    r"sources in the checkpoint offsets|\[STREAMING_STATEFUL_OPERATOR_(NOT_MATCH|MISSING)|\[STATE_STORE_\w*SCHEMA_"
)
"""Spark's errors for a query that does not match its checkpoint."""
_VAGUE: Final = re.compile(r"\[FAILED_READ_FILE|\[CANNOT_WRITE_STATE_STORE|Error while instantiating")
"""Spark's errors whose innermost cause has the reason."""
_INNERMOST: Final = re.compile(r"^Caused by: [\w.$]+: (?:\[[A-Z0-9_.]+\] )?(?P<text>.*)$", re.MULTILINE)


def line_of(error: BaseException, file: str) -> tuple[str, bool]:
    """Return the error as a line, and whether it passed through the user's file: ``shop.py:12: ValueError: no``.
    Otherwise the line has no location."""
    frames = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
    return _with_place(f"{Path(file).name}:{frames[-1]}" if frames else "", _said(error)), bool(frames)


def _said(error: BaseException) -> str:
    text = _first_lines(str(error)) or type(error).__name__
    if type(error).__name__.startswith(("Analysis", "Streaming", *_OURS)):
        return _CLASS.sub("", text)
    return f"{type(error).__name__}: {text}"


def innermost_exception(text: str, file: str) -> str:
    """Return the innermost Python exception in Spark's text, with the line of the user's file that it passed through;
    if there is none, Spark's first lines."""
    place = ""
    for found in _FRAME.finditer(text):
        if found["file"] == file:
            place = f"{Path(file).name}:{found['line']}"
    return _with_place(place, _raised(text) or _without_traceback(text))


def is_misfit(text: str) -> bool:
    """Return whether a query does not match its checkpoint, which restarting cannot fix."""
    return _MISFIT.search(text) is not None


def _without_traceback(text: str) -> str:
    said = _first_lines(_CLASS.sub("", _OF_A_CALL.sub("", text.strip())))
    inner = [_STATE.sub("", found["text"]) for found in _INNERMOST.finditer(text)] if _VAGUE.search(text) else []
    return f"{said.rstrip(' .:')}: {inner[-1]}" if inner else said


def _raised(text: str) -> str:
    """Return the last exception of the last traceback, with all its lines; empty if there is none."""
    _, mark, last = text.rpartition("Traceback (most recent call last):")
    if not mark:
        return ""
    lines = last.splitlines()
    for number, line in enumerate(lines):
        if not line or line[0].isspace():  # indented stack frames
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
    """Return the text before Spark's stack trace."""
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

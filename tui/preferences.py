"""Preferences that outlive a run of the dashboard: columns and order of each table, theme and keys.

They are stored as JSON in ``top.json``. A file, or a single value of it, that cannot be used costs that preference and
adds a note for the user; it never prevents the dashboard from starting.
"""

import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

_BYTES_MAX: Final = 1 << 20
"""A preference file written by the dashboard is a few KiB."""
_QUOTED_MAX: Final = 40
"""Characters of an unusable value that a note quotes."""


def place(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the path of the preference file; None if the user has no home directory."""
    root = environ.get("XDG_CONFIG_HOME")
    try:
        folder = Path(root) if root else Path(environ.get("HOME") or "~").expanduser() / ".config"
    except RuntimeError:
        return None
    return folder / "pulsarbox" / "top.json"


class Preferences:
    """Preferences by name. Each is written to the file when it changes."""

    def __init__(self, path: Path | None) -> None:
        """Read the preferences of ``path``. With None, they last for this run only."""
        self._path = path
        self._values: dict[str, Any] = {}
        self._given: dict[str, Any] = {}
        self._unusable: set[str] = set()
        self._notes: list[str] = []
        self._listener: Callable[[str], None] | None = None
        if path is not None:
            try:
                self._values = _read(path)
            except FileNotFoundError:
                pass
            except (OSError, ValueError, RecursionError) as error:
                reason = (isinstance(error, OSError) and error.strerror) or error
                self._disable(f"cannot read {path} ({reason}): using defaults; changes are not saved")

    def get(self, name: str, default: Any = None) -> Any:
        """Return a preference; ``default`` if it is not set or was found unusable."""
        if name in self._given:
            return self._given[name]
        return default if name in self._unusable else self._values.get(name, default)

    def checked(self, name: str, wanted: str, is_usable: Callable[[Any], object]) -> Any:
        """Return a preference; None if it is not set, or its stored value is unusable, which adds a note.

        ``wanted`` completes the note "... is not". What was given for this run is the caller's and is not checked.
        """
        value = self.get(name)
        if value is None or name in self._given or is_usable(value):
            return value
        quoted = json.dumps(value)
        quoted = quoted if len(quoted) <= _QUOTED_MAX else quoted[: _QUOTED_MAX - 3] + "..."
        self._unusable.add(name)  # the file keeps it until the preference is set
        self.note(f"{name}: {quoted} is not {wanted}: using the default")
        return None

    def set_once(self, name: str, value: Any) -> None:
        """Set a preference for this run only."""
        self._given[name] = value

    def set(self, name: str, value: Any) -> None:
        """Store a preference; None removes it."""
        self._given.pop(name, None)
        self._unusable.discard(name)
        if self._values.get(name) == value:
            return
        if value is None:
            self._values.pop(name, None)
        else:
            self._values[name] = value
        if self._path is None:
            return
        new = self._path.with_suffix(f".{os.getpid()}")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.write_text(json.dumps(self._values, indent=2) + "\n", "utf-8")
            new.replace(self._path)
        except OSError as error:
            self._disable(f"cannot write {self._path} ({error.strerror or error}): changes are not saved")

    def note(self, text: str) -> None:
        """Add a note about a value of the file."""
        self._report(f"{self._path}: {text}")

    def listen(self, listener: Callable[[str], None]) -> None:
        """Pass every note to ``listener``: those so far, then each new one."""
        self._listener = listener
        for note in self._notes:
            listener(note)
        self._notes.clear()

    def _disable(self, note: str) -> None:
        """Stop using the file, to preserve its content until the user repairs it."""
        self._path = None
        self._report(note)

    def _report(self, note: str) -> None:
        if self._listener is not None:
            self._listener(note)
        else:
            self._notes.append(note)


def _read(path: Path) -> dict[str, Any]:
    """Return the object in a preference file. Raises OSError, ValueError, RecursionError."""
    # Opening a named pipe would wait for a writer.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("not a regular file")
        text = file.read(_BYTES_MAX + 1)
    if len(text) > _BYTES_MAX:
        raise ValueError(f"larger than {_BYTES_MAX} bytes")
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object")
    return found

"""What the dashboard remembers between two runs: columns and order of each table, theme, interval, keys."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def place(environ: Mapping[str, str] = os.environ) -> Path:
    """The file, in the user's configuration directory."""
    root = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or "~").expanduser() / ".config"
    return Path(root) / "pulsarbox" / "top.json"


class Kept:
    """Values by name, each written when it changes. What cannot be read or written is done without."""

    def __init__(self, path: Path | None) -> None:
        """``path`` None: nothing outlives the run."""
        self._path = path
        self._values: dict[str, Any] = {}
        self._given: dict[str, Any] = {}
        self.problem = ""
        if path is not None:
            try:
                found = json.loads(path.read_text("utf-8"))
                if not isinstance(found, dict):
                    raise ValueError("it holds no object")
                self._values = found
            except FileNotFoundError:
                pass
            except (OSError, ValueError) as error:
                self.problem = f"{path} is not used: {error}"

    def get(self, name: str, default: Any = None) -> Any:
        """A value."""
        return self._given[name] if name in self._given else self._values.get(name, default)

    def given(self, name: str, value: Any) -> None:
        """A value for this run only."""
        self._given[name] = value

    def set(self, name: str, value: Any) -> None:
        """Remember a value; None: no longer."""
        self._given.pop(name, None)
        if self._values.get(name) == value:
            return
        if value is None:
            self._values.pop(name, None)
        else:
            self._values[name] = value
        if self._path is None or self.problem:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = self._path.with_suffix(f".{os.getpid()}")
            new.write_text(json.dumps(self._values, indent=2) + "\n", "utf-8")
            new.replace(self._path)
        except OSError as error:
            self.problem = f"{self._path} cannot be written: {error.strerror or error}"

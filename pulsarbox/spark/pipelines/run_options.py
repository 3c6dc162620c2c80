"""What whoever runs a pipeline says beside the pipeline itself. Nothing of Spark."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


def state_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Where pipelines keep their state unless told otherwise: ``$XDG_STATE_HOME/pulsarbox/pipelines``."""
    root = environ.get("XDG_STATE_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".local" / "state"
    return Path(root, "pulsarbox", "pipelines")


@dataclass(frozen=True)
class RunOptions:
    """Where and how a pipeline runs."""

    master: str = "local[*]"
    once: bool = False
    """End when what there is at the start is done."""
    state: Path | None = None
    """The directory of checkpoints and locks; None is that of the user."""
    name: str = ""
    """The pipeline's name where it is not to be its own."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Settings of Spark."""
    box: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The broker, as options of the format pulsarbox: ``service.url``, ``admin.url``, ``token`` and so on."""
    restarts: int = 3
    """How often in a row a query that fails is started again."""
    report: bool = True
    """Tell the box how it goes."""

    @property
    def directory(self) -> Path:
        """The directory of checkpoints and locks."""
        return self.state or state_home()

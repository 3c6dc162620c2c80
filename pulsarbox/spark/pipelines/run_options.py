"""Options of a pipeline run, apart from the pipeline. Does not import Spark."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


def state_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the default state directory of pipelines: ``$XDG_STATE_HOME/pulsarbox/pipelines``."""
    root = environ.get("XDG_STATE_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".local" / "state"
    return Path(root, "pulsarbox", "pipelines")


@dataclass(frozen=True)
class RunOptions:
    """Options of a pipeline run."""

    master: str = "local[*]"
    once: bool = False
    """End once everything available at the start has been processed."""
    state: Path | None = None
    """The directory of checkpoints and locks; None for the user's."""
    name: str = ""
    """Overrides the pipeline's name."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark settings."""
    box: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The broker, as options of the format pulsarbox: ``service.url``, ``admin.url``, ``token`` and so on."""
    restarts: int = 3
    """Restarts of a query after consecutive failures."""
    report: bool = True
    """Report the status to the box."""
    ui: bool = False
    """Serve Spark's web pages."""

    @property
    def settings(self) -> dict[str, str]:
        """The Spark settings of the run."""
        return ({"spark.ui.enabled": "true"} if self.ui else {}) | dict(self.conf)

    @property
    def directory(self) -> Path:
        """The directory of checkpoints and locks."""
        return self.state or state_home()

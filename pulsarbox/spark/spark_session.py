"""Spark session of a user's program or notebook, configured for topics."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pulsarbox.spark.pipelines.declaration import PipelineError
from pulsarbox.spark.pipelines.session import session as configured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT: Final = "sc://"
"""Scheme of Spark Connect servers."""
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Variable that spark-submit sets for the programs that it starts, with the master that it was given."""
_LOCAL: Final = "local[*]"


def session(
    name: str, master: str | None, memory: str | None, ui: bool, conf: Mapping[str, str] | None
) -> "SparkSession":
    """Return a session: see ``pulsarbox.spark.session``."""
    if master is not None and master.startswith(CONNECT):
        return _connected(name, master, memory, ui, conf or {})
    chosen = {**settings(memory, ui), **(conf or {})}
    if master is None and _SUBMITTED in os.environ:
        return _submitted(name, chosen)
    return configured(master or _LOCAL, name, chosen)


def settings(memory: str | None, ui: bool) -> dict[str, str]:
    """Return the settings for the parameters of a session that runs its own driver."""
    found = {"spark.ui.enabled": str(ui).lower()}
    return found | {"spark.driver.memory": memory} if memory else found


def _submitted(name: str, conf: Mapping[str, str]) -> "SparkSession":
    """Return the session of a program started by spark-submit, whose own settings apply: master, memory, jars."""
    from pyspark.sql import SparkSession

    from pulsarbox.spark import register

    builder = SparkSession.builder.appName(name)
    for key, value in conf.items():
        if not key.startswith("spark.driver."):  # the driver is running
            builder = builder.config(key, value)
    made = builder.getOrCreate()
    register(made)
    return made


def _connected(name: str, master: str, memory: str | None, ui: bool, conf: Mapping[str, str]) -> "SparkSession":
    """Return a session of a Spark Connect server, which imports the format from its own installation of pulsarbox."""
    if memory or ui:
        raise PipelineError(f"{master} is a running Spark Connect server: set memory and ui where it is started")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(master).appName(name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()

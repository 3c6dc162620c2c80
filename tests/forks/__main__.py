"""Load the modules of commands and boxes, then serve requests for forks: ``python -m tests.forks DESCRIPTOR``."""

import contextlib
import gc
import importlib
import os
import pkgutil
import socket
import sys
from typing import Final

from pulsarbox.cli.main import COMMANDS
from pulsarbox.storage.inspection import child
from tests.forks.pages import collapse
from tests.forks.server import run_and_exit, serve

LOADED: Final = (
    *("asyncio", "difflib", "encodings.idna", "encodings.utf_8_sig", "http.client", "tomllib", "uvloop"),
    *("pulsarbox.embed.child", "pulsarbox.server.http"),
    *{task.partition(":")[0] for task in child.TASKS.values()},
)
"""Modules to load besides those of the commands."""
WHOLE: Final = ("pulsarbox.cli", "pulsarbox.client", "pulsarbox.server.recording", "pulsarbox.tui")
"""Packages to load with all their modules, which commands and boxes import when they use them."""
OPTIONAL: Final = "pulsarbox.cli.sql"
"""Package that needs a large library, which may be missing."""


if __name__ == "__main__":
    os.environ["TEXTUAL_ANIMATIONS"] = "none"  # which the dashboard reads when its modules are loaded
    for target in (*(command.target for command in COMMANDS.values()), *LOADED):
        importlib.import_module(target.partition(":")[0])
    for package in map(importlib.import_module, WHOLE):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(OPTIONAL):
                with contextlib.suppress(ImportError):
                    importlib.import_module(module.name)
    importlib.import_module("pulsarbox.server.http.route_table").all_routes()  # the table of every box
    gc.freeze()  # keeps unwritten pages shared with the forks
    collapse()
    wanted = serve(socket.socket(fileno=int(sys.argv[1])))
    run_and_exit(wanted["words"], wanted["kind"])
